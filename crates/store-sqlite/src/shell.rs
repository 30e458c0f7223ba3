//! [`SqliteStore`] and the two shells around the synchronous core: everything inline, or a file with its threads.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use callboard_domain::Timestamp;
use callboard_store::{Artifact, LinkKey, StoreError};
use rusqlite::{Connection as Sqlite, Transaction, TransactionBehavior};

use crate::contents::{Contents, Folder, file_name};
use crate::error::Failure;
use crate::file_thread::FileThread;
use crate::files::{self, Lock};
use crate::operations::{artifacts, snapshot};
use crate::readers::Readers;
use crate::writer::Writer;
use crate::{OpenError, open};

/// A store in one SQLite file and a folder of artifacts beside it, or in memory. Clones are cheap
/// and share it; the last one to be dropped lets the queued writes finish and closes the file.
#[derive(Debug, Clone)]
pub struct SqliteStore(pub(crate) Arc<Shell>);

impl SqliteStore {
    /// Opens the database at `path` for this process alone, making it and its folder if there are
    /// none, and brings an older one up to date.
    ///
    /// # Errors
    /// Every [`OpenError`]; a database that cannot be used is left as it was.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Ok(Self(Arc::new(Shell::open(path)?)))
    }

    /// A store in memory on one connection, without a thread: every future is ready at its first
    /// poll.
    ///
    /// # Errors
    /// [`OpenError::Sqlite`] when SQLite has no memory.
    pub fn inline_memory() -> Result<Self, OpenError> {
        Ok(Self(Arc::new(Shell::inline_memory()?)))
    }

    /// Transactions that this store has committed since it was opened. Many writes share one; an
    /// inline store has no such figure and gives zero.
    pub fn commit_count(&self) -> u64 {
        self.0.commits()
    }
}

#[derive(Debug)]
pub(crate) struct Shell {
    connections: Connections,
    contents: Arc<Contents>,
}

#[derive(Debug)]
enum Connections {
    Inline(Mutex<Sqlite>),
    /// Dropped in this order: what the file thread has begun still reaches the writer, and that
    /// closes the database last, which folds its log into it.
    File {
        readers: Readers,
        files: FileThread,
        writer: Writer,
        _lock: Lock,
    },
}

impl Shell {
    fn inline_memory() -> Result<Self, OpenError> {
        Ok(Self {
            connections: Connections::Inline(Mutex::new(open::memory()?)),
            contents: Arc::new(Contents::memory()),
        })
    }

    fn open(path: &Path) -> Result<Self, OpenError> {
        let lock = Lock::take(path)?;
        files::private_file(path)?;
        let connection = open::writer(path)?;
        let readers = Readers::open(path)?;
        files::sync_folder(path)?;
        let folder = Folder::beside(path);
        folder.clear(|file| {
            let named = artifacts::is_named(&connection, file);
            named.map_err(|source| OpenError::sqlite(path, source))
        })?;
        let failed = |source| OpenError::files(path, source);
        let files = FileThread::start().map_err(failed)?;
        let writer = Writer::start(connection).map_err(failed)?;
        Ok(Self {
            connections: Connections::File {
                readers,
                files,
                writer,
                _lock: lock,
            },
            contents: Arc::new(Contents::Folder(folder)),
        })
    }

    fn commits(&self) -> u64 {
        match &self.connections {
            Connections::Inline(_) => 0,
            Connections::File { writer, .. } => writer.commits(),
        }
    }

    pub(crate) fn ready(&self) -> Result<(), StoreError> {
        match &self.connections {
            Connections::Inline(_) => Ok(()),
            Connections::File { writer, .. } => writer.ready(),
        }
    }

    /// Runs one statement that reads.
    pub(crate) fn read<T>(
        &self,
        operation: impl FnOnce(&Sqlite) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let answer = match &self.connections {
            Connections::Inline(connection) => {
                operation(&connection.lock().unwrap_or_else(PoisonError::into_inner))
            }
            Connections::File { readers, .. } => readers.with(operation),
        };
        answer.map_err(|failure| failure.0)
    }

    /// Runs several that read on one state of the database.
    pub(crate) fn read_all<T>(
        &self,
        operation: impl FnOnce(&Sqlite) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.read(|sqlite| snapshot(sqlite, operation))
    }

