//! Owner, projects, desktops and connections.

use callboard_domain::{DesktopId, OwnerId, Refusal, Timestamp, WorkerId};
use callboard_store::{
    Connection, Desktop, NewConnection, NewDesktop, NewProject, Project, StoreError, TokenHash,
    rules,
};
use rusqlite::{Connection as Sqlite, params};

use crate::error::Failure;
use crate::rows::{self, all, any, change, first};
use crate::sql;

pub(crate) fn owner(sqlite: &Sqlite) -> Result<Option<OwnerId>, Failure> {
    first(sqlite, sql::OWNER, [], |cells| {
        Ok(OwnerId::from_bytes(cells.take()?))
    })
}

pub(crate) fn ensure_owner(
    sqlite: &Sqlite,
    fresh_id: OwnerId,
    now: Timestamp,
) -> Result<OwnerId, Failure> {
    if let Some(owner_id) = owner(sqlite)? {
        return Ok(owner_id);
    }
    let row = params![fresh_id.as_bytes(), now.as_millis()];
    change(sqlite, sql::ADD_OWNER, row)?;
    Ok(fresh_id)
}

pub(crate) fn create_project(sqlite: &Sqlite, new: NewProject) -> Result<Project, Failure> {
    let NewProject { project, now } = new;
    let owner_id = project.owner_id.as_bytes();
    if any(sqlite, sql::PROJECT_NAMED, params![owner_id, project.name])? {
        return Err(StoreError::NameTaken.into());
    }
    let row = params![
        project.id.as_bytes(),
        owner_id,
        project.name,
        now.as_millis()
    ];
    change(sqlite, sql::ADD_PROJECT, row)?;
    Ok(project)
}

pub(crate) fn projects(sqlite: &Sqlite, owner_id: OwnerId) -> Result<Vec<Project>, Failure> {
    all(sqlite, sql::PROJECTS, [owner_id.as_bytes()], rows::project)
}

pub(crate) fn create_desktop(sqlite: &Sqlite, new: NewDesktop) -> Result<Desktop, Failure> {
    let owner_id = new.owner_id.as_bytes();
    if any(sqlite, sql::DESKTOP_NAMED, params![owner_id, new.name])? {
        return Err(StoreError::NameTaken.into());
    }
    let row = params![
        new.id.as_bytes(),
        owner_id,
        new.name,
        new.token_hash.as_bytes(),
        new.now.as_millis()
    ];
    change(sqlite, sql::ADD_DESKTOP, row)?;
    Ok(Desktop {
        id: new.id,
        owner_id: new.owner_id,
        name: new.name,
        worker_id: None,
        last_seen_at: None,
    })
}

pub(crate) fn desktops(sqlite: &Sqlite, owner_id: OwnerId) -> Result<Vec<Desktop>, Failure> {
    all(sqlite, sql::DESKTOPS, [owner_id.as_bytes()], rows::desktop)
}

pub(crate) fn desktop_by_token(
    sqlite: &Sqlite,
    token_hash: TokenHash,
) -> Result<Option<Desktop>, Failure> {
    let key = [token_hash.as_bytes()];
    first(sqlite, sql::DESKTOP_BY_TOKEN, key, rows::desktop)
}

pub(crate) fn rebind_desktop(
    sqlite: &Sqlite,
    owner_id: OwnerId,
    name: &str,
) -> Result<bool, Failure> {
    let freed = change(
        sqlite,
        sql::FREE_DESKTOP,
        params![owner_id.as_bytes(), name],
    )?;
    Ok(freed > 0)
}

/// Whether `worker_id` is new to the desktop, so that it must be stored.
pub(crate) fn needs_worker(
    sqlite: &Sqlite,
    desktop_id: DesktopId,
    worker_id: WorkerId,
) -> Result<bool, Failure> {
    let found = first(sqlite, sql::WORKER, [desktop_id.as_bytes()], |cells| {
        Ok(cells.take::<Option<_>>()?.map(WorkerId::from_bytes))
    })?;
    match found {
        Some(bound) => Ok(rules::bind_worker(bound, worker_id)?),
        None => Ok(false),
    }
}

pub(crate) fn bind_worker(
    sqlite: &Sqlite,
    desktop_id: DesktopId,
    worker_id: WorkerId,
) -> Result<(), Failure> {
    if needs_worker(sqlite, desktop_id, worker_id)? {
        let row = params![desktop_id.as_bytes(), worker_id.as_bytes()];
        change(sqlite, sql::SET_WORKER, row)?;
    }
    Ok(())
}

pub(crate) fn note_seen(sqlite: &Sqlite, seen: &[(DesktopId, Timestamp)]) -> Result<(), Failure> {
    for (desktop_id, at) in seen {
        let row = params![desktop_id.as_bytes(), at.as_millis()];
        change(sqlite, sql::SET_SEEN, row)?;
    }
    Ok(())
}

pub(crate) fn create_connection(
    sqlite: &Sqlite,
    new: NewConnection,
) -> Result<Connection, Failure> {
    let (id, owner_id) = (new.id.as_bytes(), new.owner_id.as_bytes());
    for project_id in &new.projects {
        let key = params![project_id.as_bytes(), owner_id];
        if !any(sqlite, sql::PROJECT_OWNED, key)? {
            return Err(Refusal::ProjectNotFound.into());
        }
    }
    if any(sqlite, sql::CONNECTION_NAMED, params![owner_id, new.name])? {
        return Err(StoreError::NameTaken.into());
    }
    let row = params![
        id,
        owner_id,
        new.name,
        new.token_hash.as_bytes(),
        new.scopes.to_string(),
        new.now.as_millis()
    ];
    change(sqlite, sql::ADD_CONNECTION, row)?;
    for (position, project_id) in (0_i64..).zip(&new.projects) {
        let row = params![id, position, project_id.as_bytes()];
        change(sqlite, sql::ADD_CONNECTION_PROJECT, row)?;
    }
    let made = rows::connections(sqlite, sql::CONNECTION_BY_ID, [id])?;
    Ok(made
        .into_iter()
        .next()
        .ok_or(rusqlite::Error::QueryReturnedNoRows)?)
}

pub(crate) fn connections(sqlite: &Sqlite, owner_id: OwnerId) -> Result<Vec<Connection>, Failure> {
    rows::connections(sqlite, sql::CONNECTIONS, [owner_id.as_bytes()])
}

pub(crate) fn connection_by_token(
    sqlite: &Sqlite,
    token_hash: TokenHash,
) -> Result<Option<Connection>, Failure> {
    let found = rows::connections(sqlite, sql::CONNECTION_BY_TOKEN, [token_hash.as_bytes()])?;
    Ok(found.into_iter().next())
}
