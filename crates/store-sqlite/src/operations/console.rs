//! What the owner sees of all commands, and the console's password and sign-ins.

use callboard_domain::graph_run::Status;
use callboard_domain::{CommandId, OwnerId, SignInId, Timestamp};
use callboard_store::{NewSignIn, OwnedRun, RunCount, RunFilter, SignIn, StoreError, TokenHash};
use rusqlite::{Connection, params};

use super::runs::settled;
use crate::error::Failure;
use crate::rows::{self, Cells, all, change, first, row_count};
use crate::sql;

pub(crate) fn owned_runs(
    connection: &Connection,
    owner_id: OwnerId,
    filter: RunFilter,
    limit: usize,
    now: Timestamp,
) -> Result<Vec<OwnedRun>, Failure> {
    let (owner, limit) = (owner_id.as_bytes(), row_count(limit));
    let before = match filter.before {
        None => i64::MAX,
        Some(id) => {
            let key = params![owner, id.as_bytes()];
            let found = first(connection, sql::SEQ_OF_OWNED_RUN, key, |cells| {
                Ok(cells.take()?)
            })?;
            match found {
                Some(seq) => seq,
                None => return Ok(Vec::new()),
            }
        }
    };
    let read = |cells: &mut Cells<'_>| settled_run(cells, now);
    match filter.status {
        None => {
            let key = params![owner, before, limit];
            all(connection, sql::OWNED_RUNS, key, read)
        }
        Some(status) => {
            let key = params![owner, before, limit, status.as_str()];
            all(connection, sql::OWNED_RUNS_BY_STATUS, key, read)
        }
    }
}

pub(crate) fn owned_run(
    connection: &Connection,
    owner_id: OwnerId,
    command_id: CommandId,
    now: Timestamp,
) -> Result<Option<OwnedRun>, Failure> {
    let key = params![owner_id.as_bytes(), command_id.as_bytes()];
    first(connection, sql::OWNED_RUN, key, |cells| {
        settled_run(cells, now)
    })
}

fn settled_run(cells: &mut Cells<'_>, now: Timestamp) -> Result<OwnedRun, Failure> {
    let owned = rows::owned_run(cells)?;
    Ok(OwnedRun {
        row: settled(owned.row, now),
        ..owned
    })
}

pub(crate) fn run_counts(
    connection: &Connection,
    owner_id: OwnerId,
) -> Result<Vec<RunCount>, Failure> {
    let key = [owner_id.as_bytes()];
    let mut counts = all(connection, sql::RUN_COUNTS, key, |cells| {
        let word: String = cells.take()?;
        let status = Status::from_word(&word)
            .ok_or_else(|| StoreError::unavailable(format!("a run is stored as {word}")))?;
        let count = cells.take::<i64>()?.cast_unsigned();
        Ok(RunCount { status, count })
    })?;
    counts.sort_by_key(|count| count.status);
    Ok(counts)
}

pub(crate) fn password_hash(
    connection: &Connection,
    owner_id: OwnerId,
) -> Result<Option<String>, Failure> {
    let key = [owner_id.as_bytes()];
    let found = first(connection, sql::PASSWORD_HASH, key, |cells| {
        Ok(cells.take()?)
    })?;
    Ok(found.flatten())
}

pub(crate) fn set_password_hash(
    connection: &Connection,
    owner_id: OwnerId,
    hash: Option<&str>,
) -> Result<(), Failure> {
    let row = params![owner_id.as_bytes(), hash];
    change(connection, sql::SET_PASSWORD_HASH, row)?;
    change(connection, sql::REMOVE_SIGN_INS, [owner_id.as_bytes()])?;
    Ok(())
}

pub(crate) fn add_sign_in(connection: &Connection, new: &NewSignIn) -> Result<(), Failure> {
    let SignIn {
        id,
        owner_id,
        user_agent,
        signed_in_at,
        expires_at,
    } = &new.sign_in;
    let key = params![owner_id.as_bytes(), signed_in_at.as_millis()];
    change(connection, sql::REMOVE_OLD_SIGN_INS, key)?;
    let row = params![
        id.as_bytes(),
        owner_id.as_bytes(),
        new.token_hash.as_bytes(),
        user_agent,
        signed_in_at.as_millis(),
        expires_at.as_millis()
    ];
    change(connection, sql::ADD_SIGN_IN, row)?;
    Ok(())
}

pub(crate) fn sign_in_by_token(
    connection: &Connection,
    token_hash: TokenHash,
    now: Timestamp,
) -> Result<Option<SignIn>, Failure> {
    let key = params![token_hash.as_bytes(), now.as_millis()];
    first(connection, sql::SIGN_IN_BY_TOKEN, key, rows::sign_in)
}

pub(crate) fn sign_ins(
    connection: &Connection,
    owner_id: OwnerId,
    now: Timestamp,
) -> Result<Vec<SignIn>, Failure> {
    let key = params![owner_id.as_bytes(), now.as_millis()];
    all(connection, sql::SIGN_INS, key, rows::sign_in)
}

pub(crate) fn end_sign_in(
    connection: &Connection,
    owner_id: OwnerId,
    id: SignInId,
) -> Result<bool, Failure> {
    let key = params![owner_id.as_bytes(), id.as_bytes()];
    Ok(change(connection, sql::REMOVE_SIGN_IN, key)? > 0)
}
