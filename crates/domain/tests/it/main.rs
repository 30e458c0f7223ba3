//! The machines as tables and as laws.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod graph_run_laws;
mod graph_run_samples;
mod graph_run_table;
mod linked_task_histories;
mod linked_task_laws;
mod linked_task_samples;
mod linked_task_table;
