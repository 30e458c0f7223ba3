//! Every statement, by name. Statements load and store rows; what may follow what is decided
//! elsewhere.

macro_rules! statements {
    ($($name:ident = $sql:expr;)*) => {
        $(pub(crate) const $name: &str = $sql;)*

        /// All of them, for the test that looks at their query plans.
        #[cfg(test)]
        pub(crate) const ALL: &[(&str, &str)] = &[$((stringify!($name), $name)),*];
    };
}

/// Whole commands, as `rows::run` reads them. The joins keep their order: a command leads to its
/// arguments and its desktop, never the other way round.
macro_rules! runs {
    ($rest:literal) => {
        concat!(
            "SELECT r.command_id, r.connection_id, r.project_id, r.desktop_id,
                    r.graph_session_id, r.slug, a.arguments,
                    r.request, r.status, r.queued_at, r.updated_at, r.execution_id, r.started_at,
                    r.cancel_requested_at, r.finished_at, r.digest, r.result, r.result_truncated,
                    r.error, r.total_tokens, r.reported_cost,
                    r.phase, r.calls_done, r.calls_started, r.tokens, r.tokens_cap,
                    d.last_seen_at, r.due_at
             FROM runs r
             CROSS JOIN run_arguments a ON a.seq = r.seq
             CROSS JOIN desktops d ON d.id = r.desktop_id ",
            $rest
        )
    };
}

/// Connections with their projects, one row a project, as `rows::connections` reads them.
macro_rules! connections {
    ($rest:literal) => {
        concat!(
            "SELECT c.id, c.owner_id, c.name, c.scopes, p.id, p.owner_id, p.name
             FROM connections c
             LEFT JOIN connection_projects m ON m.connection_id = c.id
             LEFT JOIN projects p ON p.id = m.project_id ",
            $rest,
            " ORDER BY c.seq, m.position"
        )
    };
}

