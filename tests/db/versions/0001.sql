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
) WITHOUT ROWID;
INSERT INTO "hosts" VALUES('127.0.0.1:1',NULL,NULL,0,0,0,NULL,NULL);
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
);
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
);
INSERT INTO "outbox" VALUES(1,'fetch','waits',1,'127.0.0.1:1','default',3,NULL,'waiting',0,0,0,NULL,NULL,NULL,NULL,NULL,1760000000000,NULL);
INSERT INTO "outbox" VALUES(2,'fetch','leased',1,'127.0.0.1:1','default',3,NULL,'leased',0,0,0,'gone.1',1,NULL,NULL,NULL,1760000000000,NULL);
INSERT INTO "outbox" VALUES(3,'fetch','done',1,'127.0.0.1:1','default',3,NULL,'delivered',0,0,0,NULL,NULL,NULL,NULL,NULL,1760000000000,1760000001000);
INSERT INTO "outbox" VALUES(4,'scrape','done',1,'','default',3,NULL,'delivered',0,0,0,NULL,NULL,NULL,NULL,NULL,1760000000000,1760000002000);
INSERT INTO "outbox" VALUES(5,'upload_raw','done',1,'','default',3,NULL,'held',0,0,0,NULL,NULL,NULL,'standalone',NULL,1760000000000,NULL);
INSERT INTO "outbox" VALUES(6,'upload_result','done',1,'','default',3,NULL,'held',9000000000000000,0,0,NULL,NULL,NULL,'standalone',NULL,1760000000000,NULL);
INSERT INTO "outbox" VALUES(7,'fetch','failed',1,'127.0.0.1:1','default',3,NULL,'delivered',0,0,0,NULL,NULL,NULL,'http_404',NULL,1760000000000,1760000001000);
INSERT INTO "outbox" VALUES(8,'fetch','read',1,'127.0.0.1:1','default',3,NULL,'delivered',0,0,0,NULL,NULL,NULL,NULL,NULL,1760000000000,1760000001000);
INSERT INTO "outbox" VALUES(9,'scrape','read',1,'','default',3,NULL,'waiting',0,0,0,NULL,NULL,NULL,NULL,NULL,1760000000000,NULL);
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
);
INSERT INTO "pages" VALUES('done',1,'raw/done.html.gz','0000000000000000000000000000000000000000000000000000000000000000',10,'http://127.0.0.1:1/parcel/done',200,'text/html',NULL,NULL,NULL,'2026-10-09T08:53:20.000Z',5);
INSERT INTO "pages" VALUES('read',1,'raw/read.html.gz','0000000000000000000000000000000000000000000000000000000000000000',10,'http://127.0.0.1:1/parcel/read',200,'text/html',NULL,NULL,NULL,'2026-10-09T08:53:20.000Z',5);
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
);
INSERT INTO "results" VALUES('done',1,'P-done','demo','XX','Juniper','{"owner_name": "DOE"}','pending/done.json','raw/done.html.gz','0000000000000000000000000000000000000000000000000000000000000000','2026-10-09T08:53:20.000Z',NULL,'demo/1','2026-10-09T08:53:20.000Z',3,0,0,NULL);
CREATE TABLE schema_versions (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at TEXT NOT NULL
);
INSERT INTO "schema_versions" VALUES(1,'spine','2026-10-09T08:53:20.000Z');
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
);
INSERT INTO "tasks" VALUES('waits','cli','demo','XX','Juniper','P-waits','http://127.0.0.1:1/parcel/waits','{}','default',3,'pending',1,0,NULL,NULL,NULL,'2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z',NULL,NULL);
INSERT INTO "tasks" VALUES('leased','cli','demo','XX','Juniper','P-leased','http://127.0.0.1:1/parcel/leased','{}','default',3,'processing',1,0,NULL,NULL,NULL,'2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z',NULL,NULL);
INSERT INTO "tasks" VALUES('done','cli','demo','XX','Juniper','P-done','http://127.0.0.1:1/parcel/done','{}','default',3,'completed',1,0,NULL,NULL,NULL,'2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z',NULL);
INSERT INTO "tasks" VALUES('failed','cli','demo','XX','Juniper','P-failed','http://127.0.0.1:1/parcel/failed','{}','default',3,'failed',1,0,'http_404',NULL,NULL,'2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z',NULL);
INSERT INTO "tasks" VALUES('read','cli','demo','XX','Juniper','P-read','http://127.0.0.1:1/parcel/read','{}','default',3,'pending',1,0,NULL,NULL,NULL,'2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z','2026-10-09T08:53:20.000Z',NULL,NULL);
CREATE TABLE turns (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    taken_at TEXT NOT NULL
) WITHOUT ROWID;
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
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('outbox',9);
INSERT INTO "sqlite_sequence" VALUES('audit',1);
COMMIT;
