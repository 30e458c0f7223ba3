//! The in-memory store against the suite of every store.

use callboard_store::MemoryStore;
use callboard_store_testkit::{exercise, races};

#[test]
fn every_operation_does_what_the_suite_says() {
    exercise(MemoryStore::default);
}

#[test]
fn eight_callers_at_once_agree_on_one_outcome() {
    races(MemoryStore::default);
}
