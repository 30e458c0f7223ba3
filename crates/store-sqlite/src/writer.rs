//! The one thread that writes, with group commit.
//!
//! It takes one job, adds those that wait already, runs each in a savepoint of its own, commits
//! once and only then answers them all: one wait for the disk pays for the whole batch. It never
//! lingers for more jobs, so a lone write is as fast as without it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use callboard_store::StoreError;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::error::Failure;

/// Most jobs in one commit: bounds what a failed commit takes with it and how long the first waits.
const BATCH_JOBS_MAX: usize = 256;
/// Most jobs that wait; whoever comes then waits to be let in.
const QUEUE_JOBS_MAX: usize = 1_024;

/// The handle of the writer thread. Dropping it lets the queued jobs finish and the thread end.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: Option<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
    commits: Arc<AtomicU64>,
}

/// One write on its way through the thread.
trait Job: Send {
    /// Runs the operation; false when what it did must be undone.
    fn run(&mut self, connection: &Connection) -> bool;
    /// Answers the caller, who may have left: with the outcome, or with why the batch was lost.
    fn answer(self: Box<Self>, lost: Option<&BatchError>);
}

/// Why a whole batch was not stored.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the transaction was not stored: {0}")]
struct BatchError(Arc<rusqlite::Error>);

/// The thread is gone, or an operation broke off.
#[derive(Debug, thiserror::Error)]
#[error("the writer gave no answer")]
struct NoAnswer;

fn gone() -> StoreError {
    StoreError::unavailable(NoAnswer)
}

struct Operation<F, T> {
    operation: Option<F>,
    outcome: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<F, T> Job for Operation<F, T>
where
    F: FnOnce(&Connection) -> Result<T, Failure> + Send,
    T: Send,
{
    fn run(&mut self, connection: &Connection) -> bool {
        let outcome = self.operation.take().map(|operation| operation(connection));
        self.outcome = outcome.map(|outcome| outcome.map_err(|failure| failure.0));
        matches!(self.outcome, Some(Ok(_)))
    }

    fn answer(self: Box<Self>, lost: Option<&BatchError>) {
        let answer = match (self.outcome, lost) {
            (Some(Err(StoreError::Unavailable(source))), _) => Err(StoreError::Unavailable(source)),
            (_, Some(error)) => Err(StoreError::unavailable(error.clone())),
            (Some(outcome), None) => outcome,
            (None, None) => Err(gone()),
        };
        drop(self.reply.send(answer));
    }
}

impl Writer {
    /// Starts the thread on `connection`.
    pub(crate) fn start(connection: Connection) -> std::io::Result<Self> {
        let (queue, jobs) = mpsc::channel(QUEUE_JOBS_MAX);
        let commits = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&commits);
        let thread = thread::Builder::new()
            .name("callboard-writer".to_owned())
            .spawn(move || write_all(&connection, jobs, &counter))?;
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
            commits,
        })
    }

    /// Runs `operation` in a transaction and answers once that is stored. A caller who stops
    /// waiting leaves either the whole write or nothing.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Operation {
            operation: Some(operation),
            outcome: None,
            reply,
        });
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        queue.send(job).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// Transactions that were committed.
    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Whether a write would be taken.
    pub(crate) fn ready(&self) -> Result<(), StoreError> {
        let open = self.queue.as_ref().is_some_and(|queue| !queue.is_closed());
        if open { Ok(()) } else { Err(gone()) }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.take();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn write_all(connection: &Connection, mut jobs: mpsc::Receiver<Box<dyn Job>>, commits: &AtomicU64) {
    let mut batch = Vec::with_capacity(BATCH_JOBS_MAX);
    while let Some(first) = jobs.blocking_recv() {
        batch.push(first);
        while batch.len() < BATCH_JOBS_MAX
            && let Ok(next) = jobs.try_recv()
        {
            batch.push(next);
        }
        let stored = store(connection, &mut batch);
        if stored.is_ok() {
            commits.fetch_add(1, Ordering::Relaxed);
        } else if !connection.is_autocommit() {
            // If even this fails, the next BEGIN does too and says why.
            drop(connection.execute_batch("ROLLBACK"));
        }
        let lost = stored.err().map(|source| BatchError(Arc::new(source)));
        for job in batch.drain(..) {
            job.answer(lost.as_ref());
        }
    }
}

fn store(connection: &Connection, batch: &mut [Box<dyn Job>]) -> rusqlite::Result<()> {
    let run = |sql| connection.prepare_cached(sql)?.execute([]);
    run("BEGIN IMMEDIATE")?;
    for job in batch {
        run("SAVEPOINT job")?;
        // A panic is our own bug; it must not take the hub's only writer with it.
        let keep = catch_unwind(AssertUnwindSafe(|| job.run(connection))).unwrap_or(false);
        if !keep {
            // Fails when SQLite has given up the whole transaction, as on a full disk.
            run("ROLLBACK TO job")?;
        }
        run("RELEASE job")?;
    }
    run("COMMIT")?;
    Ok(())
}
