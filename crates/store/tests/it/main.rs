//! The in-memory store against the suite of every store.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use callboard_domain::OwnerId;
use callboard_store::{MemoryStore, Store};
use callboard_store_testkit::world::START;
use callboard_store_testkit::{block_on, exercise, histories, races};

#[test]
fn every_operation_does_what_the_suite_says() {
    exercise(MemoryStore::default);
}

#[test]
fn eight_callers_at_once_agree_on_one_outcome() {
    races(MemoryStore::default);
}

#[test]
fn random_histories_are_the_same_twice() {
    histories(MemoryStore::default, 0..20);
}

#[test]
#[should_panic(expected = "CALLBOARD_SEED")]
fn a_store_that_answers_differently_is_found_by_a_history() {
    // One that knows an owner already answers the first question about owners with that one.
    histories(
        || {
            let store = MemoryStore::default();
            let stranger = OwnerId::from_bytes([7; 16]);
            block_on(store.ensure_owner(stranger, START)).unwrap();
            store
        },
        0..60,
    );
}
