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
enum BatchError {
    /// The one at fault answers with its own error.
    #[error("another write of the same transaction made SQLite give it up")]
    GivenUp,
    #[error("the transaction was not stored")]
    NotStored(#[source] Arc<rusqlite::Error>),
}

impl From<rusqlite::Error> for BatchError {
    fn from(source: rusqlite::Error) -> Self {
        Self::NotStored(Arc::new(source))
    }
}

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

fn job<T: Send + 'static>(
    operation: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    reply: oneshot::Sender<Result<T, StoreError>>,
) -> Box<dyn Job> {
    Box::new(Operation {
        operation: Some(operation),
        outcome: None,
        reply,
    })
}

/// See [`Writer::door`].
#[derive(Debug)]
pub(crate) struct Door(mpsc::Sender<Box<dyn Job>>);

impl Door {
    /// Runs `operation` as [`Writer::write`] does, and answers through `reply`. Waits for a place
    /// in the queue.
    pub(crate) fn write<T: Send + 'static>(
        self,
        operation: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
        reply: oneshot::Sender<Result<T, StoreError>>,
    ) {
        // Where the writer is gone, the caller learns it from the reply that went with the job.
        drop(self.0.blocking_send(job(operation, reply)));
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
        let job = job(operation, reply);
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        queue.send(job).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// A way in for a thread of ours that prepares a write. The writer lives as long as one is
    /// left.
    pub(crate) fn door(&self) -> Result<Door, StoreError> {
        Ok(Door(self.queue.clone().ok_or_else(gone)?))
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
        let lost = store(connection, &mut batch).err();
        if lost.is_none() {
            commits.fetch_add(1, Ordering::Relaxed);
        } else if !connection.is_autocommit() {
            // If even this fails, the next BEGIN does too and says why.
            drop(connection.execute_batch("ROLLBACK"));
        }
        for job in batch.drain(..) {
            job.answer(lost.as_ref());
        }
    }
}

