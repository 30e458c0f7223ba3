//! The one thread that reads and writes artifact files: a file of 5 MB takes as long as hundreds of
//! reads of the database, too long for the threads that serve everybody.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{self, JoinHandle};

use callboard_store::StoreError;
use tokio::sync::{mpsc, oneshot};

/// Most jobs that wait, each of which may hold one file; whoever comes then waits to be let in.
const QUEUE_JOBS_MAX: usize = 8;

type Job = Box<dyn FnOnce() + Send>;

/// The handle of the thread. Dropping it lets the queued jobs finish and the thread end.
#[derive(Debug)]
pub(crate) struct FileThread {
    queue: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// The thread is gone.
#[derive(Debug, thiserror::Error)]
#[error("the files of artifacts gave no answer")]
struct NoAnswer;

fn gone() -> StoreError {
    StoreError::unavailable(NoAnswer)
}

impl FileThread {
    pub(crate) fn start() -> std::io::Result<Self> {
        let (queue, mut jobs) = mpsc::channel::<Job>(QUEUE_JOBS_MAX);
        let thread = thread::Builder::new()
            .name("callboard-files".to_owned())
            .spawn(move || {
                while let Some(job) = jobs.blocking_recv() {
                    // The job's caller hears that there is no answer; the next one is served.
                    drop(catch_unwind(AssertUnwindSafe(job)));
                }
            })?;
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
        })
    }

    /// Runs `job`, which answers through what it is handed. A job that has a place in the queue
    /// runs to its end even when its caller leaves.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        let sent = queue.send(Box::new(move || job(reply))).await;
        sent.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

impl Drop for FileThread {
    fn drop(&mut self) {
        self.queue.take();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
