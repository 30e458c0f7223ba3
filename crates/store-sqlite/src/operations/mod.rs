//! The synchronous core: what each operation does on one connection, inside the transaction that
//! the shell has opened (a writing one) or around the snapshot that it takes itself (a reading one).

pub(crate) mod artifacts;
pub(crate) mod chats;
pub(crate) mod console;
pub(crate) mod runs;
pub(crate) mod sharing;
pub(crate) mod sweeping;
pub(crate) mod tasks;
pub(crate) mod workspace;

use rusqlite::Connection;

use crate::error::Failure;

/// Runs several reads on one state of the database. Inside a writing transaction that is given
/// already, so that one calls the reads directly.
pub(crate) fn snapshot<T>(
    connection: &Connection,
    read: impl FnOnce(&Connection) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let snapshot = Snapshot::begin(connection)?;
    let answer = read(connection)?;
    snapshot.end()?;
    Ok(answer)
}

/// A reading transaction. Its statements are kept prepared, which rusqlite's own are not: parsing them
/// would cost as much as a short read.
struct Snapshot<'a>(&'a Connection);

impl<'a> Snapshot<'a> {
    fn begin(connection: &'a Connection) -> rusqlite::Result<Self> {
        run(connection, "BEGIN")?;
        Ok(Self(connection))
    }

    fn end(self) -> rusqlite::Result<()> {
        run(self.0, "COMMIT")
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit() {
            // There is nothing to undo; if even this fails, the next BEGIN says why.
            drop(run(self.0, "ROLLBACK"));
        }
    }
}

fn run(connection: &Connection, statement: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(statement)?.execute([]).map(drop)
}
