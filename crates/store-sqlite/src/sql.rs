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

/// Commands as their owner sees them: as `rows::run` reads them, with `$arguments` and `$result`, and
/// the names of what belongs to them.
macro_rules! owned_runs {
    ($arguments:literal, $result:literal, $rest:literal) => {
        concat!(
            "SELECT r.command_id, r.connection_id, r.project_id, r.desktop_id,
                    r.graph_session_id, r.slug, ",
            $arguments,
            ", r.request, r.status, r.queued_at, r.updated_at, r.execution_id, r.started_at,
                    r.cancel_requested_at, r.finished_at, r.digest, ",
            $result,
            ", r.result_truncated, r.error, r.total_tokens, r.reported_cost,
                    r.phase, r.calls_done, r.calls_started, r.tokens, r.tokens_cap,
                    d.last_seen_at, p.name, c.name, d.name,
                    (SELECT s.name FROM sessions s
                     WHERE s.graph_session_id = r.graph_session_id
                       AND s.project_id = r.project_id AND s.desktop_id = r.desktop_id LIMIT 1)
             FROM runs r
             CROSS JOIN run_arguments a ON a.seq = r.seq
             CROSS JOIN desktops d ON d.id = r.desktop_id
             CROSS JOIN projects p ON p.id = r.project_id
             CROSS JOIN connections c ON c.id = r.connection_id ",
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

/// What makes a link live: neither it nor its connection is revoked, and the connection still works
/// in the project.
macro_rules! live {
    () => {
        "l.revoked_at IS NULL AND c.revoked_at IS NULL
         AND EXISTS (SELECT 1 FROM connection_projects m
                     WHERE m.connection_id = c.id AND m.project_id = l.project_id)"
    };
}

/// Links, as `rows::link` reads them.
macro_rules! links {
    ($($rest:expr),*) => {
        concat!(
            "SELECT l.id, l.connection_id, l.project_id, l.label, l.reference, l.host_hint,
                    l.linked_at",
            $($rest),*
        )
    };
}

/// Tasks without what is in other tables, as `rows::bare_task` reads them.
macro_rules! tasks {
    ($rest:literal) => {
        concat!(
            "SELECT t.seq, t.task_id, t.project_id,
                    t.request, t.status, t.assigned_at, t.expires_at, t.updated_at, t.claim_id,
                    t.claim_link_id, t.claimed_at, t.lease_until, t.finished_at, t.digest,
                    t.result",
            $rest
        )
    };
}

/// Artifacts of one task, as `rows::artifact` reads them.
macro_rules! artifacts {
    ($($rest:expr),*) => {
        concat!(
            "SELECT t.task_id, a.link_id, a.claim_id, a.artifact_id, a.name, a.media_type,
                    a.size_bytes, a.content, a.uploaded_at
             FROM tasks t
             CROSS JOIN artifacts a ON a.task_seq = t.seq ",
            $($rest),*
        )
    };
}

statements! {
    OWNER = "SELECT id FROM owners ORDER BY seq LIMIT 1";
    ADD_OWNER = "INSERT INTO owners (id, created_at) VALUES (?1, ?2)";
    PASSWORD_HASH = "SELECT password_hash FROM owners WHERE id = ?1";
    SET_PASSWORD_HASH = "UPDATE owners SET password_hash = ?2 WHERE id = ?1";

    ADD_SIGN_IN =
        "INSERT INTO sign_ins (id, owner_id, token_hash, user_agent, signed_in_at, expires_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    SIGN_IN_BY_TOKEN =
        "SELECT id, owner_id, user_agent, signed_in_at, expires_at FROM sign_ins
         WHERE token_hash = ?1 AND expires_at > ?2";
    SIGN_INS =
        "SELECT id, owner_id, user_agent, signed_in_at, expires_at FROM sign_ins
         WHERE owner_id = ?1 AND expires_at > ?2 ORDER BY seq";
    REMOVE_SIGN_IN = "DELETE FROM sign_ins WHERE owner_id = ?1 AND id = ?2";
    REMOVE_OLD_SIGN_INS = "DELETE FROM sign_ins WHERE owner_id = ?1 AND expires_at <= ?2";
    REMOVE_SIGN_INS = "DELETE FROM sign_ins WHERE owner_id = ?1";

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
    RUN_OF_OWNER = runs!("WHERE r.command_id = ?2 AND r.owner_id = ?1");
    OWNED_RUN = owned_runs!(
        "a.arguments",
        "r.result",
        "WHERE r.command_id = ?2 AND r.owner_id = ?1"
    );
    OWNED_RUNS = owned_runs!(
        "''",
        "NULL",
        "WHERE r.owner_id = ?1 AND r.seq < ?2 ORDER BY r.seq DESC LIMIT ?3"
    );
    OWNED_RUNS_BY_STATUS = owned_runs!(
        "''",
        "NULL",
        "WHERE r.owner_id = ?1 AND r.seq < ?2 AND r.status = ?4 ORDER BY r.seq DESC LIMIT ?3"
    );
    SEQ_OF_OWNED_RUN = "SELECT seq FROM runs WHERE command_id = ?2 AND owner_id = ?1";
    RUN_COUNTS = "SELECT status, count(*) FROM runs WHERE owner_id = ?1 GROUP BY status";
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
                           slug, idempotency_key, request, status, queued_at, updated_at, due_at,
                           owner_id)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,
                 (SELECT owner_id FROM connections WHERE id = ?2))";
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

    LINK_OF_CONNECTION = links!(
        " FROM chat_links l CROSS JOIN connections c ON c.id = l.connection_id
         WHERE l.id = ?2 AND l.connection_id = ?1 AND ",
        live!()
    );
    LINK_OF_OWNER = links!(
        " FROM chat_links l CROSS JOIN connections c ON c.id = l.connection_id
         WHERE l.id = ?2 AND c.owner_id = ?1 AND ",
        live!()
    );
    LINK_REVOKED =
        "SELECT l.revoked_at IS NOT NULL
         FROM chat_links l CROSS JOIN connections c ON c.id = l.connection_id
         WHERE l.id = ?2 AND c.owner_id = ?1";
    LINK_BY_KEY = links!(
        ", l.request, l.revoked_at FROM chat_links l
         WHERE l.connection_id = ?1 AND l.idempotency_key = ?2"
    );
    LINKS_OF_OWNER = links!(
        ", c.name, p.name
         FROM connections c
         CROSS JOIN chat_links l ON l.connection_id = c.id
         CROSS JOIN projects p ON p.id = l.project_id
         WHERE c.owner_id = ?1 AND ",
        live!(),
        " ORDER BY l.seq"
    );
    LINKS_OF_CONNECTION =
        "SELECT id FROM chat_links WHERE connection_id = ?1 AND revoked_at IS NULL ORDER BY seq";
    MORE_LINKS =
        "SELECT 1 FROM chat_links WHERE connection_id = ?1 AND revoked_at IS NULL
         LIMIT 1 OFFSET ?2";
    ADD_LINK =
        "INSERT INTO chat_links (id, connection_id, project_id, label, reference, host_hint,
                                 idempotency_key, request, linked_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    SET_LINK_REVOKED = "UPDATE chat_links SET revoked_at = ?2 WHERE id = ?1";

    TASK_OF_LINK = tasks!(
        " FROM tasks t CROSS JOIN task_candidates k ON k.task_seq = t.seq
         WHERE t.task_id = ?2 AND k.link_id = ?1"
    );
    TASK_OF_OWNER = tasks!(
        ", p.name FROM tasks t CROSS JOIN projects p ON p.id = t.project_id
         WHERE t.task_id = ?2 AND t.owner_id = ?1"
    );
    TASK_BY_KEY = tasks!(
        ", p.name FROM tasks t CROSS JOIN projects p ON p.id = t.project_id
         WHERE t.owner_id = ?1 AND t.idempotency_key = ?2"
    );
    TASKS_OF_OWNER = tasks!(
        ", p.name FROM tasks t CROSS JOIN projects p ON p.id = t.project_id
         WHERE t.owner_id = ?1 ORDER BY t.seq DESC LIMIT ?2"
    );
    OPEN_TASKS_OF_LINK = tasks!(
        " FROM task_candidates k CROSS JOIN tasks t ON t.seq = k.task_seq
         WHERE k.link_id = ?1 AND k.finished_at IS NULL ORDER BY k.task_seq"
    );
    LAST_TASKS_OF_LINK = tasks!(
        " FROM task_candidates k CROSS JOIN tasks t ON t.seq = k.task_seq
         WHERE k.link_id = ?1 AND k.finished_at IS NOT NULL
         ORDER BY k.finished_at DESC, k.task_seq DESC LIMIT ?2"
    );
    MORE_OPEN_TASKS =
        "SELECT 1 FROM task_candidates WHERE link_id = ?1 AND finished_at IS NULL
         LIMIT 1 OFFSET ?2";
    DUE_TASKS =
        tasks!(" FROM tasks t WHERE t.due_at <= ?1 ORDER BY t.due_at, t.task_id LIMIT ?2");
    ANY_TASK_DUE = "SELECT 1 FROM tasks WHERE due_at <= ?1 LIMIT 1";
    ADD_TASK =
        "INSERT INTO tasks (task_id, owner_id, project_id, idempotency_key, request, status,
                            assigned_at, expires_at, updated_at, due_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    SET_TASK =
        "UPDATE tasks SET status = ?2, updated_at = ?3, claim_id = ?4, claim_link_id = ?5,
                          claimed_at = ?6, lease_until = ?7, finished_at = ?8, digest = ?9,
                          result = ?10, due_at = ?11
         WHERE seq = ?1";
    TASK_TEXT = "SELECT text FROM task_texts WHERE seq = ?1";
    ADD_TASK_TEXT = "INSERT INTO task_texts (seq, text) VALUES (?1, ?2)";
    CANDIDATES = "SELECT link_id FROM task_candidates WHERE task_seq = ?1 ORDER BY position";
    NAMED_CANDIDATES =
        "SELECT k.link_id, l.label, c.name
         FROM task_candidates k
         CROSS JOIN chat_links l ON l.id = k.link_id
         CROSS JOIN connections c ON c.id = l.connection_id
         WHERE k.task_seq = ?1 ORDER BY k.position";
    ADD_CANDIDATE =
        "INSERT INTO task_candidates (task_seq, position, link_id) VALUES (?1, ?2, ?3)";
    REMOVE_CANDIDATE = "DELETE FROM task_candidates WHERE task_seq = ?1 AND link_id = ?2";
    SET_CANDIDATES_FINISHED = "UPDATE task_candidates SET finished_at = ?2 WHERE task_seq = ?1";

    ARTIFACTS_OF_TASK = artifacts!("WHERE t.seq = ?1 ORDER BY a.seq");
    ARTIFACT_OF_OWNER = artifacts!(
        "WHERE t.owner_id = ?1 AND t.task_id = ?2 AND a.claim_id = ?3 AND a.artifact_id = ?4"
    );
    ARTIFACT_OF_CONNECTION = artifacts!(
        "CROSS JOIN chat_links l ON l.id = a.link_id
         CROSS JOIN connections c ON c.id = l.connection_id
         WHERE l.connection_id = ?1 AND t.task_id = ?2 AND a.claim_id = ?3
           AND a.artifact_id = ?4 AND ",
        live!()
    );
    ARTIFACT_IN_FILE = "SELECT 1 FROM artifacts WHERE file = ?1";
    ADD_ARTIFACT =
        "INSERT INTO artifacts (task_seq, link_id, claim_id, artifact_id, name, media_type,
                                size_bytes, content, file, uploaded_at)
         SELECT seq, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 FROM tasks WHERE task_id = ?1";

    ALIVE = "SELECT 1 FROM owners LIMIT 1";
}

#[cfg(test)]
mod tests;
