-- What a desktop must not forget. Times are milliseconds since the Unix epoch, ids are text.

CREATE TABLE settings (
    name  TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The permanent identity of a saved Graph on this device. A row stays when its Graph is removed.
CREATE TABLE graph_sessions (
    graph_session_id TEXT PRIMARY KEY NOT NULL,
    created_at_ms    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE graphs (
    graph_session_id TEXT PRIMARY KEY NOT NULL REFERENCES graph_sessions,
    slug             TEXT NOT NULL UNIQUE,
    name             TEXT NOT NULL,
    description      TEXT NOT NULL,
    source           TEXT NOT NULL,
    version          INTEGER NOT NULL,
    updated_at_ms    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- `listed`: the hub names it among the owner's projects. `acknowledged`: the hub knows that it is
-- disabled here.
CREATE TABLE projects (
    project_id   TEXT PRIMARY KEY NOT NULL,
    name         TEXT NOT NULL,
    position     INTEGER NOT NULL,
    listed       INTEGER NOT NULL,
    enabled      INTEGER NOT NULL DEFAULT 0,
    acknowledged INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;

CREATE TABLE shares (
    project_id       TEXT NOT NULL REFERENCES projects,
    graph_session_id TEXT NOT NULL REFERENCES graph_sessions,
    shared_at_ms     INTEGER NOT NULL,
    PRIMARY KEY (project_id, graph_session_id)
) STRICT, WITHOUT ROWID;

-- One row for each command that was ever taken up, so that none is taken up twice.
CREATE TABLE seen_commands (
    sequence         INTEGER PRIMARY KEY,
    command_id       TEXT NOT NULL UNIQUE,
    project_id       TEXT NOT NULL,
    graph_session_id TEXT NOT NULL,
    slug             TEXT NOT NULL,
    arguments        TEXT,
    state            TEXT NOT NULL,
    execution_id     TEXT,
    updated_at_ms    INTEGER NOT NULL
) STRICT;
CREATE INDEX seen_commands_unfinished ON seen_commands (sequence) WHERE state <> 'done';

-- Completions that the hub has yet to take, and those it never will (`parked_reason`).
CREATE TABLE outbox (
    sequence      INTEGER PRIMARY KEY,
    command_id    TEXT NOT NULL UNIQUE,
    execution_id  TEXT,
    slug          TEXT NOT NULL,
    body          TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    parked_reason TEXT
) STRICT;

-- The history: full results, which the hub may only have seen cut.
CREATE TABLE executions (
    sequence         INTEGER PRIMARY KEY,
    execution_id     TEXT NOT NULL UNIQUE,
    command_id       TEXT UNIQUE,
    channel          TEXT NOT NULL,
    project_id       TEXT,
    graph_session_id TEXT NOT NULL,
    slug             TEXT NOT NULL,
    version          INTEGER,
    arguments        TEXT NOT NULL,
    state            TEXT NOT NULL,
    started_at_ms    INTEGER NOT NULL,
    finished_at_ms   INTEGER,
    result           TEXT,
    error            TEXT,
    total_tokens     INTEGER,
    reported_cost    REAL,
    phases           TEXT NOT NULL DEFAULT '[]',
    logs             TEXT NOT NULL DEFAULT '[]'
) STRICT;
CREATE INDEX executions_running ON executions (sequence) WHERE state = 'running';

-- Folders that the read-only `files` tools may look into.
CREATE TABLE folders (
    path          TEXT PRIMARY KEY NOT NULL,
    granted_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
