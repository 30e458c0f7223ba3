//! The synchronous core: what each operation does on one connection, inside the transaction that
//! the shell has opened (a writing one) or around the snapshot that it takes itself (a reading one).

pub(crate) mod artifacts;
pub(crate) mod chats;
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
    let transaction = connection.unchecked_transaction()?;
    let answer = read(&transaction)?;
    transaction.commit()?;
    Ok(answer)
}
