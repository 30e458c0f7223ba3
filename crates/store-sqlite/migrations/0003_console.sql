-- What the owner's console reads and keeps. As in 0001, times are epoch milliseconds and `seq` keeps
-- the order.

ALTER TABLE runs ADD COLUMN owner_id BLOB;

UPDATE runs SET owner_id =
    (SELECT c.owner_id FROM connections c WHERE c.id = runs.connection_id);

-- The owner's runs in their order, as `seq` is the last column of every index.
CREATE INDEX runs_of_owner ON runs (owner_id);

CREATE INDEX runs_of_owner_by_status ON runs (owner_id, status);

ALTER TABLE owners ADD COLUMN password_hash TEXT;

CREATE TABLE sign_ins (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    owner_id BLOB NOT NULL,
    token_hash BLOB NOT NULL UNIQUE,
    user_agent TEXT NOT NULL,
    signed_in_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;

CREATE INDEX sign_ins_of_owner ON sign_ins (owner_id);
