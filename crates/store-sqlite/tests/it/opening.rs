//! What happens to files: made, opened again, refused.

use std::fs;
use std::path::{Path, PathBuf};

use callboard_ambient::Entropy;
use callboard_store::Store;
use callboard_store_sqlite::{OpenError, SqliteStore};
use callboard_store_testkit::block_on;
use callboard_store_testkit::world::{World, at, key};
use rusqlite::Connection;
use tempfile::TempDir;

/// A path for a database in a folder that goes with the first value.
pub(crate) fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hub.sqlite3");
    (folder, path)
}

fn raw(path: &Path) -> Connection {
    Connection::open(path).unwrap()
}

/// What opening `path` says, with the folder taken out.
fn refused(path: &Path) -> String {
    let error = SqliteStore::open(path).unwrap_err().to_string();
    error.replace(path.to_str().unwrap(), "DATABASE")
}

#[test]
fn what_was_stored_is_there_after_the_next_start() {
    let (_folder, path) = place();
    let world = World::new(SqliteStore::open(&path).unwrap());
    let (row, workspace) = block_on(async {
        let workspace = world.workspace().await;
        let (row, _) = world.start(&workspace, "survives-a-restart").await;
        (row, workspace)
    });
    drop(world);
    let log = path.with_file_name("hub.sqlite3-wal");
    assert!(
        !log.exists(),
        "the log is folded into the database at the end"
    );

    let store = SqliteStore::open(&path).unwrap();
    let read = block_on(store.run(key(&row), at(1_000))).unwrap();
    assert_eq!(read, Some(row));
    let found = block_on(store.connection_by_token(workspace.connection_token)).unwrap();
    assert_eq!(found, Some(workspace.connection));
}

#[cfg(unix)]
#[test]
fn folder_and_files_are_for_their_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("data").join("hub");
    let store = SqliteStore::open(&inner.join("hub.sqlite3")).unwrap();
    block_on(World::new(store.clone()).workspace());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&inner), 0o700);
    assert_eq!(mode(&folder.path().join("data")), 0o700);
    let mut names = Vec::new();
    for entry in fs::read_dir(&inner).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{path:?}");
        names.push(path.file_name().unwrap().to_str().unwrap().to_owned());
    }
    names.sort();
    let suffixes = ["", "-shm", "-wal", ".lock"];
    assert_eq!(names, suffixes.map(|suffix| format!("hub.sqlite3{suffix}")));
}

