-- Times are epoch milliseconds, ids and digests the bytes of the thing. `seq` keeps the order in
-- which rows were made. Never edited after a release: a change is the next number.

CREATE TABLE owners (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE projects (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    owner_id BLOB NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (owner_id, name)
) STRICT;

CREATE TABLE desktops (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    owner_id BLOB NOT NULL,
    name TEXT NOT NULL,
    token_hash BLOB NOT NULL UNIQUE,
    worker_id BLOB,
    last_seen_at INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (owner_id, name)
) STRICT;

CREATE TABLE connections (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    owner_id BLOB NOT NULL,
    name TEXT NOT NULL,
    token_hash BLOB NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

-- A revoked connection leaves its name to the next one.
CREATE UNIQUE INDEX connections_by_name ON connections (owner_id, name) WHERE revoked_at IS NULL;

CREATE TABLE connection_projects (
    connection_id BLOB NOT NULL REFERENCES connections (id),
    position INTEGER NOT NULL,
    project_id BLOB NOT NULL REFERENCES projects (id),
    PRIMARY KEY (connection_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    project_id BLOB NOT NULL REFERENCES projects (id),
    desktop_id BLOB NOT NULL REFERENCES desktops (id),
    position INTEGER NOT NULL,
    graph_session_id BLOB NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    slug TEXT NOT NULL,
    version INTEGER NOT NULL,
    status TEXT NOT NULL,
    PRIMARY KEY (project_id, desktop_id, position)
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_id ON sessions (graph_session_id, project_id);

CREATE TABLE runs (
    seq INTEGER PRIMARY KEY,
    command_id BLOB NOT NULL UNIQUE,
    connection_id BLOB NOT NULL REFERENCES connections (id),
    idempotency_key TEXT NOT NULL,
    project_id BLOB NOT NULL REFERENCES projects (id),
    desktop_id BLOB NOT NULL REFERENCES desktops (id),
    graph_session_id BLOB NOT NULL,
    slug TEXT NOT NULL,
    request BLOB NOT NULL,
    status TEXT NOT NULL,
    queued_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    execution_id BLOB,
    started_at INTEGER,
    cancel_requested_at INTEGER,
    finished_at INTEGER,
    digest BLOB,
    result TEXT,
    result_truncated INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    total_tokens INTEGER,
    reported_cost REAL,
    phase TEXT,
    calls_done INTEGER,
    calls_started INTEGER,
    tokens INTEGER,
    tokens_cap INTEGER,
    -- When a sweep should look at the run. Only an open run has one.
    due_at INTEGER,
    UNIQUE (connection_id, idempotency_key)
) STRICT;

-- What waits for one desktop in one project: those without a start come first, oldest first, as
-- `seq` is the last column of every index.
CREATE INDEX runs_open ON runs (desktop_id, project_id, started_at)
    WHERE due_at IS NOT NULL;

CREATE INDEX runs_due ON runs (due_at) WHERE due_at IS NOT NULL;

-- Apart from `runs`, so that a change of state does not write 100,000 characters again.
CREATE TABLE run_arguments (
    seq INTEGER PRIMARY KEY REFERENCES runs (seq),
    arguments TEXT NOT NULL
) STRICT;