    pub(crate) async fn write<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Sqlite) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        match &self.connections {
            Connections::Inline(connection) => write_inline(connection, operation),
            Connections::File { writer, .. } => writer.write(operation).await,
        }
    }

    /// Stores the bytes, then the row. What is refused or was there before writes no file, unless
    /// the file of the stored row is gone or damaged: whoever hears that it is stored may throw his
    /// own away.
    pub(crate) async fn upload(
        &self,
        key: LinkKey,
        artifact: Artifact,
        bytes: Vec<u8>,
        now: Timestamp,
    ) -> Result<(Artifact, bool), StoreError> {
        let stored = self.read_all(|sqlite| artifacts::answered(sqlite, key, &artifact, now))?;
        if let Some(stored) = stored {
            let holds = |contents: &Contents| Ok((contents.holds(&stored)?, stored));
            if let (true, stored) = self.with_files(holds).await? {
                return Ok((stored, true));
            }
        }
        let (contents, file) = (Arc::clone(&self.contents), file_name(&artifact));
        match &self.connections {
            Connections::Inline(connection) => {
                let put = contents.put(file, bytes);
                put.map_err(StoreError::unavailable)?;
                write_inline(connection, |sqlite| {
                    artifacts::upload(sqlite, &contents, key, artifact, now)
                })
            }
            Connections::File { files, writer, .. } => {
                let door = writer.door()?;
                // The file thread hands on to the writer itself, so that a caller who leaves
                // meanwhile leaves no file without its row.
                let job = files.run(move |reply| match contents.put(file, bytes) {
                    Ok(()) => {
                        let row = move |sqlite: &Sqlite| {
                            artifacts::upload(sqlite, &contents, key, artifact, now)
                        };
                        door.write(row, reply);
                    }
                    // Whoever left does not want to know.
                    Err(source) => drop(reply.send(Err(StoreError::unavailable(source)))),
                });
                job.await
            }
        }
    }

    /// The bytes of a stored artifact.
    pub(crate) async fn bytes(
        &self,
        artifact: Artifact,
    ) -> Result<(Artifact, Vec<u8>), StoreError> {
        self.with_files(|contents| Ok((contents.get(&artifact)?, artifact)))
            .await
            .map(|(bytes, artifact)| (artifact, bytes))
    }

    /// Runs `job` where files are read.
    async fn with_files<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Contents) -> io::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let contents = Arc::clone(&self.contents);
        let run = move || job(&contents).map_err(StoreError::unavailable);
        match &self.connections {
            Connections::Inline(_) => run(),
            Connections::File { files, .. } => {
                files.run(move |reply| drop(reply.send(run()))).await
            }
        }
    }
}

fn write_inline<T>(
    connection: &Mutex<Sqlite>,
    operation: impl FnOnce(&Sqlite) -> Result<T, Failure>,
) -> Result<T, StoreError> {
    let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
    let write = || {
        let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate)?;
        let answer = operation(&transaction)?;
        transaction.commit()?;
        Ok(answer)
    };
    write().map_err(|failure: Failure| failure.0)
}

#[cfg(test)]
mod tests {
    use callboard_domain::{Digest, Refusal};
    use callboard_store::{NewArtifact, Store, rules};
    use callboard_store_testkit::block_on;
    use callboard_store_testkit::chat_world::file;
    use callboard_store_testkit::world::{Workspace, World, at, refusal};

    use super::*;

    /// A claimed task, and the upload of a file for it as far as the file.
    struct Desk {
        world: World<SqliteStore>,
        workspace: Workspace,
        chat: LinkKey,
        artifact: Artifact,
        new: NewArtifact,
    }

    impl Desk {
        fn new() -> Self {
            let world = World::new(SqliteStore::inline_memory().unwrap());
            block_on(async {
                let workspace = world.workspace().await;
                let chat = world.chat(&workspace, "Tax").await;
                let row = world.assign(&workspace, &[chat], "Sum it up").await;
                let (row, claim) = world.claimed(chat, &row, 0).await;
                let new = file(claim, "sums", b"1, 2");
                let content = Digest::plain(&new.content);
                let (link_id, task_id) = (chat.link_id, row.task_id);
                let artifact = rules::stored_artifact(link_id, task_id, &new, content, at(1));
                Self {
                    world,
                    workspace,
                    chat,
                    artifact,
                    new,
                }
            })
        }

        fn put(&self) {
            let (file, bytes) = (file_name(&self.artifact), self.new.content.clone());
            self.world.store.0.contents.put(file, bytes).unwrap();
        }

        fn has(&self) -> bool {
            let contents = &self.world.store.0.contents;
            contents.has(file_name(&self.artifact)).unwrap()
        }

        /// The second half of an upload: the row.
        fn name(&self) -> Result<(Artifact, bool), StoreError> {
            let shell = &self.world.store.0;
            let (contents, artifact) = (Arc::clone(&shell.contents), self.artifact.clone());
            let chat = self.chat;
            let row =
                move |sqlite: &Sqlite| artifacts::upload(sqlite, &contents, chat, artifact, at(2));
            block_on(shell.write(row))
        }

        fn revoke(&self) {
            let (owner_id, link_id) = (self.workspace.owner_id, self.chat.link_id);
            let revoked = self.world.store.revoke_chat_link(owner_id, link_id, at(1));
            assert!(block_on(revoked).unwrap().is_some());
        }
    }

    #[test]
    fn a_file_that_is_refused_after_all_goes() {
        let desk = Desk::new();
        desk.put();
        desk.revoke();
        assert_eq!(refusal(desk.name()), Refusal::SubmitMissing);
        assert!(!desk.has());
    }

    #[test]
    fn a_file_that_a_row_names_stays_whatever_a_second_upload_of_it_meets() {
        let desk = Desk::new();
        desk.put();
        assert_eq!(desk.name().unwrap(), (desk.artifact.clone(), false));
        desk.put();
        assert_eq!(desk.name().unwrap(), (desk.artifact.clone(), true));
        desk.revoke();
        desk.put();
        assert_eq!(refusal(desk.name()), Refusal::SubmitMissing);
        assert!(desk.has());
    }

    #[test]
    fn no_row_is_stored_for_a_file_that_is_gone() {
        let desk = Desk::new();
        let failed = desk.name().unwrap_err();
        assert!(matches!(failed, StoreError::Unavailable(_)), "{failed:?}");
        desk.put();
        assert!(!desk.name().unwrap().1, "it can be repeated");
    }
}
