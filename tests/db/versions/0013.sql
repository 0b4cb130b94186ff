BEGIN TRANSACTION;
CREATE TABLE attempts (
    id INTEGER PRIMARY KEY,
    outbox_id INTEGER NOT NULL,
    task_id TEXT NOT NULL,
    topic TEXT NOT NULL,
    at TEXT NOT NULL,
    reason TEXT NOT NULL,
    error TEXT NOT NULL
);
CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    who TEXT NOT NULL,
    action TEXT NOT NULL,
    what TEXT NOT NULL,
    n INTEGER NOT NULL
);
INSERT INTO "audit" VALUES(1,'2026-10-09T08:53:20.000Z','ann','retry','all',1);
CREATE TABLE backlog (
    topic TEXT NOT NULL,
    host TEXT NOT NULL,
    rank INTEGER NOT NULL,
    waiting INTEGER NOT NULL,
    not_before INTEGER NOT NULL,
    PRIMARY KEY (topic, host, rank)
) WITHOUT ROWID;
INSERT INTO "backlog" VALUES('fetch','127.0.0.1:1',13,1,0);
INSERT INTO "backlog" VALUES('scrape','',13,1,0);
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
, last_calls TEXT NOT NULL DEFAULT '', last_call_at INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE counters (
    name TEXT NOT NULL,
    topic TEXT NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (name, topic)
) WITHOUT ROWID;
INSERT INTO "counters" VALUES('added','fetch',5);
INSERT INTO "counters" VALUES('added','scrape',2);
INSERT INTO "counters" VALUES('added','upload_raw',1);
INSERT INTO "counters" VALUES('added','upload_result',1);
CREATE TABLE delivered_parcels (
    parcel_key TEXT NOT NULL PRIMARY KEY,
    task_id TEXT NOT NULL,
    fetched_at TEXT NOT NULL,
    generation INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE doomed_files (
    path TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE facts (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL,
    at TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE failed_tasks (
    reason TEXT NOT NULL PRIMARY KEY,
    n INTEGER NOT NULL,
    sample TEXT NOT NULL,
    last_at TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "failed_tasks" VALUES('http_404',1,'failed','2026-10-09T08:53:20.000Z');
CREATE TABLE field_history (
    platform TEXT NOT NULL,
    state TEXT NOT NULL,
    county TEXT NOT NULL,
    -- the newest pages, oldest first: each a number whose bits say which fields were there
    recent TEXT NOT NULL DEFAULT '[]',
    -- of the pages before them: how many, and in how many each field was there
    pages INTEGER NOT NULL DEFAULT 0,
    counts TEXT NOT NULL DEFAULT '{}',
    -- set while the guard keeps this county back: since when, why, and a page that shows it
    paused_at TEXT,
    words TEXT,
    sample_task TEXT,
    sample_path TEXT, ranges TEXT NOT NULL DEFAULT '{}',
    PRIMARY KEY (platform, state, county)
) WITHOUT ROWID;
CREATE TABLE harvests (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    url TEXT NOT NULL,
    platform TEXT NOT NULL,
    state TEXT NOT NULL,
    county TEXT NOT NULL,
    plan TEXT NOT NULL,
    -- what opens the source, never shown and not in backups
    secret TEXT,
    page_task TEXT,
    announced INTEGER,
    pages INTEGER NOT NULL DEFAULT 0,
    open_pages INTEGER NOT NULL DEFAULT 0,
    read INTEGER NOT NULL DEFAULT 0,
    added INTEGER NOT NULL DEFAULT 0,
    refreshed INTEGER NOT NULL DEFAULT 0,
    unchanged INTEGER NOT NULL DEFAULT 0,
    rejected INTEGER NOT NULL DEFAULT 0,
    notes TEXT NOT NULL DEFAULT '[]',
    started_at TEXT NOT NULL,
    finished_at TEXT
);
CREATE TABLE host_paces (
    site TEXT NOT NULL PRIMARY KEY,
    -- when it was last looked at, ms; how many tries and ends there had been by then; whether work was due
    at INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    was_busy INTEGER NOT NULL,
    -- moving averages, and of how many tries they are made
    ms_per_try REAL,
    tries_per_task REAL,
    seen REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;
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
, robots_delay REAL, served INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0, flow_width INTEGER, requests REAL, operator_delay REAL, operator_concurrency INTEGER, over_robots INTEGER NOT NULL DEFAULT 0, paused_at INTEGER, ended INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
INSERT INTO "hosts" VALUES('127.0.0.1:1',NULL,NULL,0,0,0,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL,0,NULL,0);
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
, due_by INTEGER, auction TEXT);
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    topic TEXT NOT NULL,
    task_id TEXT REFERENCES tasks,
    generation INTEGER NOT NULL,
    host TEXT NOT NULL DEFAULT '',
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    -- urgent before default, then priority: 1..4 and 11..14
    rank INTEGER GENERATED ALWAYS AS (CASE queue WHEN 'urgent' THEN priority ELSE 10 + priority END) STORED,
    payload TEXT,
    state TEXT NOT NULL,
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
    finished_at INTEGER, parcel_key TEXT, blame INTEGER NOT NULL DEFAULT 0, seen_successes INTEGER, raw_id INTEGER, due_by INTEGER,
    UNIQUE (task_id, topic, generation)
);
INSERT INTO "outbox" VALUES(1,'fetch','waits',1,'127.0.0.1:1','default',3,NULL,'waiting',0,0,0,NULL,NULL,NULL,NULL,NULL,1760000000000,NULL,NULL,0,NULL,NULL,NULL);
INSERT INTO "outbox" VALUES(2,'fetch','leased',1,'127.0.0.1:1','default',3,NULL,'leased',0,0,0,'gone.1',1,NULL,NULL,NULL,1760000000000,NULL,NULL,0,NULL,NULL,NULL);
INSERT INTO "outbox" VALUES(3,'fetch','done',1,'127.0.0.1:1','default',3,NULL,'delivered',0,0,0,NULL,NULL,NULL,NULL,NULL,1760000000000,1760000001000,NULL,0,NULL,NULL,NULL);
INSERT INTO "outbox" VALUES(4,'scrape','done',1,'','default',3,NULL,'delivered',0,0,0,NULL,NULL,NULL,NULL,NULL,1760000000000,1760000002000,NULL,0,NULL,NULL,NULL);
INSERT INTO "outbox" VALUES(5,'upload_raw','done',1,'','default',3,NULL,'held',0,0,0,NULL,NULL,NULL,'standalone',NULL,1760000000000,NULL,NULL,0,NULL,NULL,NULL);
INSERT INTO "outbox" VALUES(6,'upload_result','done',1,'','default',3,NULL,'held',9000000000000000,0,0,NULL,NULL,NULL,'standalone',NULL,1760000000000,NULL,NULL,0,NULL,NULL,NULL);
INSERT INTO "outbox" VALUES(7,'fetch','failed',1,'127.0.0.1:1','default',3,NULL,'delivered',0,0,0,NULL,NULL,NULL,'http_404',NULL,1760000000000,1760000001000,NULL,0,NULL,NULL,NULL);
INSERT INTO "outbox" VALUES(8,'fetch','read',1,'127.0.0.1:1','default',3,NULL,'delivered',0,0,0,NULL,NULL,NULL,NULL,NULL,1760000000000,1760000001000,NULL,0,NULL,NULL,NULL);
INSERT INTO "outbox" VALUES(9,'scrape','read',1,'','default',3,NULL,'waiting',0,0,0,NULL,NULL,NULL,NULL,NULL,1760000000000,NULL,NULL,0,NULL,NULL,NULL);
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
    fetch_ms INTEGER NOT NULL, purged_at TEXT, part TEXT NOT NULL DEFAULT 'page', position INTEGER NOT NULL DEFAULT 0, sent_name TEXT,
    PRIMARY KEY (task_id, generation, part)
);
INSERT INTO "pages" VALUES('done',1,'raw/done.html.gz','0000000000000000000000000000000000000000000000000000000000000000',10,'http://127.0.0.1:1/parcel/done',200,'text/html',NULL,NULL,NULL,'2026-10-09T08:53:20.000Z',5,NULL,'page',0,NULL);
INSERT INTO "pages" VALUES('read',1,'raw/read.html.gz','0000000000000000000000000000000000000000000000000000000000000000',10,'http://127.0.0.1:1/parcel/read',200,'text/html',NULL,NULL,NULL,'2026-10-09T08:53:20.000Z',5,NULL,'page',0,NULL);
CREATE TABLE paused_counties (
    state TEXT NOT NULL COLLATE NOCASE,
    county TEXT NOT NULL COLLATE NOCASE,
    since TEXT NOT NULL,
    PRIMARY KEY (state, county)
) WITHOUT ROWID;
CREATE TABLE pauses (
    lane TEXT NOT NULL CHECK (lane IN ('intake', 'fetch', 'upload')),
    cause TEXT NOT NULL,
    since TEXT NOT NULL,
    words TEXT NOT NULL,
    PRIMARY KEY (lane, cause)
) WITHOUT ROWID;
CREATE TABLE results (
    task_id TEXT NOT NULL PRIMARY KEY REFERENCES tasks,
    generation INTEGER NOT NULL,
    parcel_id TEXT,
    platform TEXT NOT NULL,
    state TEXT,
    county TEXT,
    data TEXT NOT NULL,
    json_path TEXT,
    html_path TEXT,
    raw_sha256 TEXT NOT NULL,
    fetched_at TEXT NOT NULL,
    confirmed_at TEXT,
    parser_version TEXT NOT NULL,
    scraped_at TEXT NOT NULL,
    parse_duration_ms INTEGER NOT NULL,
    synced INTEGER NOT NULL DEFAULT 0,
    sync_attempts INTEGER NOT NULL DEFAULT 0,
    last_error TEXT
, stays_here INTEGER NOT NULL DEFAULT 0, doubts TEXT, source_task TEXT, source_index INTEGER);
INSERT INTO "results" VALUES('done',1,'P-done','demo','XX','Juniper','{"owner_name": "DOE"}','pending/done.json','raw/done.html.gz','0000000000000000000000000000000000000000000000000000000000000000','2026-10-09T08:53:20.000Z',NULL,'demo/1','2026-10-09T08:53:20.000Z',3,0,0,NULL,0,NULL,NULL,NULL);
CREATE TABLE rollups (
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    minute INTEGER NOT NULL,
    n INTEGER NOT NULL,
    total INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (name, key, minute)
) WITHOUT ROWID;
INSERT INTO "rollups" VALUES('fetch','demo',29858933,2,20);
INSERT INTO "rollups" VALUES('fetch_ms','50',29858933,2,10);
CREATE TABLE run_pages (
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    task_id TEXT NOT NULL,
    platform TEXT,
    state TEXT,
    county TEXT,
    parcel_id TEXT,
    -- why the page gave no record
    reason TEXT,
    -- the record: JSON, compressed
    data BLOB,
    PRIMARY KEY (run_id, task_id)
) WITHOUT ROWID;
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    what TEXT NOT NULL,
    started_at TEXT NOT NULL,
    finished_at TEXT,
    -- platform: version, as far as pages were met
    versions TEXT NOT NULL DEFAULT '{}',
    pages INTEGER NOT NULL DEFAULT 0,
    changed INTEGER NOT NULL DEFAULT 0,
    unchanged INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE schema_versions (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at TEXT NOT NULL
);
INSERT INTO "schema_versions" VALUES(1,'spine','2026-10-09T08:53:20.000Z');
INSERT INTO "schema_versions" VALUES(2,'ondemand','2026-10-09T08:53:20.000Z');
INSERT INTO "schema_versions" VALUES(3,'platforms','2026-10-09T08:53:20.000Z');
INSERT INTO "schema_versions" VALUES(4,'monitor','2026-10-09T08:53:20.000Z');
INSERT INTO "schema_versions" VALUES(5,'retention','2026-10-09T08:53:20.000Z');
INSERT INTO "schema_versions" VALUES(6,'places','2026-10-09T08:53:20.000Z');
INSERT INTO "schema_versions" VALUES(7,'last_calls','2026-10-09T08:53:20.000Z');
INSERT INTO "schema_versions" VALUES(8,'room','2026-10-09T08:53:20.000Z');
INSERT INTO "schema_versions" VALUES(9,'doubts','2026-10-09T08:53:20.000Z');
INSERT INTO "schema_versions" VALUES(10,'keys','2026-10-09T08:53:20.000Z');
INSERT INTO "schema_versions" VALUES(11,'flows','2026-10-09T08:53:20.000Z');
INSERT INTO "schema_versions" VALUES(12,'harvest','2026-10-09T08:53:20.000Z');
INSERT INTO "schema_versions" VALUES(13,'auction_day','2026-10-09T08:53:20.000Z');
CREATE TABLE sessions (
    platform TEXT NOT NULL,
    -- the host, and the proxy by which it is reached
    route TEXT NOT NULL,
    number INTEGER NOT NULL,
    -- cookies and captured values as JSON, a secret; NULL where the session is still to be opened
    secret TEXT,
    -- the flow that opened it: another one does not use it
    made_by TEXT,
    opened_at INTEGER,
    ends_at INTEGER,
    row_id INTEGER,
    token TEXT,
    PRIMARY KEY (platform, route, number)
) WITHOUT ROWID;
CREATE TABLE set_aside (
    state TEXT NOT NULL,
    topic TEXT NOT NULL,
    reason TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    n INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    sample_id INTEGER NOT NULL,
    PRIMARY KEY (state, topic, reason, fingerprint)
) WITHOUT ROWID;
INSERT INTO "set_aside" VALUES('held','upload_raw','standalone','',1,1760000000000,1760000000000,5);
INSERT INTO "set_aside" VALUES('held','upload_result','standalone','',1,1760000000000,1760000000000,6);
CREATE TABLE tally (
    kind TEXT NOT NULL,
    topic TEXT NOT NULL,
    state TEXT NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (kind, topic, state)
) WITHOUT ROWID;
INSERT INTO "tally" VALUES('outbox','fetch','delivered',3);
INSERT INTO "tally" VALUES('outbox','fetch','leased',1);
INSERT INTO "tally" VALUES('outbox','fetch','waiting',1);
INSERT INTO "tally" VALUES('outbox','scrape','delivered',1);
INSERT INTO "tally" VALUES('outbox','scrape','waiting',1);
INSERT INTO "tally" VALUES('outbox','upload_raw','held',1);
INSERT INTO "tally" VALUES('outbox','upload_result','held',1);
INSERT INTO "tally" VALUES('task','','completed',1);
INSERT INTO "tally" VALUES('task','','failed',1);
INSERT INTO "tally" VALUES('task','','pending',2);
INSERT INTO "tally" VALUES('task','','processing',1);
CREATE TABLE tasks (
    task_id TEXT NOT NULL PRIMARY KEY,
    source TEXT NOT NULL,
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
, proxy TEXT, platform_learned INTEGER NOT NULL DEFAULT 0, due_by INTEGER);
INSERT INTO "tasks" VALUES('waits','cli','demo','XX','Juniper','P-waits','http://127.0.0.1:1/parcel/waits','{}','default',3,'pending',1,0,NULL,NULL,NULL,'2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z',NULL,NULL,NULL,0,NULL);
INSERT INTO "tasks" VALUES('leased','cli','demo','XX','Juniper','P-leased','http://127.0.0.1:1/parcel/leased','{}','default',3,'processing',1,0,NULL,NULL,NULL,'2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z',NULL,NULL,NULL,0,NULL);
INSERT INTO "tasks" VALUES('done','cli','demo','XX','Juniper','P-done','http://127.0.0.1:1/parcel/done','{}','default',3,'completed',1,0,NULL,NULL,NULL,'2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z',NULL,NULL,0,NULL);
INSERT INTO "tasks" VALUES('failed','cli','demo','XX','Juniper','P-failed','http://127.0.0.1:1/parcel/failed','{}','default',3,'failed',1,0,'http_404',NULL,NULL,'2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z',NULL,NULL,0,NULL);
INSERT INTO "tasks" VALUES('read','cli','demo','XX','Juniper','P-read','http://127.0.0.1:1/parcel/read','{}','default',3,'pending',1,0,NULL,NULL,NULL,'2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z',NULL,NULL,NULL,0,NULL);
CREATE TABLE turns (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    taken_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE unsafe_posts (
    task_id TEXT NOT NULL PRIMARY KEY,
    generation INTEGER NOT NULL,
    step TEXT NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE waiting_since (
    topic TEXT NOT NULL,
    host TEXT NOT NULL,
    -- platform, state and county with bars between them; empty for all but fetches
    place TEXT NOT NULL,
    minute INTEGER NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (topic, host, place, minute)
) WITHOUT ROWID;
INSERT INTO "waiting_since" VALUES('fetch','127.0.0.1:1','demo|XX|Juniper',29333333,1);
INSERT INTO "waiting_since" VALUES('scrape','','',29333333,1);
CREATE TABLE workers (
    holder TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    pid INTEGER NOT NULL,
    slots INTEGER NOT NULL,
    beat INTEGER NOT NULL DEFAULT 0,
    started_at TEXT NOT NULL,
    seen_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX tasks_by_status ON tasks (status);
CREATE INDEX tasks_by_import ON tasks (import_id, status);
CREATE INDEX tasks_by_reason ON tasks (reason) WHERE reason IS NOT NULL;
CREATE INDEX results_unsynced ON results (scraped_at) WHERE synced = 0;
CREATE INDEX results_of_parcel ON results (parcel_id, platform);
CREATE INDEX outbox_waiting ON outbox (topic, host, rank, due_at) WHERE state = 'waiting';
CREATE INDEX outbox_leased ON outbox (lease_token) WHERE state = 'leased';
CREATE INDEX outbox_set_aside ON outbox (state, topic, reason) WHERE state IN ('held', 'parked');
CREATE TRIGGER tasks_counted AFTER INSERT ON tasks BEGIN
    INSERT INTO tally VALUES ('task', '', NEW.status, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER tasks_recounted AFTER UPDATE OF status ON tasks WHEN OLD.status <> NEW.status BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'task' AND topic = '' AND state = OLD.status;
    INSERT INTO tally VALUES ('task', '', NEW.status, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER tasks_uncounted AFTER DELETE ON tasks BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'task' AND topic = '' AND state = OLD.status;
END;
CREATE TRIGGER outbox_counted AFTER INSERT ON outbox BEGIN
    INSERT INTO tally VALUES ('outbox', NEW.topic, NEW.state, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER outbox_recounted AFTER UPDATE OF state ON outbox WHEN OLD.state <> NEW.state BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'outbox' AND topic = OLD.topic AND state = OLD.state;
    INSERT INTO tally VALUES ('outbox', NEW.topic, NEW.state, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER outbox_uncounted AFTER DELETE ON outbox BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'outbox' AND topic = OLD.topic AND state = OLD.state;
END;
CREATE TRIGGER outbox_waits AFTER INSERT ON outbox WHEN NEW.state = 'waiting' BEGIN
    INSERT INTO backlog VALUES (NEW.topic, NEW.host, NEW.rank, 1, NEW.due_at)
    ON CONFLICT DO UPDATE SET waiting = waiting + 1, not_before = min(not_before, excluded.not_before);
END;
CREATE TRIGGER outbox_stops_waiting AFTER UPDATE OF state, due_at, host, queue, priority ON outbox
WHEN OLD.state = 'waiting' BEGIN
    UPDATE backlog SET waiting = waiting - 1 WHERE topic = OLD.topic AND host = OLD.host AND rank = OLD.rank;
END;
CREATE TRIGGER outbox_waits_again AFTER UPDATE OF state, due_at, host, queue, priority ON outbox
WHEN NEW.state = 'waiting' BEGIN
    INSERT INTO backlog VALUES (NEW.topic, NEW.host, NEW.rank, 1, NEW.due_at)
    ON CONFLICT DO UPDATE SET waiting = waiting + 1, not_before = min(not_before, excluded.not_before);
END;
CREATE TRIGGER outbox_gone_waiting AFTER DELETE ON outbox WHEN OLD.state = 'waiting' BEGIN
    UPDATE backlog SET waiting = waiting - 1 WHERE topic = OLD.topic AND host = OLD.host AND rank = OLD.rank;
END;
CREATE INDEX attempts_of_task ON attempts (task_id);
CREATE INDEX tasks_by_end ON tasks (completed_at) WHERE completed_at IS NOT NULL;
CREATE INDEX outbox_parcels ON outbox (parcel_key)
WHERE topic = 'upload_result' AND state IN ('waiting', 'leased');
CREATE INDEX field_history_paused ON field_history (paused_at) WHERE paused_at IS NOT NULL;
CREATE INDEX tasks_by_county ON tasks (county) WHERE county IS NOT NULL;
CREATE INDEX tasks_by_platform ON tasks (platform) WHERE platform IS NOT NULL;
CREATE INDEX tasks_by_hand ON tasks (source) WHERE source = 'cli';
CREATE INDEX tasks_urgent ON tasks (queue) WHERE queue = 'urgent';
CREATE INDEX tasks_by_parcel ON tasks (parcel_id COLLATE NOCASE) WHERE parcel_id IS NOT NULL;
CREATE INDEX results_by_county ON results (county) WHERE county IS NOT NULL;
CREATE INDEX results_by_platform ON results (platform);
CREATE TRIGGER tasks_ended AFTER UPDATE OF status ON tasks
WHEN NEW.status IN ('completed', 'failed', 'expired') AND OLD.status <> NEW.status BEGIN
    INSERT INTO rollups VALUES ('task', NEW.status, strftime('%s', NEW.updated_at) / 60, 1, 0)
    ON CONFLICT DO UPDATE SET n = n + 1;
    -- A county's figures are kept by the day.
    INSERT INTO rollups VALUES (
        'county',
        coalesce(NEW.platform, '') || '|' || coalesce(NEW.state, '') || '|' || coalesce(NEW.county, '')
            || '|' || NEW.status,
        strftime('%s', NEW.updated_at) / 86400 * 1440, 1, 0
    ) ON CONFLICT DO UPDATE SET n = n + 1;
    -- Seconds from arrival to end, by the upper bound that they fit under.
    INSERT INTO rollups
    SELECT 'task_seconds',
        CASE WHEN s <= 1 THEN '1' WHEN s <= 5 THEN '5' WHEN s <= 15 THEN '15' WHEN s <= 60 THEN '60'
             WHEN s <= 300 THEN '300' WHEN s <= 900 THEN '900' WHEN s <= 3600 THEN '3600'
             WHEN s <= 14400 THEN '14400' WHEN s <= 86400 THEN '86400' ELSE '+Inf' END,
        strftime('%s', NEW.updated_at) / 60, 1, s
    FROM (SELECT max(0, strftime('%s', NEW.updated_at) - strftime('%s', NEW.received_at)) AS s)
    WHERE true ON CONFLICT DO UPDATE SET n = n + 1, total = total + excluded.total;
END;
CREATE TRIGGER pages_fetched AFTER INSERT ON pages BEGIN
    INSERT INTO rollups VALUES (
        'fetch',
        coalesce((SELECT platform FROM tasks WHERE task_id = NEW.task_id), 'unknown'),
        strftime('%s', NEW.fetched_at) / 60, 1, NEW.size
    ) ON CONFLICT DO UPDATE SET n = n + 1, total = total + excluded.total;
    INSERT INTO rollups VALUES (
        'fetch_ms',
        CASE WHEN NEW.fetch_ms <= 50 THEN '50' WHEN NEW.fetch_ms <= 100 THEN '100' WHEN NEW.fetch_ms <= 250 THEN '250'
             WHEN NEW.fetch_ms <= 500 THEN '500' WHEN NEW.fetch_ms <= 1000 THEN '1000'
             WHEN NEW.fetch_ms <= 2500 THEN '2500' WHEN NEW.fetch_ms <= 5000 THEN '5000'
             WHEN NEW.fetch_ms <= 10000 THEN '10000' WHEN NEW.fetch_ms <= 30000 THEN '30000' ELSE '+Inf' END,
        strftime('%s', NEW.fetched_at) / 60, 1, NEW.fetch_ms
    ) ON CONFLICT DO UPDATE SET n = n + 1, total = total + excluded.total;
END;
CREATE TRIGGER tries_failed AFTER INSERT ON attempts BEGIN
    INSERT INTO rollups VALUES ('try', NEW.topic || '|' || NEW.reason, strftime('%s', NEW.at) / 60, 1, 0)
    ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER outbox_ended AFTER UPDATE OF state ON outbox
WHEN NEW.state IN ('delivered', 'superseded', 'parked', 'discarded') AND OLD.state <> NEW.state BEGIN
    INSERT INTO rollups VALUES (
        'outbox', NEW.topic || '|' || NEW.state, coalesce(NEW.finished_at, strftime('%s', 'now') * 1000) / 60000, 1, 0
    ) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER outbox_added_aside AFTER INSERT ON outbox WHEN NEW.state IN ('held', 'parked') BEGIN
    INSERT INTO set_aside VALUES (
        NEW.state, NEW.topic, coalesce(NEW.reason, ''), coalesce(NEW.fingerprint, ''), 1,
        NEW.created_at, NEW.created_at, NEW.id
    ) ON CONFLICT DO UPDATE SET n = n + 1, last_at = excluded.last_at, sample_id = excluded.sample_id;
END;
CREATE TRIGGER outbox_back_from_aside AFTER UPDATE OF state, reason, fingerprint ON outbox
WHEN OLD.state IN ('held', 'parked') BEGIN
    UPDATE set_aside SET n = n - 1 WHERE state = OLD.state AND topic = OLD.topic
    AND reason = coalesce(OLD.reason, '') AND fingerprint = coalesce(OLD.fingerprint, '');
END;
CREATE TRIGGER outbox_put_aside AFTER UPDATE OF state, reason, fingerprint ON outbox
WHEN NEW.state IN ('held', 'parked') BEGIN
    INSERT INTO set_aside VALUES (
        NEW.state, NEW.topic, coalesce(NEW.reason, ''), coalesce(NEW.fingerprint, ''), 1,
        coalesce(NEW.finished_at, NEW.created_at), coalesce(NEW.finished_at, NEW.created_at), NEW.id
    ) ON CONFLICT DO UPDATE SET
        -- A group that was empty begins anew.
        first_at = CASE WHEN n <= 0 THEN excluded.first_at ELSE min(first_at, excluded.first_at) END,
        last_at = max(last_at, excluded.last_at), sample_id = excluded.sample_id, n = n + 1;
END;
CREATE TRIGGER outbox_gone_from_aside AFTER DELETE ON outbox WHEN OLD.state IN ('held', 'parked') BEGIN
    UPDATE set_aside SET n = n - 1 WHERE state = OLD.state AND topic = OLD.topic
    AND reason = coalesce(OLD.reason, '') AND fingerprint = coalesce(OLD.fingerprint, '');
END;
CREATE TRIGGER tasks_came_failed AFTER INSERT ON tasks WHEN NEW.status IN ('failed', 'expired') BEGIN
    INSERT INTO failed_tasks VALUES (coalesce(NEW.reason, 'unknown'), 1, NEW.task_id, NEW.updated_at)
    ON CONFLICT DO UPDATE SET n = n + 1, sample = excluded.sample, last_at = excluded.last_at;
END;
CREATE TRIGGER tasks_no_longer_failed AFTER UPDATE OF status, reason ON tasks
WHEN OLD.status IN ('failed', 'expired') BEGIN
    UPDATE failed_tasks SET n = n - 1 WHERE reason = coalesce(OLD.reason, 'unknown');
END;
CREATE TRIGGER tasks_failed AFTER UPDATE OF status, reason ON tasks
WHEN NEW.status IN ('failed', 'expired') BEGIN
    INSERT INTO failed_tasks VALUES (coalesce(NEW.reason, 'unknown'), 1, NEW.task_id, NEW.updated_at)
    ON CONFLICT DO UPDATE SET n = n + 1, sample = excluded.sample, last_at = excluded.last_at;
END;
CREATE TRIGGER tasks_gone_failed AFTER DELETE ON tasks WHEN OLD.status IN ('failed', 'expired') BEGIN
    UPDATE failed_tasks SET n = n - 1 WHERE reason = coalesce(OLD.reason, 'unknown');
END;
CREATE TRIGGER hosts_failed AFTER INSERT ON attempts
WHEN NEW.topic = 'fetch' AND NEW.reason NOT IN ('worker_died', 'host_down') BEGIN
    UPDATE hosts SET failed = failed + 1 WHERE host = (SELECT host FROM outbox WHERE id = NEW.outbox_id);
END;
CREATE TRIGGER outbox_ages AFTER INSERT ON outbox WHEN NEW.state = 'waiting' BEGIN
    INSERT INTO waiting_since VALUES (
        NEW.topic, NEW.host,
        CASE NEW.topic WHEN 'fetch' THEN coalesce((
            SELECT coalesce(platform, '') || '|' || coalesce(state, '') || '|' || coalesce(county, '')
            FROM tasks WHERE task_id = NEW.task_id), '') ELSE '' END,
        NEW.created_at / 60000, 1
    ) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER outbox_stops_ageing AFTER UPDATE OF state, host ON outbox
WHEN OLD.state = 'waiting' AND (NEW.state <> 'waiting' OR NEW.host <> OLD.host) BEGIN
    UPDATE waiting_since SET n = n - 1
    WHERE topic = OLD.topic AND host = OLD.host AND minute = OLD.created_at / 60000
    AND place = CASE OLD.topic WHEN 'fetch' THEN coalesce((
        SELECT coalesce(platform, '') || '|' || coalesce(state, '') || '|' || coalesce(county, '')
        FROM tasks WHERE task_id = OLD.task_id), '') ELSE '' END;
END;
CREATE TRIGGER outbox_ages_again AFTER UPDATE OF state, host ON outbox
WHEN NEW.state = 'waiting' AND (OLD.state <> 'waiting' OR NEW.host <> OLD.host) BEGIN
    INSERT INTO waiting_since VALUES (
        NEW.topic, NEW.host,
        CASE NEW.topic WHEN 'fetch' THEN coalesce((
            SELECT coalesce(platform, '') || '|' || coalesce(state, '') || '|' || coalesce(county, '')
            FROM tasks WHERE task_id = NEW.task_id), '') ELSE '' END,
        NEW.created_at / 60000, 1
    ) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER outbox_gone_ageing AFTER DELETE ON outbox WHEN OLD.state = 'waiting' BEGIN
    UPDATE waiting_since SET n = n - 1
    WHERE topic = OLD.topic AND host = OLD.host AND minute = OLD.created_at / 60000
    AND place = CASE OLD.topic WHEN 'fetch' THEN coalesce((
        SELECT coalesce(platform, '') || '|' || coalesce(state, '') || '|' || coalesce(county, '')
        FROM tasks WHERE task_id = OLD.task_id), '') ELSE '' END;
END;
CREATE INDEX results_doubtful ON results (scraped_at) WHERE doubts IS NOT NULL;
CREATE TRIGGER tasks_moved AFTER UPDATE OF platform, state, county ON tasks
WHEN OLD.platform IS NOT NEW.platform OR OLD.state IS NOT NEW.state OR OLD.county IS NOT NEW.county BEGIN
    UPDATE waiting_since SET n = n - 1 WHERE topic = 'fetch'
    AND place = coalesce(OLD.platform, '') || '|' || coalesce(OLD.state, '') || '|' || coalesce(OLD.county, '')
    AND (host, minute) IN (
        SELECT host, created_at / 60000 FROM outbox
        WHERE task_id = NEW.task_id AND topic = 'fetch' AND state = 'waiting');
    INSERT INTO waiting_since
    SELECT 'fetch', host,
        coalesce(NEW.platform, '') || '|' || coalesce(NEW.state, '') || '|' || coalesce(NEW.county, ''),
        created_at / 60000, 1
    FROM outbox WHERE task_id = NEW.task_id AND topic = 'fetch' AND state = 'waiting'
    ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO rollups
    SELECT 'county',
        coalesce(NEW.platform, '') || '|' || coalesce(NEW.state, '') || '|' || coalesce(NEW.county, '')
            || '|' || NEW.status,
        minute, 1, 0
    FROM rollups WHERE name = 'county' AND n > 0 AND minute = strftime('%s', NEW.completed_at) / 86400 * 1440
    AND key = coalesce(OLD.platform, '') || '|' || coalesce(OLD.state, '') || '|' || coalesce(OLD.county, '')
            || '|' || NEW.status
    ON CONFLICT DO UPDATE SET n = n + 1;
    UPDATE rollups SET n = n - 1 WHERE name = 'county' AND n > 0
    AND minute = strftime('%s', NEW.completed_at) / 86400 * 1440
    AND key = coalesce(OLD.platform, '') || '|' || coalesce(OLD.state, '') || '|' || coalesce(OLD.county, '')
            || '|' || NEW.status;
END;
CREATE VIEW local_results AS
SELECT r.rowid AS id, r.task_id, r.parcel_id, r.platform, r.state, r.county, t.url, r.data AS data_json, r.json_path,
    r.html_path, r.raw_sha256 AS raw_html_hash, r.parser_version, r.parse_duration_ms, r.scraped_at, r.scraped_at AS
    created_at, r.synced, r.sync_attempts, r.last_error
FROM results r LEFT JOIN tasks t ON t.task_id = r.task_id;
CREATE VIEW standalone_tasks AS
SELECT rowid AS id, task_id, source, platform, state, county, parcel_id, url, target_json, queue, priority, status,
    attempts, reason, last_error, import_id, created_at, updated_at, completed_at
FROM tasks;
CREATE INDEX results_by_time ON results (scraped_at);
CREATE INDEX tasks_by_address ON tasks (url) WHERE source = 'gateway';
CREATE INDEX results_of_source ON results (source_task, source_index) WHERE source_task IS NOT NULL;
CREATE INDEX outbox_after_raw ON outbox (raw_id) WHERE raw_id IS NOT NULL;
CREATE TRIGGER hosts_served AFTER UPDATE OF state ON outbox
WHEN NEW.topic = 'fetch' AND NEW.state = 'delivered' AND OLD.state = 'leased' AND NEW.reason IS NOT 'expired' BEGIN
    UPDATE hosts SET ended = ended + 1,
        served = served + (NEW.reason IS NULL OR NEW.reason IN ('unchanged', 'not_modified'))
    WHERE host = NEW.host;
END;
CREATE INDEX outbox_deadline_retries ON outbox (due_at)
WHERE state = 'waiting' AND due_by IS NOT NULL AND attempts > 0;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('outbox',9);
INSERT INTO "sqlite_sequence" VALUES('audit',1);
COMMIT;
