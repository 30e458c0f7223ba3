//! The disk as the relay sees it.

use callboard_domain::{CommandId, Consent};
use callboard_relay::{Command, ProjectView, Seen, Unfinished, View};
use callboard_wire::relay::SessionInfo;
use rusqlite::params;

use super::{Database, Result};

/// Reads for one step. A read that fails counts as "nothing there", which begins and sends
/// nothing: rows are unique, so even an unknown "seen" cannot begin a command twice.
#[derive(Debug)]
pub(crate) struct DiskView<'a>(pub(crate) &'a Database);

impl View for DiskView<'_> {
    fn seen(&self, id: CommandId) -> Option<Seen> {
        or_nothing(self.0.seen_row(id))
    }

    fn unfinished(&self) -> Vec<Unfinished> {
        or_nothing(self.0.unfinished_rows())
    }

    fn outbox(&self) -> Vec<CommandId> {
        or_nothing(self.0.outbox_ids())
    }

    fn projects(&self) -> Vec<ProjectView> {
        or_nothing(self.0.projects_to_sync())
    }

    fn consent(&self, command: &Command) -> Consent {
        self.0.consent_of(command).unwrap_or_else(|error| {
            tracing::error!(%error, "consent cannot be read; nothing begins");
            Consent::NONE
        })
    }
}

fn or_nothing<T: Default>(read: Result<T>) -> T {
    read.unwrap_or_else(|error| {
        tracing::error!(%error, "the desktop's database cannot be read");
        T::default()
    })
}

impl Database {
    fn projects_to_sync(&self) -> Result<Vec<ProjectView>> {
        let rows = self.project_rows()?;
        let open = rows
            .into_iter()
            .filter(|row| row.enabled || !row.acknowledged);
        open.map(|row| {
            let sessions = if row.enabled {
                self.shared_sessions(&row.project_id.to_string())?
            } else {
                Vec::new()
            };
            Ok(ProjectView {
                project_id: row.project_id,
                enabled: row.enabled,
                sessions,
            })
        })
        .collect()
    }

    fn shared_sessions(&self, project_id: &str) -> Result<Vec<SessionInfo>> {
        self.connection
            .prepare_cached(
                "SELECT graph_session_id, name, description, slug, version
                 FROM shares JOIN graphs USING (graph_session_id)
                 WHERE project_id = ?1 ORDER BY shared_at_ms, graph_session_id",
            )?
            .query_map(params![project_id], |row| {
                Ok(SessionInfo {
                    graph_session_id: super::parsed(row, 0)?,
                    name: row.get(1)?,
                    description: row.get(2)?,
                    slug: row.get(3)?,
                    version: super::unsigned(row, 4)?,
                    // A Graph is checked before it is saved.
                    status: "ready".to_owned(),
                })
            })?
            .collect()
    }
}