statements! {
    OWNER = "SELECT id FROM owners ORDER BY seq LIMIT 1";
    ADD_OWNER = "INSERT INTO owners (id, created_at) VALUES (?1, ?2)";

    PROJECT_NAMED = "SELECT 1 FROM projects WHERE owner_id = ?1 AND name = ?2";
    PROJECT_OWNED = "SELECT 1 FROM projects WHERE id = ?1 AND owner_id = ?2";
    PROJECT_OF_DESKTOP =
        "SELECT 1 FROM desktops d
         JOIN projects p ON p.owner_id = d.owner_id
         WHERE d.id = ?1 AND p.id = ?2";
    PROJECTS = "SELECT id, owner_id, name FROM projects WHERE owner_id = ?1 ORDER BY seq";
    ADD_PROJECT =
        "INSERT INTO projects (id, owner_id, name, created_at) VALUES (?1, ?2, ?3, ?4)";

    DESKTOP_NAMED = "SELECT 1 FROM desktops WHERE owner_id = ?1 AND name = ?2";
    DESKTOPS =
        "SELECT id, owner_id, name, worker_id, last_seen_at FROM desktops
         WHERE owner_id = ?1 ORDER BY seq";
    DESKTOP_BY_TOKEN =
        "SELECT id, owner_id, name, worker_id, last_seen_at FROM desktops WHERE token_hash = ?1";
    ADD_DESKTOP =
        "INSERT INTO desktops (id, owner_id, name, token_hash, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5)";
    FREE_DESKTOP = "UPDATE desktops SET worker_id = NULL WHERE owner_id = ?1 AND name = ?2";
    LAST_SEEN = "SELECT last_seen_at FROM desktops WHERE id = ?1";
    WORKER = "SELECT worker_id FROM desktops WHERE id = ?1";
    SET_WORKER = "UPDATE desktops SET worker_id = ?2 WHERE id = ?1";
    SET_SEEN =
        "UPDATE desktops SET last_seen_at = max(ifnull(last_seen_at, ?2), ?2) WHERE id = ?1";

    CONNECTION_NAMED =
        "SELECT id FROM connections WHERE owner_id = ?1 AND name = ?2 AND revoked_at IS NULL";
    CONNECTIONS = connections!("WHERE c.owner_id = ?1 AND c.revoked_at IS NULL");
    CONNECTION_BY_TOKEN = connections!("WHERE c.token_hash = ?1 AND c.revoked_at IS NULL");
    CONNECTION_BY_ID = connections!("WHERE c.id = ?1 AND c.revoked_at IS NULL");
    ADD_CONNECTION =
        "INSERT INTO connections (id, owner_id, name, token_hash, scopes, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    ADD_CONNECTION_PROJECT =
        "INSERT INTO connection_projects (connection_id, position, project_id)
         VALUES (?1, ?2, ?3)";
    SET_REVOKED = "UPDATE connections SET revoked_at = ?2 WHERE id = ?1";
    PROJECT_ADDED =
        "SELECT 1 FROM connections c
         JOIN connection_projects m ON m.connection_id = c.id
         WHERE c.id = ?1 AND m.project_id = ?2 AND c.revoked_at IS NULL";

    SESSIONS =
        "SELECT s.graph_session_id, s.name, s.description, s.slug, s.version, s.status,
                s.project_id, s.desktop_id, d.name, d.last_seen_at
         FROM sessions s
         CROSS JOIN desktops d ON d.id = s.desktop_id
         WHERE s.project_id = ?1
         ORDER BY s.name, s.graph_session_id, s.desktop_id, s.position
         LIMIT ?2";
    SHARED_SESSIONS =
        "SELECT graph_session_id, name, description, slug, version, status FROM sessions
         WHERE project_id = ?1 AND desktop_id = ?2 ORDER BY position";
    REMOVE_SESSIONS = "DELETE FROM sessions WHERE project_id = ?1 AND desktop_id = ?2";
    ADD_SESSION =
        "INSERT INTO sessions (project_id, desktop_id, position, graph_session_id, name,
                               description, slug, version, status)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    PLACE =
        "SELECT s.project_id, s.desktop_id, s.slug
         FROM connections c
         CROSS JOIN connection_projects m ON m.connection_id = c.id
         CROSS JOIN sessions s ON s.project_id = m.project_id
         WHERE c.id = ?1 AND c.revoked_at IS NULL AND s.graph_session_id = ?2
         ORDER BY m.position, s.desktop_id, s.position
         LIMIT 1";

    RUN_OF_CONNECTION = runs!(
        "CROSS JOIN connections c ON c.id = r.connection_id
         WHERE r.command_id = ?2 AND r.connection_id = ?1 AND c.revoked_at IS NULL"
    );
    RUN_OF_DESKTOP = runs!("WHERE r.command_id = ?2 AND r.desktop_id = ?1");
    RUN_BY_KEY = runs!(
        "CROSS JOIN connections c ON c.id = r.connection_id
         WHERE r.connection_id = ?1 AND r.idempotency_key = ?2 AND c.revoked_at IS NULL"
    );
    WAITING_RUNS = runs!(
        "WHERE r.desktop_id = ?1 AND r.project_id = ?2 AND r.started_at IS NULL
           AND r.due_at IS NOT NULL
         ORDER BY r.seq"
    );
    STARTED_RUNS = runs!(
        "WHERE r.desktop_id = ?1 AND r.project_id = ?2 AND r.started_at IS NOT NULL
           AND r.due_at IS NOT NULL
         ORDER BY r.seq"
    );
    OPEN_RUNS_OF_CONNECTION =
        runs!("WHERE r.connection_id = ?1 AND r.due_at IS NOT NULL ORDER BY r.command_id");
    DUE_RUNS = runs!("WHERE r.due_at <= ?1 ORDER BY r.due_at, r.command_id LIMIT ?2");
    ANY_DUE = "SELECT 1 FROM runs WHERE due_at <= ?1 LIMIT 1";
    ADD_RUN =
        "INSERT INTO runs (command_id, connection_id, project_id, desktop_id, graph_session_id,
                           slug, idempotency_key, request, status, queued_at, updated_at, due_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    ADD_ARGUMENTS = "INSERT INTO run_arguments (seq, arguments) VALUES (?1, ?2)";
    SET_STATE =
        "UPDATE runs SET status = ?2, updated_at = ?3, execution_id = ?4, started_at = ?5,
                         cancel_requested_at = ?6, finished_at = ?7, digest = ?8, result = ?9,
                         result_truncated = ?10, error = ?11, total_tokens = ?12,
                         reported_cost = ?13, due_at = ?14
         WHERE command_id = ?1";
    SET_PROGRESS =
        "UPDATE runs SET phase = ?2, calls_done = ?3, calls_started = ?4, tokens = ?5,
                         tokens_cap = ?6
         WHERE command_id = ?1";
    SET_DUE = "UPDATE runs SET due_at = ?2 WHERE command_id = ?1";

    ALIVE = "SELECT 1 FROM owners LIMIT 1";
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;
    use crate::open;

    /// What SQLite says it will do for `sql`, a line a step.
    fn plan(sql: &str) -> Vec<String> {
        let connection = open::memory().unwrap();
        let mut statement = connection
            .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
            .unwrap();
        let count = statement.parameter_count();
        let nothing = std::iter::repeat_n(rusqlite::types::Null, count);
        let lines = statement.query_map(rusqlite::params_from_iter(nothing), |row| row.get(3));
        lines.unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn no_statement_scans_a_table() {
        for (name, sql) in ALL {
            for line in plan(sql) {
                // The hub has one owner.
                let small = line.starts_with("SCAN owners");
                assert!(small || !line.starts_with("SCAN"), "{name}: {line}\n{sql}");
            }
        }
    }

    #[test]
    fn what_waits_and_what_is_due_come_from_the_partial_indexes() {
        for (sql, index) in [
            (
                WAITING_RUNS,
                "runs_open (desktop_id=? AND project_id=? AND started_at=?)",
            ),
            (
                STARTED_RUNS,
                "runs_open (desktop_id=? AND project_id=? AND started_at>?)",
            ),
            (DUE_RUNS, "runs_due (due_at<?)"),
            (ANY_DUE, "runs_due (due_at<?)"),
        ] {
            let lines = plan(sql);
            assert!(lines[0].contains(index), "{lines:?}");
        }
        let sorted = |sql| plan(sql).iter().any(|line| line.contains("ORDER BY"));
        assert!(!sorted(WAITING_RUNS), "the index gives their order");
    }

    #[test]
    fn no_statement_compares_a_status() {
        for (name, sql) in ALL {
            let condition = sql
                .split_once("WHERE")
                .map_or("", |(_, condition)| condition);
            assert!(!condition.contains("status"), "{name}");
        }
    }

    #[test]
    fn a_statement_keeps_its_plan_when_other_values_are_bound() {
        let connection = open::memory().unwrap();
        for (name, sql) in ALL.iter().filter(|(_, sql)| sql.starts_with("SELECT")) {
            let mut statement = connection.prepare(sql).unwrap();
            for value in 1_i64..4 {
                let values = std::iter::repeat_n(value, statement.parameter_count());
                let values = rusqlite::params_from_iter(values);
                assert!(!statement.exists(values).unwrap(), "{name} finds nothing");
                let planned = statement.get_status(StatementStatus::RePrepare);
                assert_eq!(planned, 0, "{name} was planned again");
            }
        }
    }
}
