//! Saved Graphs and their sessions.

use callboard_domain::GraphSessionId;
use rusqlite::{OptionalExtension as _, Row, params};

use super::{Database, Result, parsed, unsigned};

/// A saved Graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GraphRow {
    pub(crate) graph_session_id: GraphSessionId,
    pub(crate) slug: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) source: String,
    pub(crate) version: u64,
    pub(crate) updated_at_ms: i64,
}

/// What a checked source becomes.
#[derive(Debug, Clone)]
pub(crate) struct NewGraph {
    pub(crate) slug: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) source: String,
}

const COLUMNS: &str =
    "graph_session_id, slug, name, description, source, version, updated_at_ms FROM graphs";

fn graph(row: &Row<'_>) -> Result<GraphRow> {
    Ok(GraphRow {
        graph_session_id: parsed(row, 0)?,
        slug: row.get(1)?,
        name: row.get(2)?,
        description: row.get(3)?,
        source: row.get(4)?,
        version: unsigned(row, 5)?,
        updated_at_ms: row.get(6)?,
    })
}

impl Database {
    /// All Graphs, by slug.
    pub(crate) fn graphs(&self) -> Result<Vec<GraphRow>> {
        self.connection
            .prepare_cached(&format!("SELECT {COLUMNS} ORDER BY slug"))?
            .query_map([], graph)?
            .collect()
    }

    /// The Graph that is called `slug`.
    pub(crate) fn graph(&self, slug: &str) -> Result<Option<GraphRow>> {
        self.connection
            .prepare_cached(&format!("SELECT {COLUMNS} WHERE slug = ?1"))?
            .query_row([slug], graph)
            .optional()
    }

    /// The Graph of a session.
    pub(crate) fn graph_of_session(&self, id: GraphSessionId) -> Result<Option<GraphRow>> {
        self.connection
            .prepare_cached(&format!("SELECT {COLUMNS} WHERE graph_session_id = ?1"))?
            .query_row([id.to_string()], graph)
            .optional()
    }

    /// Saves a new Graph under a new session.
    pub(crate) fn add_graph(
        &mut self,
        id: GraphSessionId,
        new: &NewGraph,
        now_ms: i64,
    ) -> Result<()> {
        let transaction = self.connection.transaction()?;
        transaction
            .prepare_cached(
                "INSERT INTO graph_sessions (graph_session_id, created_at_ms) VALUES (?1, ?2)",
            )?
            .execute(params![id.to_string(), now_ms])?;
        transaction
            .prepare_cached(
                "INSERT INTO graphs (graph_session_id, slug, name, description, source, version,
                                     updated_at_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6)",
            )?
            .execute(params![
                id.to_string(),
                new.slug,
                new.name,
                new.description,
                new.source,
                now_ms
            ])?;
        transaction.commit()
    }

    /// Replaces slug and source of a Graph; a new source is a new version.
    pub(crate) fn edit_graph(&self, id: GraphSessionId, new: &NewGraph, now_ms: i64) -> Result<()> {
        self.connection
            .prepare_cached(
                "UPDATE graphs
                 SET slug = ?2, name = ?3, description = ?4, version = version + (source <> ?5),
                     source = ?5, updated_at_ms = ?6
                 WHERE graph_session_id = ?1",
            )?
            .execute(params![
                id.to_string(),
                new.slug,
                new.name,
                new.description,
                new.source,
                now_ms
            ])?;
        Ok(())
    }

    /// Removes a Graph and what it is shared with. Its session is never used again.
    pub(crate) fn remove_graph(&mut self, id: GraphSessionId) -> Result<()> {
        let transaction = self.connection.transaction()?;
        for statement in [
            "DELETE FROM shares WHERE graph_session_id = ?1",
            "DELETE FROM graphs WHERE graph_session_id = ?1",
        ] {
            transaction
                .prepare_cached(statement)?
                .execute([id.to_string()])?;
        }
        transaction.commit()
    }
}
