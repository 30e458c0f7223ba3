//! The desktop's SQLite file: opening, migrations, settings. One thread owns the connection; each
//! write is one durable transaction.

mod executions;
mod graphs;
mod projects;
mod relay_rows;
mod view;

use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

pub(crate) use executions::{NewLocalRun, Record, RunRow};
pub(crate) use graphs::{GraphRow, NewGraph};
pub(crate) use projects::{ProjectRow, ShareError};
pub(crate) use relay_rows::OutboxRow;
pub(crate) use view::DiskView;

/// What SQLite answers.
pub(crate) type Result<T> = std::result::Result<T, rusqlite::Error>;

/// Numbered from 1; never edited after a release.
const MIGRATIONS: [&str; 1] = [include_str!("0001.sql")];

/// The file's name in the data folder.
pub(crate) const FILE_NAME: &str = "desktop.db";

/// Why the file cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenFailure {
    /// A later program wrote it.
    #[error("version {found} is newer than {known}")]
    Newer { found: u32, known: u32 },
    /// The system said no.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// SQLite said no.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

/// The open file.
#[derive(Debug)]
pub(crate) struct Database {
    connection: Connection,
}

impl Database {
    /// Opens or creates the file and brings it to the present version.
    pub(crate) fn open(path: &Path) -> std::result::Result<Self, OpenFailure> {
        make_private(path)?;
        let mut connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // A completion that was announced as stored survives a power cut.
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.set_prepared_statement_cache_capacity(64);
        // Otherwise this build of SQLite plans many statements anew each time they are bound.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        migrate(&mut connection)?;
        Ok(Self { connection })
    }

    /// The value of a setting; if there is none, `make` decides it for good.
    pub(crate) fn setting_or(&self, name: &str, make: impl FnOnce() -> String) -> Result<String> {
        if let Some(value) = self.setting(name)? {
            return Ok(value);
        }
        let value = make();
        self.set_setting(name, &value)?;
        Ok(value)
    }

    /// The value of a setting.
    pub(crate) fn setting(&self, name: &str) -> Result<Option<String>> {
        self.connection
            .prepare_cached("SELECT value FROM settings WHERE name = ?1")?
            .query_row([name], |row| row.get(0))
            .optional()
    }

    fn set_setting(&self, name: &str, value: &str) -> Result<()> {
        self.connection
            .prepare_cached(
                "INSERT INTO settings (name, value) VALUES (?1, ?2)
                 ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            )?
            .execute(params![name, value])?;
        Ok(())
    }

    /// The granted folders, in order of their paths.
    pub(crate) fn folders(&self) -> Result<Vec<(String, i64)>> {
        self.connection
            .prepare_cached("SELECT path, granted_at_ms FROM folders ORDER BY path")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect()
    }

    /// Grants a folder; false when it was granted before.
    pub(crate) fn grant_folder(&self, path: &str, now_ms: i64) -> Result<bool> {
        let rows = self
            .connection
            .prepare_cached("INSERT OR IGNORE INTO folders (path, granted_at_ms) VALUES (?1, ?2)")?
            .execute(params![path, now_ms])?;
        Ok(rows > 0)
    }

    /// Takes a grant back; false when there was none.
    pub(crate) fn revoke_folder(&self, path: &str) -> Result<bool> {
        let rows = self
            .connection
            .prepare_cached("DELETE FROM folders WHERE path = ?1")?
            .execute([path])?;
        Ok(rows > 0)
    }

    /// Lets a test fill the disk: SQLite refuses to grow beyond its present size.
    #[cfg(test)]
    pub(crate) fn set_full(&self, full: bool) {
        let pages: i64 = self
            .connection
            .pragma_query_value(None, "page_count", |row| row.get(0))
            .unwrap();
        let max = if full { pages } else { 1 << 30 };
        self.connection
            .pragma_update(None, "max_page_count", max)
            .unwrap();
    }
}

/// Results and arguments are the owner's alone, whatever the folder's mode is. SQLite gives the
/// files beside it the same mode.
fn make_private(path: &Path) -> std::result::Result<(), OpenFailure> {
    use std::os::unix::fs::OpenOptionsExt as _;
    std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    Ok(())
}

fn migrate(connection: &mut Connection) -> std::result::Result<(), OpenFailure> {
    let transaction = connection.transaction()?;
    let found: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let mut known = 0_u32;
    for migration in MIGRATIONS {
        if found <= known {
            transaction.execute_batch(migration)?;
        }
        known += 1;
    }
    if found > known {
        return Err(OpenFailure::Newer { found, known });
    }
    if found < known {
        transaction.pragma_update(None, "user_version", known)?;
    }
    transaction.commit()?;
    Ok(())
}

/// Reads an id, or another value that is stored as its text.
fn parsed<T>(row: &Row<'_>, index: usize) -> Result<T>
where
    T: FromStr<Err: Display>,
{
    let text: String = row.get(index)?;
    text.parse().map_err(|error: T::Err| {
        let error = format!("{error}: {text}").into();
        rusqlite::Error::FromSqlConversionFailure(index, rusqlite::types::Type::Text, error)
    })
}

/// The same for a column that may be null.
fn parsed_or_null<T>(row: &Row<'_>, index: usize) -> Result<Option<T>>
where
    T: FromStr<Err: Display>,
{
    match row.get_ref(index)? {
        rusqlite::types::ValueRef::Null => Ok(None),
        rusqlite::types::ValueRef::Integer(_)
        | rusqlite::types::ValueRef::Real(_)
        | rusqlite::types::ValueRef::Text(_)
        | rusqlite::types::ValueRef::Blob(_) => parsed(row, index).map(Some),
    }
}

/// SQLite has signed numbers only; what does not fit never occurs.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(row: &Row<'_>, index: usize) -> Result<u64> {
    Ok(unsigned_or_null(row, index)?.unwrap_or(0))
}

fn unsigned_or_null(row: &Row<'_>, index: usize) -> Result<Option<u64>> {
    let number: Option<i64> = row.get(index)?;
    Ok(number.and_then(|number| u64::try_from(number).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_a_newer_version_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        let database = Database::open(&path).unwrap();
        database
            .connection
            .pragma_update(None, "user_version", 99)
            .unwrap();
        drop(database);
        let refused = Database::open(&path).unwrap_err();
        assert!(matches!(refused, OpenFailure::Newer { found: 99, .. }));
    }

    #[test]
    fn the_files_are_the_owners_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&folder.path().join(FILE_NAME)).unwrap();
        database.setting_or("worker_id", || "one".into()).unwrap();
        let files = std::fs::read_dir(folder.path()).unwrap();
        let modes: Vec<_> = files
            .map(|file| file.unwrap().metadata().unwrap().permissions().mode() & 0o777)
            .collect();
        assert!(
            modes.len() > 1 && modes.iter().all(|mode| *mode == 0o600),
            "{modes:?}"
        );
    }

    #[test]
    fn opening_twice_keeps_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        let first = Database::open(&path).unwrap();
        first.setting_or("worker_id", || "one".into()).unwrap();
        drop(first);
        let again = Database::open(&path).unwrap();
        let kept = again.setting_or("worker_id", || "two".into()).unwrap();
        assert_eq!(kept, "one");
    }
}
