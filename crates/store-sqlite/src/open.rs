//! How a connection is set up, and the numbered migrations.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::OpenError;

/// `0001_first.sql` makes version 1, and so on. Never edited after a release.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_first.sql"),
    include_str!("../migrations/0002_linked_chats.sql"),
    include_str!("../migrations/0003_console.sql"),
];

/// Marks the file as ours in its header: "CBhb", for tools that tell files apart and for us.
const APPLICATION_ID: i32 = 0x4342_6862;

/// How long a connection waits for another process that writes, in milliseconds; our own threads
/// never wait for each other.
const BUSY_TIMEOUT_MS: u64 = 5_000;
/// Prepared statements that a connection keeps: more than there are.
pub(crate) const STATEMENTS_KEPT: usize = 128;

/// The newest version that this program knows.
pub(crate) fn known_version() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

/// What a database file turned out to be.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Ours(u32),
    Foreign,
}

/// The connection that writes. It brings an older database up to date.
pub(crate) fn writer(path: &Path) -> Result<Connection, OpenError> {
    let failed = |source| OpenError::sqlite(path, source);
    let mut connection = connect(path).map_err(failed)?;
    match look(&connection).map_err(failed)? {
        Found::Foreign => {
            let path = path.to_path_buf();
            return Err(OpenError::NotADatabase { path });
        }
        Found::Ours(found) if found > known_version() => {
            return Err(OpenError::Newer {
                path: path.to_path_buf(),
                found,
                known: known_version(),
            });
        }
        Found::Ours(_) => {}
    }
    set_up(&connection).map_err(failed)?;
    migrate(&mut connection).map_err(failed)?;
    Ok(connection)
}

/// A connection that can only read.
pub(crate) fn reader(path: &Path) -> Result<Connection, OpenError> {
    let open = || {
        let connection = connect(path)?;
        set_up(&connection)?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    };
    open().map_err(|source| OpenError::sqlite(path, source))
}

/// A database in memory, empty and up to date.
pub(crate) fn memory() -> Result<Connection, OpenError> {
    let open = || {
        let mut connection = Connection::open_in_memory()?;
        keep_plans(&connection)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        migrate(&mut connection)?;
        Ok(connection)
    };
    open().map_err(|source| OpenError::sqlite(Path::new(":memory:"), source))
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    // Each connection stays with one thread or behind one lock, so SQLite needs no lock of its own.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_millis(BUSY_TIMEOUT_MS))?;
    keep_plans(&connection)?;
    Ok(connection)
}

/// Lets a prepared statement stay as it was planned. Otherwise SQLite, as it is bundled, plans many
/// of ours anew each time they are bound, at ten times the price of running them.
fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Looks without changing anything, so that a database that is not for us stays as it was.
fn look(connection: &Connection) -> rusqlite::Result<Found> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (version, application) = (number("user_version")?, number("application_id")?);
    let tables: u32 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let fresh = version == 0 && application == 0 && tables == 0;
    Ok(match u32::try_from(version) {
        Ok(version) if fresh || application == APPLICATION_ID => Found::Ours(version),
        Ok(_) | Err(_) => Found::Foreign,
    })
}

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA foreign_keys = ON;
         PRAGMA wal_autocheckpoint = 4000;
         PRAGMA journal_size_limit = 67108864;
         PRAGMA cache_size = -16384;
         PRAGMA temp_store = MEMORY;",
    )
}

fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let version = |connection: &Connection| {
        connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0))
    };
    if version(connection)? == known_version() {
        return Ok(());
    }
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    // Asked again: another process may have done it before this one had the lock.
    let done = usize::try_from(version(&transaction)?).unwrap_or(usize::MAX);
    for migration in MIGRATIONS.iter().skip(done) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", known_version())?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_has_the_settings_that_durability_and_speed_need() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hub.sqlite3");
        crate::files::private_file(&path).unwrap();
        let (writer, reader) = (writer(&path).unwrap(), reader(&path).unwrap());
        let number = |connection: &Connection, name: &str| -> i64 {
            let value = connection.pragma_query_value(None, name, |row| row.get(0));
            value.unwrap()
        };
        for connection in [&writer, &reader] {
            let mode = connection.pragma_query_value(None, "journal_mode", |row| row.get(0));
            assert_eq!(mode, Ok("wal".to_owned()));
            assert_eq!(number(connection, "synchronous"), 2, "FULL");
            assert_eq!(number(connection, "foreign_keys"), 1);
            assert_eq!(number(connection, "busy_timeout"), 5_000);
        }
        assert_eq!(number(&writer, "query_only"), 0);
        assert_eq!(number(&writer, "wal_autocheckpoint"), 4_000);
        assert_eq!(number(&reader, "query_only"), 1);
        let refused = reader.execute_batch("DELETE FROM owners").unwrap_err();
        let code = refused.sqlite_error_code();
        assert_eq!(code, Some(rusqlite::ErrorCode::ReadOnly));
    }
}