fn store(connection: &Connection, batch: &mut [Box<dyn Job>]) -> Result<(), BatchError> {
    let run = |sql| connection.prepare_cached(sql)?.execute([]);
    run("BEGIN IMMEDIATE")?;
    for job in batch {
        run("SAVEPOINT job")?;
        // A panic is our own bug; it must not take the hub's only writer with it.
        let keep = catch_unwind(AssertUnwindSafe(|| job.run(connection))).unwrap_or(false);
        if connection.is_autocommit() {
            // As it does when the disk is full.
            return Err(BatchError::GivenUp);
        }
        if !keep {
            run("ROLLBACK TO job")?;
        }
        run("RELEASE job")?;
    }
    run("COMMIT")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::open;

    const ADD: &str = "INSERT INTO owners (id, created_at) VALUES (?1, 0)";

    type Write = Box<dyn FnOnce(&Connection) -> Result<usize, Failure> + Send>;

    fn add(id: u8) -> Write {
        Box::new(move |connection| Ok(connection.execute(ADD, [[id; 16]])?))
    }

    /// Runs `writes` in one batch and gives their answers.
    fn together(writer: &Writer, writes: Vec<Write>) -> Vec<Result<usize, StoreError>> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.unwrap();
        let ((release, released), (begin, begun)) = (channel::<()>(), channel::<()>());
        runtime.block_on(async {
            // A batch of its own, which holds the thread until all others wait.
            let first = writer.write(move |_| {
                begin.send(()).unwrap();
                released.recv().unwrap();
                Ok(0)
            });
            let mut first = Box::pin(first);
            let mut waiting: Vec<_> = writes
                .into_iter()
                .map(|write| Box::pin(writer.write(write)))
                .collect();
            std::future::poll_fn(|context| {
                assert!(first.as_mut().poll(context).is_pending());
                begun.recv().unwrap();
                for write in &mut waiting {
                    assert!(write.as_mut().poll(context).is_pending());
                }
                std::task::Poll::Ready(())
            })
            .await;
            release.send(()).unwrap();
            first.await.unwrap();
            let mut answers = Vec::new();
            for write in waiting {
                answers.push(write.await);
            }
            answers
        })
    }

    fn owners(writer: &Writer) -> Vec<u8> {
        let list: Write = Box::new(|connection| {
            let mut statement = connection.prepare("SELECT id FROM owners ORDER BY seq")?;
            let ids = statement.query_map([], |row| row.get::<_, [u8; 16]>(0))?;
            let bits = ids.map(|id| id.map(|id| 1_usize << id[0]));
            Ok(bits.sum::<rusqlite::Result<usize>>()?)
        });
        let bits = together(writer, vec![list]).remove(0).unwrap();
        (0..64).filter(|bit| bits & (1 << bit) != 0).collect()
    }

    #[test]
    fn a_write_that_fails_or_panics_takes_only_itself_back() {
        let writer = Writer::start(open::memory().unwrap()).unwrap();
        let fails: Write = Box::new(|connection| {
            add(2)(connection)?;
            Err(callboard_domain::Refusal::RunNotFound.into())
        });
        let panics: Write = Box::new(|connection| {
            add(3)(connection).unwrap();
            panic!("a bug of ours");
        });
        let breaks: Write = Box::new(|connection| {
            add(4)(connection)?;
            add(1)(connection)
        });
        let writes = vec![add(1), fails, panics, breaks, add(5)];
        let answers = together(&writer, writes);
        let good: Vec<_> = answers.iter().map(Result::is_ok).collect();
        assert_eq!(good, [true, false, false, false, true], "{answers:?}");
        assert!(matches!(answers[1], Err(StoreError::Refused(_))));
        assert!(matches!(answers[2], Err(StoreError::Unavailable(_))));
        assert!(matches!(answers[3], Err(StoreError::Unavailable(_))));
        assert_eq!(owners(&writer), [1, 5]);
    }

    #[test]
    fn a_failed_commit_answers_all_and_stores_nothing() {
        let writer = Writer::start(open::memory().unwrap()).unwrap();
        let poisons: Write = Box::new(|connection| {
            connection.execute_batch("PRAGMA defer_foreign_keys = ON")?;
            let orphan = "INSERT INTO run_arguments (seq, arguments) VALUES (9, '{}')";
            Ok(connection.execute(orphan, [])?)
        });
        let answers = together(&writer, vec![add(1), poisons, add(2)]);
        for answer in answers {
            assert!(
                matches!(answer, Err(StoreError::Unavailable(_))),
                "{answer:?}"
            );
        }
        assert_eq!(owners(&writer), [0_u8; 0]);
        assert!(
            together(&writer, vec![add(1)])[0].is_ok(),
            "the next one is stored"
        );
        assert_eq!(owners(&writer), [1]);
    }

    #[test]
    fn a_full_disk_fails_what_does_not_fit_and_nothing_after_it() {
        let connection = open::memory().unwrap();
        let pages: i64 = connection
            .pragma_query_value(None, "page_count", |row| row.get(0))
            .unwrap();
        connection
            .pragma_update(None, "max_page_count", pages + 8)
            .unwrap();
        let writer = Writer::start(connection).unwrap();
        let big: Write = Box::new(|connection| {
            let sql =
                "INSERT INTO projects (id, owner_id, name, created_at) VALUES (?1, ?1, ?2, 0)";
            let name = "x".repeat(100_000);
            Ok(connection.execute(sql, rusqlite::params![[1_u8; 16], name])?)
        });
        let failed = together(&writer, vec![big]).remove(0).unwrap_err();
        let StoreError::Unavailable(source) = failed else {
            panic!("{failed:?}");
        };
        let source = source.downcast_ref::<rusqlite::Error>().unwrap();
        let code = source.sqlite_error_code();
        assert_eq!(code, Some(rusqlite::ErrorCode::DiskFull));
        assert!(together(&writer, vec![add(1)])[0].is_ok());
        assert_eq!(owners(&writer), [1]);
    }
}
