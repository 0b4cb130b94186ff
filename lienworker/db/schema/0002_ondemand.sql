-- A task's own proxy. Apart from its target, because it holds credentials that nobody is to see.
ALTER TABLE tasks ADD COLUMN proxy TEXT
;;
CREATE INDEX tasks_by_end ON tasks (completed_at) WHERE completed_at IS NOT NULL
;;
-- Whose result an upload carries: results of one parcel keep their order.
ALTER TABLE outbox ADD COLUMN parcel_key TEXT
;;
-- How often it failed while others went through, and how many of those had gone through when it last failed.
ALTER TABLE outbox ADD COLUMN blame INTEGER NOT NULL DEFAULT 0
;;
ALTER TABLE outbox ADD COLUMN seen_successes INTEGER
;;
CREATE INDEX outbox_parcels ON outbox (parcel_key)
WHERE topic = 'upload_result' AND state IN ('waiting', 'leased')
;;
CREATE TABLE breakers (
    endpoint TEXT NOT NULL PRIMARY KEY,
    is_open INTEGER NOT NULL DEFAULT 0,
    is_probing INTEGER NOT NULL DEFAULT 0,
    retry_at INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    successes INTEGER NOT NULL DEFAULT 0,
    -- first tries of rows, and how many of them failed, with a memory of some hundred: how lossy the way is
    recent_tries REAL NOT NULL DEFAULT 0,
    recent_failures REAL NOT NULL DEFAULT 0,
    kind TEXT,
    words TEXT,
    since TEXT
) WITHOUT ROWID
;;
-- The newest result of each parcel that the Gateway has: an older one is never sent after it.
CREATE TABLE delivered_parcels (
    parcel_key TEXT NOT NULL PRIMARY KEY,
    task_id TEXT NOT NULL,
    fetched_at TEXT NOT NULL,
    generation INTEGER NOT NULL
) WITHOUT ROWID
;;
-- Small things that must survive a restart, by name.
CREATE TABLE facts (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL,
    at TEXT NOT NULL
) WITHOUT ROWID
;;
-- What a site's robots.txt asks for, apart from what its platform asks for: the longer counts.
ALTER TABLE hosts ADD COLUMN robots_delay REAL
