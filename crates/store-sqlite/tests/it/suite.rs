//! The suite of every store: in memory for volume, on a file for the threads.

use std::cell::Cell;
use std::pin::pin;
use std::task::{Context, Waker};

use callboard_store_sqlite::SqliteStore;
use callboard_store_testkit::{exercise, histories, history, races};

/// Makes stores on files of one folder, which goes with the maker.
fn on_files() -> impl Fn() -> SqliteStore {
    let (folder, made) = (tempfile::tempdir().unwrap(), Cell::new(0));
    move || {
        made.set(made.get() + 1);
        let path = folder.path().join(format!("{}.sqlite3", made.get()));
        SqliteStore::open(&path).unwrap()
    }
}

fn in_memory() -> SqliteStore {
    SqliteStore::inline_memory().unwrap()
}

#[test]
fn every_operation_does_what_the_suite_says() {
    exercise(in_memory);
    exercise(on_files());
}

#[test]
fn eight_callers_at_once_agree_on_one_outcome() {
    races(on_files());
}

#[test]
fn random_histories_match_the_in_memory_store() {
    histories(in_memory, 0..80);
    histories(on_files(), 1_000..1_004);
}

#[test]
fn every_future_of_the_inline_store_is_ready_at_its_first_poll() {
    let store = in_memory();
    let whole = pin!(history(&store, 7));
    let polled = whole.poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_ready());
}
