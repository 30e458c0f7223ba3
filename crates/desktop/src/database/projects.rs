//! The owner's projects as this desktop knows them, and what is shared with each.

use callboard_domain::limits::SESSIONS_PER_PROJECT_MAX;
use callboard_domain::{GraphSessionId, ProjectId};
use callboard_wire::relay::DesktopInfo;
use rusqlite::params;

use super::{Database, Result, parsed, unsigned};

/// A project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProjectRow {
    pub(crate) project_id: ProjectId,
    pub(crate) name: String,
    pub(crate) listed: bool,
    pub(crate) enabled: bool,
    pub(crate) acknowledged: bool,
}

/// Why a session is not shared.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShareError {
    /// The project takes no more.
    #[error("{SESSIONS_PER_PROJECT_MAX} Graphs are shared with this project already")]
    TooMany,
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

impl Database {
    /// All projects, in the hub's order.
    pub(crate) fn project_rows(&self) -> Result<Vec<ProjectRow>> {
        self.connection
            .prepare_cached(
                "SELECT project_id, name, listed, enabled, acknowledged FROM projects
                 ORDER BY position, project_id",
            )?
            .query_map([], |row| {
                Ok(ProjectRow {
                    project_id: parsed(row, 0)?,
                    name: row.get(1)?,
                    listed: row.get(2)?,
                    enabled: row.get(3)?,
                    acknowledged: row.get(4)?,
                })
            })?
            .collect()
    }

    /// Remembers the hub's words about this desktop and its owner's projects; writes only what
    /// changed.
    pub(crate) fn record_desktop(&mut self, info: &DesktopInfo) -> Result<()> {
        let known = self.project_rows()?;
        let listed = known.iter().filter(|row| row.listed);
        let same = listed
            .map(|row| (row.project_id, row.name.as_str()))
            .eq(info
                .projects
                .iter()
                .map(|p| (p.project_id, p.name.as_str())));
        if self.setting("desktop_name")?.as_deref() != Some(info.name.as_str()) {
            self.set_setting("desktop_name", &info.name)?;
        }
        if same {
            return Ok(());
        }
        let transaction = self.connection.transaction()?;
        transaction
            .prepare_cached("UPDATE projects SET listed = 0")?
            .execute([])?;
        for (position, project) in info.projects.iter().enumerate() {
            transaction
                .prepare_cached(
                    "INSERT INTO projects (project_id, name, position, listed)
                     VALUES (?1, ?2, ?3, 1)
                     ON CONFLICT (project_id) DO UPDATE
                     SET name = excluded.name, position = excluded.position, listed = 1",
                )?
                .execute(params![
                    project.project_id.to_string(),
                    project.name,
                    i64::try_from(position).unwrap_or(i64::MAX)
                ])?;
        }
        transaction.commit()
    }

    /// Switches a project on or off. The hub is told with the next turn, until it acknowledges.
    pub(crate) fn set_project_enabled(&self, id: ProjectId, enabled: bool) -> Result<()> {
        self.connection
            .prepare_cached(
                "UPDATE projects SET enabled = ?2, acknowledged = 0
                 WHERE project_id = ?1 AND enabled <> ?2",
            )?
            .execute(params![id.to_string(), enabled])?;
        Ok(())
    }

    /// The hub knows that a project is disabled.
    pub(crate) fn acknowledge_disabled(&self, id: ProjectId) -> Result<()> {
        self.connection
            .prepare_cached(
                "UPDATE projects SET acknowledged = 1 WHERE project_id = ?1 AND enabled = 0",
            )?
            .execute([id.to_string()])?;
        Ok(())
    }

    /// Shares a session with a project; sharing it again changes nothing.
    pub(crate) fn share(
        &mut self,
        project_id: ProjectId,
        graph_session_id: GraphSessionId,
        now_ms: i64,
    ) -> std::result::Result<(), ShareError> {
        let transaction = self.connection.transaction()?;
        transaction
            .prepare_cached(
                "INSERT OR IGNORE INTO shares (project_id, graph_session_id, shared_at_ms)
                 VALUES (?1, ?2, ?3)",
            )?
            .execute(params![
                project_id.to_string(),
                graph_session_id.to_string(),
                now_ms
            ])?;
        let shared: i64 = transaction
            .prepare_cached("SELECT count(*) FROM shares WHERE project_id = ?1")?
            .query_row([project_id.to_string()], |row| row.get(0))?;
        if usize::try_from(shared).is_ok_and(|shared| shared > SESSIONS_PER_PROJECT_MAX) {
            return Err(ShareError::TooMany);
        }
        Ok(transaction.commit()?)
    }

    /// Ends a share; false when there was none.
    pub(crate) fn unshare(
        &self,
        project_id: ProjectId,
        graph_session_id: GraphSessionId,
    ) -> Result<bool> {
        let rows = self
            .connection
            .prepare_cached("DELETE FROM shares WHERE project_id = ?1 AND graph_session_id = ?2")?
            .execute(params![
                project_id.to_string(),
                graph_session_id.to_string()
            ])?;
        Ok(rows > 0)
    }

    /// The projects that a session is shared with.
    pub(crate) fn shares_of(&self, id: GraphSessionId) -> Result<Vec<ProjectId>> {
        self.connection
            .prepare_cached(
                "SELECT project_id FROM shares JOIN projects USING (project_id)
                 WHERE graph_session_id = ?1 ORDER BY position, project_id",
            )?
            .query_map([id.to_string()], |row| parsed(row, 0))?
            .collect()
    }

    /// How many sessions are shared with a project.
    pub(crate) fn shared_count(&self, id: ProjectId) -> Result<u64> {
        self.connection
            .prepare_cached("SELECT count(*) FROM shares WHERE project_id = ?1")?
            .query_row([id.to_string()], |row| unsigned(row, 0))
    }
}
