CREATE TABLE schema_versions (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at TEXT NOT NULL
)
;;
CREATE TABLE tasks (
    task_id TEXT NOT NULL PRIMARY KEY,
    source TEXT NOT NULL CHECK (source IN ('gateway', 'local_file', 'cli')),
    platform TEXT,
    state TEXT,
    county TEXT,
    parcel_id TEXT,
    url TEXT,
    target_json TEXT NOT NULL DEFAULT '{}',
    queue TEXT NOT NULL DEFAULT 'default' CHECK (queue IN ('urgent', 'default')),
    priority INTEGER NOT NULL DEFAULT 3 CHECK (priority BETWEEN 1 AND 4),
    status TEXT NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'processing', 'completed', 'failed', 'expired')),
    generation INTEGER NOT NULL DEFAULT 1,
    attempts INTEGER NOT NULL DEFAULT 0,
    reason TEXT,
    last_error TEXT,
    import_id INTEGER,
    created_at TEXT NOT NULL,
    received_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    completed_at TEXT,
    expires_at TEXT
)
;;
CREATE INDEX tasks_by_status ON tasks (status)
;;
CREATE INDEX tasks_by_import ON tasks (import_id, status)
;;
CREATE INDEX tasks_by_reason ON tasks (reason) WHERE reason IS NOT NULL
;;
CREATE TABLE pages (
    task_id TEXT NOT NULL REFERENCES tasks,
    generation INTEGER NOT NULL,
    path TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    url TEXT NOT NULL,
    status INTEGER NOT NULL,
    content_type TEXT NOT NULL,
    charset TEXT,
    etag TEXT,
    last_modified TEXT,
    fetched_at TEXT NOT NULL,
    fetch_ms INTEGER NOT NULL,
    PRIMARY KEY (task_id, generation)
)
;;
CREATE TABLE results (
    task_id TEXT NOT NULL PRIMARY KEY REFERENCES tasks,
    generation INTEGER NOT NULL,
    parcel_id TEXT,
    platform TEXT NOT NULL,
    state TEXT,
    county TEXT,
    data TEXT NOT NULL,
    json_path TEXT,
    html_path TEXT NOT NULL,
    raw_sha256 TEXT NOT NULL,
    fetched_at TEXT NOT NULL,
    confirmed_at TEXT,
    parser_version TEXT NOT NULL,
    scraped_at TEXT NOT NULL,
    parse_duration_ms INTEGER NOT NULL,
    synced INTEGER NOT NULL DEFAULT 0,
    sync_attempts INTEGER NOT NULL DEFAULT 0,
    last_error TEXT
)
;;
CREATE INDEX results_unsynced ON results (scraped_at) WHERE synced = 0
;;
CREATE INDEX results_of_parcel ON results (parcel_id, platform)
;;
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    topic TEXT NOT NULL CHECK (topic IN ('fetch', 'scrape', 'upload_raw', 'upload_result', 'report_failure')),
    task_id TEXT NOT NULL REFERENCES tasks,
    generation INTEGER NOT NULL,
    host TEXT NOT NULL DEFAULT '',
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    -- urgent before default, then priority: 1..4 and 11..14
    rank INTEGER GENERATED ALWAYS AS (CASE queue WHEN 'urgent' THEN priority ELSE 10 + priority END) STORED,
    payload TEXT,
    state TEXT NOT NULL
        CHECK (state IN ('waiting', 'leased', 'held', 'delivered', 'superseded', 'parked', 'discarded')),
    due_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    -- 1 after a holder died with it: it travels alone, so that a page that kills workers is found out
    alone INTEGER NOT NULL DEFAULT 0,
    lease_token TEXT,
    lease_until INTEGER,
    message_id TEXT,
    reason TEXT,
    fingerprint TEXT,
    created_at INTEGER NOT NULL,
    finished_at INTEGER,
    UNIQUE (task_id, topic, generation)
)
;;
CREATE INDEX outbox_waiting ON outbox (topic, host, rank, due_at) WHERE state = 'waiting'
;;
CREATE INDEX outbox_leased ON outbox (lease_token) WHERE state = 'leased'
;;
CREATE INDEX outbox_set_aside ON outbox (state, topic, reason) WHERE state IN ('held', 'parked')
;;
-- What waits, by lane, host and rank: kept by the triggers below, so that a claim looks at hosts, never at a
-- million rows of one of them. `not_before` is the earliest time at which one of them can be due.
CREATE TABLE backlog (
    topic TEXT NOT NULL,
    host TEXT NOT NULL,
    rank INTEGER NOT NULL,
    waiting INTEGER NOT NULL,
    not_before INTEGER NOT NULL,
    PRIMARY KEY (topic, host, rank)
) WITHOUT ROWID
;;
-- Row counts by state, kept by triggers, so that status costs the same at a million rows.
CREATE TABLE tally (
    kind TEXT NOT NULL,
    topic TEXT NOT NULL,
    state TEXT NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (kind, topic, state)
) WITHOUT ROWID
;;
-- `added` and `purged`, kept by the code that adds and purges, never derived: the balance is checked against them.
CREATE TABLE counters (
    name TEXT NOT NULL,
    topic TEXT NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (name, topic)
) WITHOUT ROWID
;;
CREATE TRIGGER tasks_counted AFTER INSERT ON tasks BEGIN
    INSERT INTO tally VALUES ('task', '', NEW.status, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END
;;
CREATE TRIGGER tasks_recounted AFTER UPDATE OF status ON tasks WHEN OLD.status <> NEW.status BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'task' AND topic = '' AND state = OLD.status;
    INSERT INTO tally VALUES ('task', '', NEW.status, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END
;;
CREATE TRIGGER tasks_uncounted AFTER DELETE ON tasks BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'task' AND topic = '' AND state = OLD.status;
END
;;
CREATE TRIGGER outbox_counted AFTER INSERT ON outbox BEGIN
    INSERT INTO tally VALUES ('outbox', NEW.topic, NEW.state, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END
;;
CREATE TRIGGER outbox_recounted AFTER UPDATE OF state ON outbox WHEN OLD.state <> NEW.state BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'outbox' AND topic = OLD.topic AND state = OLD.state;
    INSERT INTO tally VALUES ('outbox', NEW.topic, NEW.state, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END
;;
CREATE TRIGGER outbox_uncounted AFTER DELETE ON outbox BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'outbox' AND topic = OLD.topic AND state = OLD.state;
END
;;
CREATE TRIGGER outbox_waits AFTER INSERT ON outbox WHEN NEW.state = 'waiting' BEGIN
    INSERT INTO backlog VALUES (NEW.topic, NEW.host, NEW.rank, 1, NEW.due_at)
    ON CONFLICT DO UPDATE SET waiting = waiting + 1, not_before = min(not_before, excluded.not_before);
END
;;
CREATE TRIGGER outbox_stops_waiting AFTER UPDATE OF state, due_at, host, queue, priority ON outbox
WHEN OLD.state = 'waiting' BEGIN
    UPDATE backlog SET waiting = waiting - 1 WHERE topic = OLD.topic AND host = OLD.host AND rank = OLD.rank;
END
;;
CREATE TRIGGER outbox_waits_again AFTER UPDATE OF state, due_at, host, queue, priority ON outbox
WHEN NEW.state = 'waiting' BEGIN
    INSERT INTO backlog VALUES (NEW.topic, NEW.host, NEW.rank, 1, NEW.due_at)
    ON CONFLICT DO UPDATE SET waiting = waiting + 1, not_before = min(not_before, excluded.not_before);
END
;;
CREATE TRIGGER outbox_gone_waiting AFTER DELETE ON outbox WHEN OLD.state = 'waiting' BEGIN
    UPDATE backlog SET waiting = waiting - 1 WHERE topic = OLD.topic AND host = OLD.host AND rank = OLD.rank;
END
;;
CREATE TABLE attempts (
    id INTEGER PRIMARY KEY,
    outbox_id INTEGER NOT NULL,
    task_id TEXT NOT NULL,
    topic TEXT NOT NULL,
    at TEXT NOT NULL,
    reason TEXT NOT NULL,
    error TEXT NOT NULL
)
;;
CREATE INDEX attempts_of_task ON attempts (task_id)
;;
CREATE TABLE hosts (
    host TEXT NOT NULL PRIMARY KEY,
    -- seconds and open requests that the platform asks for; NULL means the setting's
    delay REAL,
    concurrency INTEGER,
    next_allowed_at INTEGER NOT NULL DEFAULT 0,
    cooling_until INTEGER NOT NULL DEFAULT 0,
    failures_in_a_row INTEGER NOT NULL DEFAULT 0,
    failing_since INTEGER,
    reason TEXT
) WITHOUT ROWID
;;
CREATE TABLE pauses (
    lane TEXT NOT NULL CHECK (lane IN ('intake', 'fetch', 'upload')),
    cause TEXT NOT NULL,
    since TEXT NOT NULL,
    words TEXT NOT NULL,
    PRIMARY KEY (lane, cause)
) WITHOUT ROWID
;;
CREATE TABLE workers (
    holder TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    pid INTEGER NOT NULL,
    slots INTEGER NOT NULL,
    beat INTEGER NOT NULL DEFAULT 0,
    started_at TEXT NOT NULL,
    seen_at TEXT NOT NULL
) WITHOUT ROWID
;;
CREATE TABLE turns (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    taken_at TEXT NOT NULL
) WITHOUT ROWID
;;
CREATE TABLE imports (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('running', 'done', 'stopped')),
    rows INTEGER NOT NULL DEFAULT 0,
    added INTEGER NOT NULL DEFAULT 0,
    known INTEGER NOT NULL DEFAULT 0,
    refreshed INTEGER NOT NULL DEFAULT 0,
    rejected INTEGER NOT NULL DEFAULT 0,
    rejects_path TEXT,
    started_at TEXT NOT NULL,
    finished_at TEXT
)
;;
CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    who TEXT NOT NULL,
    action TEXT NOT NULL,
    what TEXT NOT NULL,
    n INTEGER NOT NULL
)
