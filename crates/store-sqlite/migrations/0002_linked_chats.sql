-- Linked chats, the tasks that wait for them, and the files that they upload. As in 0001, times are
-- epoch milliseconds, ids and digests the bytes of the thing, and `seq` keeps the order.

CREATE TABLE chat_links (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    connection_id BLOB NOT NULL REFERENCES connections (id),
    project_id BLOB NOT NULL REFERENCES projects (id),
    label TEXT NOT NULL,
    reference TEXT,
    host_hint TEXT,
    idempotency_key TEXT NOT NULL,
    request BLOB NOT NULL,
    linked_at INTEGER NOT NULL,
    revoked_at INTEGER,
    UNIQUE (connection_id, idempotency_key)
) STRICT;

CREATE INDEX chat_links_live ON chat_links (connection_id) WHERE revoked_at IS NULL;

CREATE TABLE tasks (
    seq INTEGER PRIMARY KEY,
    task_id BLOB NOT NULL UNIQUE,
    owner_id BLOB NOT NULL,
    project_id BLOB NOT NULL REFERENCES projects (id),
    idempotency_key TEXT NOT NULL,
    request BLOB NOT NULL,
    status TEXT NOT NULL,
    assigned_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    claim_id BLOB,
    claim_link_id BLOB,
    claimed_at INTEGER,
    lease_until INTEGER,
    finished_at INTEGER,
    digest BLOB,
    result TEXT,
    -- When time alone will change the task. Only an open task has one.
    due_at INTEGER,
    UNIQUE (owner_id, idempotency_key)
) STRICT;

CREATE INDEX tasks_of_owner ON tasks (owner_id);

CREATE INDEX tasks_due ON tasks (due_at, task_id) WHERE due_at IS NOT NULL;

-- Apart from `tasks`, so that a change of state does not write the text again.
CREATE TABLE task_texts (
    seq INTEGER PRIMARY KEY REFERENCES tasks (seq),
    text TEXT NOT NULL
) STRICT;

CREATE TABLE task_candidates (
    task_seq INTEGER NOT NULL REFERENCES tasks (seq),
    link_id BLOB NOT NULL REFERENCES chat_links (id),
    position INTEGER NOT NULL,
    -- That of the task. A link's open tasks and its last finished ones stand together in the index
    -- below, so that an inbox never meets the old ones.
    finished_at INTEGER,
    PRIMARY KEY (task_seq, link_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX task_candidates_by_link ON task_candidates (link_id, finished_at, task_seq);

-- The bytes are in a file of its own, whose name `file` is.
CREATE TABLE artifacts (
    seq INTEGER PRIMARY KEY,
    task_seq INTEGER NOT NULL REFERENCES tasks (seq),
    link_id BLOB NOT NULL REFERENCES chat_links (id),
    claim_id BLOB NOT NULL,
    artifact_id TEXT NOT NULL,
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    content BLOB NOT NULL,
    file BLOB NOT NULL UNIQUE,
    uploaded_at INTEGER NOT NULL,
    UNIQUE (task_seq, claim_id, link_id, artifact_id)
) STRICT;
