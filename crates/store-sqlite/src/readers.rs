//! The connections that only read.
//!
//! A read runs inline on the thread that asks: it takes tens of microseconds, and handing it to
//! another thread would cost more than the read (docs/decisions/0004-sqlite-store.md). It never
//! waits for the writer, and for another read only when all connections are busy.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

use rusqlite::Connection;

use crate::{OpenError, open};

/// Fewest read connections, so that one long read does not hold up all others.
const CONNECTIONS_MIN: usize = 2;
/// Most read connections: each may keep 16 MiB of pages.
const CONNECTIONS_MAX: usize = 16;

#[derive(Debug)]
pub(crate) struct Readers {
    connections: Vec<Mutex<Connection>>,
    turn: AtomicUsize,
}

impl Readers {
    /// Opens as many connections as the machine runs threads at once.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let cores = std::thread::available_parallelism().map_or(CONNECTIONS_MIN, usize::from);
        let connections = (0..cores.clamp(CONNECTIONS_MIN, CONNECTIONS_MAX))
            .map(|_| open::reader(path).map(Mutex::new))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            connections,
            turn: AtomicUsize::new(0),
        })
    }

    /// Runs `read` on a free connection, or on the next one as soon as it is free.
    pub(crate) fn with<T>(&self, read: impl FnOnce(&Connection) -> T) -> T {
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let count = self.connections.len();
        for step in 0..count {
            match self.connections[first.wrapping_add(step) % count].try_lock() {
                Ok(connection) => return read(&connection),
                Err(TryLockError::Poisoned(poisoned)) => return read(&poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        let next = self.connections[first % count].lock();
        read(&next.unwrap_or_else(PoisonError::into_inner))
    }
}