#[test]
fn a_database_of_a_newer_version_is_refused_and_left_as_it_was() {
    let (_folder, path) = place();
    drop(SqliteStore::open(&path).unwrap());
    raw(&path).pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(&path).unwrap();
    let error = SqliteStore::open(&path).unwrap_err();
    let newer = |error: &OpenError| {
        matches!(
            error,
            OpenError::Newer {
                found: 99,
                known: 3,
                ..
            }
        )
    };
    assert!(newer(&error), "{error:?}");
    assert_eq!(
        refused(&path),
        "DATABASE was written by a newer Callboard (database version 99, this one knows 3): \
         update Callboard, or use another data folder"
    );
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_database_of_version_1_keeps_its_rows_and_gains_what_came_later() {
    let (_folder, path) = place();
    let now = path.with_file_name("now.sqlite3");
    let world = World::new(SqliteStore::open(&now).unwrap());
    let (row, workspace) = block_on(async {
        let workspace = world.workspace().await;
        let (row, _) = world.start(&workspace, "older-than-the-chats").await;
        (row, workspace)
    });
    drop(world.store);
    make_version_1(&path, &now);

    let mut world = World::new(SqliteStore::open(&path).unwrap());
    world.entropy = Entropy::system();
    block_on(async {
        let read = world.store.run(key(&row), at(1_000)).await.unwrap();
        assert_eq!(read.as_ref(), Some(&row));
        let found = world.store.connection_by_token(workspace.connection_token);
        assert_eq!(found.await.unwrap().as_ref(), Some(&workspace.connection));
        let owned = world
            .store
            .owned_run(workspace.owner_id, row.command_id, at(1_000));
        assert_eq!(
            owned.await.unwrap().map(|owned| owned.row).as_ref(),
            Some(&row)
        );
        let chat = world.chat(&workspace, "Tax").await;
        let task = world.assign(&workspace, &[chat], "Sum it up").await;
        assert_eq!(world.inbox(chat, 1).await, [task]);
    });
    drop(world.store);
    let version = raw(&path).pragma_query_value(None, "user_version", |row| row.get(0));
    assert_eq!(version, Ok(3));
    let store = SqliteStore::open(&path).unwrap();
    let read = block_on(store.run(key(&row), at(1_000))).unwrap();
    assert_eq!(read, Some(row));
}

/// Makes a database as the first release did, with the rows that `from` has in those tables.
fn make_version_1(path: &Path, from: &Path) {
    let old = raw(path);
    old.execute_batch(include_str!("../../migrations/0001_first.sql"))
        .unwrap();
    let from = from.to_str().unwrap();
    old.execute("ATTACH ?1 AS newer", [from]).unwrap();
    old.pragma_update(None, "application_id", 0x4342_6862)
        .unwrap();
    old.pragma_update(None, "user_version", 1).unwrap();
    let mut statement = old
        .prepare("SELECT name FROM main.sqlite_schema WHERE type = 'table' ORDER BY rowid")
        .unwrap();
    let names = statement.query_map([], |row| row.get::<_, String>(0));
    for name in names.unwrap().map(Result::unwrap) {
        let mut columns = old
            .prepare("SELECT name FROM pragma_table_info(?1, 'main')")
            .unwrap();
        let columns = columns.query_map([&name], |row| row.get::<_, String>(0));
        let columns: Vec<_> = columns.unwrap().map(Result::unwrap).collect();
        let columns = columns.join(", ");
        let sql = format!("INSERT INTO main.{name} SELECT {columns} FROM newer.{name}");
        old.execute(&sql, []).unwrap();
    }
}

#[test]
fn a_file_that_is_something_else_is_refused_and_left_as_it_was() {
    let (_folder, path) = place();
    let text = "not a database, but long enough to have been one. ".repeat(40);
    fs::write(&path, &text).unwrap();
    let sentence = "DATABASE is not a Callboard database: move it away, or use another data folder";
    assert_eq!(refused(&path), sentence);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);

    fs::remove_file(&path).unwrap();
    let other = raw(&path);
    other
        .execute_batch("CREATE TABLE diary (day TEXT)")
        .unwrap();
    drop(other);
    let before = fs::read(&path).unwrap();
    assert_eq!(refused(&path), sentence, "a database of another program");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_damaged_database_is_refused() {
    let (_folder, path) = place();
    drop(SqliteStore::open(&path).unwrap());
    let mut bytes = fs::read(&path).unwrap();
    // The header stays; the page of the schema behind it does not.
    bytes[100..1_000].fill(0xff);
    fs::write(&path, bytes).unwrap();
    assert_eq!(
        refused(&path),
        "DATABASE is damaged: restore it from a backup"
    );
}

#[test]
fn a_second_hub_is_refused_and_told_who_holds_the_database() {
    let (_folder, path) = place();
    let first = SqliteStore::open(&path).unwrap();
    let pid = std::process::id();
    let sentence = format!(
        "DATABASE is in use by another Callboard (process {pid}): stop that one, or use another \
         data folder"
    );
    assert_eq!(refused(&path), sentence);
    let clone = first.clone();
    drop(first);
    assert_eq!(refused(&path), sentence, "a clone still uses it");
    drop(clone);
    SqliteStore::open(&path).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_place_where_nothing_can_be_written_is_named() {
    // Not even the superuser makes folders there.
    let path = Path::new("/sys/callboard/hub.sqlite3");
    let error = SqliteStore::open(path).unwrap_err();
    assert_eq!(
        error.to_string(),
        "/sys/callboard cannot be written: give the user who runs Callboard access to it and its \
         folder"
    );
}

#[test]
fn a_folder_in_the_place_of_the_database_is_named() {
    let (_folder, path) = place();
    fs::create_dir(&path).unwrap();
    let sentence = refused(&path);
    assert!(
        sentence.starts_with("DATABASE cannot be opened: "),
        "{sentence}"
    );
}
