-- Lists for people: each index gives its rows in the order in which they came, so that a page of a list is a short walk.
CREATE INDEX tasks_by_county ON tasks (county) WHERE county IS NOT NULL
;;
CREATE INDEX tasks_by_platform ON tasks (platform) WHERE platform IS NOT NULL
;;
CREATE INDEX tasks_by_hand ON tasks (source) WHERE source = 'cli'
;;
CREATE INDEX tasks_urgent ON tasks (queue) WHERE queue = 'urgent'
;;
CREATE INDEX tasks_by_parcel ON tasks (parcel_id COLLATE NOCASE) WHERE parcel_id IS NOT NULL
;;
CREATE INDEX results_by_county ON results (county) WHERE county IS NOT NULL
;;
CREATE INDEX results_by_platform ON results (platform)
;;
-- What happened, by minute: kept by the triggers below in the transactions that it speaks of, so that charts are never
-- behind and survive a restart. Old minutes are folded into hours, and in the end into minute 0, which is "ever".
CREATE TABLE rollups (
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    minute INTEGER NOT NULL,
    n INTEGER NOT NULL,
    total INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (name, key, minute)
) WITHOUT ROWID
;;
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
END
;;
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
END
;;
CREATE TRIGGER tries_failed AFTER INSERT ON attempts BEGIN
    INSERT INTO rollups VALUES ('try', NEW.topic || '|' || NEW.reason, strftime('%s', NEW.at) / 60, 1, 0)
    ON CONFLICT DO UPDATE SET n = n + 1;
END
;;
CREATE TRIGGER outbox_ended AFTER UPDATE OF state ON outbox
WHEN NEW.state IN ('delivered', 'superseded', 'parked', 'discarded') AND OLD.state <> NEW.state BEGIN
    INSERT INTO rollups VALUES (
        'outbox', NEW.topic || '|' || NEW.state, coalesce(NEW.finished_at, strftime('%s', 'now') * 1000) / 60000, 1, 0
    ) ON CONFLICT DO UPDATE SET n = n + 1;
END
;;
-- The backlog by age: what waits, by lane, host and the minute in which it came.
CREATE TABLE waiting_since (
    topic TEXT NOT NULL,
    host TEXT NOT NULL,
    minute INTEGER NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (topic, host, minute)
) WITHOUT ROWID
;;
CREATE TRIGGER outbox_ages AFTER INSERT ON outbox WHEN NEW.state = 'waiting' BEGIN
    INSERT INTO waiting_since VALUES (NEW.topic, NEW.host, NEW.created_at / 60000, 1)
    ON CONFLICT DO UPDATE SET n = n + 1;
END
;;
CREATE TRIGGER outbox_stops_ageing AFTER UPDATE OF state, host ON outbox
WHEN OLD.state = 'waiting' AND (NEW.state <> 'waiting' OR NEW.host <> OLD.host) BEGIN
    UPDATE waiting_since SET n = n - 1
    WHERE topic = OLD.topic AND host = OLD.host AND minute = OLD.created_at / 60000;
END
;;
CREATE TRIGGER outbox_ages_again AFTER UPDATE OF state, host ON outbox
WHEN NEW.state = 'waiting' AND (OLD.state <> 'waiting' OR NEW.host <> OLD.host) BEGIN
    INSERT INTO waiting_since VALUES (NEW.topic, NEW.host, NEW.created_at / 60000, 1)
    ON CONFLICT DO UPDATE SET n = n + 1;
END
;;
CREATE TRIGGER outbox_gone_ageing AFTER DELETE ON outbox WHEN OLD.state = 'waiting' BEGIN
    UPDATE waiting_since SET n = n - 1
    WHERE topic = OLD.topic AND host = OLD.host AND minute = OLD.created_at / 60000;
END
;;
-- What is set aside, the same error on many rows as one line.
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
) WITHOUT ROWID
;;
CREATE TRIGGER outbox_added_aside AFTER INSERT ON outbox WHEN NEW.state IN ('held', 'parked') BEGIN
    INSERT INTO set_aside VALUES (
        NEW.state, NEW.topic, coalesce(NEW.reason, ''), coalesce(NEW.fingerprint, ''), 1,
        NEW.created_at, NEW.created_at, NEW.id
    ) ON CONFLICT DO UPDATE SET n = n + 1, last_at = excluded.last_at, sample_id = excluded.sample_id;
END
;;
CREATE TRIGGER outbox_back_from_aside AFTER UPDATE OF state, reason, fingerprint ON outbox
WHEN OLD.state IN ('held', 'parked') BEGIN
    UPDATE set_aside SET n = n - 1 WHERE state = OLD.state AND topic = OLD.topic
    AND reason = coalesce(OLD.reason, '') AND fingerprint = coalesce(OLD.fingerprint, '');
END
;;
CREATE TRIGGER outbox_put_aside AFTER UPDATE OF state, reason, fingerprint ON outbox
WHEN NEW.state IN ('held', 'parked') BEGIN
    INSERT INTO set_aside VALUES (
        NEW.state, NEW.topic, coalesce(NEW.reason, ''), coalesce(NEW.fingerprint, ''), 1,
        coalesce(NEW.finished_at, NEW.created_at), coalesce(NEW.finished_at, NEW.created_at), NEW.id
    ) ON CONFLICT DO UPDATE SET
        -- A group that was empty begins anew.
        first_at = CASE WHEN n <= 0 THEN excluded.first_at ELSE min(first_at, excluded.first_at) END,
        last_at = max(last_at, excluded.last_at), sample_id = excluded.sample_id, n = n + 1;
END
;;
CREATE TRIGGER outbox_gone_from_aside AFTER DELETE ON outbox WHEN OLD.state IN ('held', 'parked') BEGIN
    UPDATE set_aside SET n = n - 1 WHERE state = OLD.state AND topic = OLD.topic
    AND reason = coalesce(OLD.reason, '') AND fingerprint = coalesce(OLD.fingerprint, '');
END
;;
-- Failed tasks by reason, with the newest of each.
CREATE TABLE failed_tasks (
    reason TEXT NOT NULL PRIMARY KEY,
    n INTEGER NOT NULL,
    sample TEXT NOT NULL,
    last_at TEXT NOT NULL
) WITHOUT ROWID
;;
CREATE TRIGGER tasks_came_failed AFTER INSERT ON tasks WHEN NEW.status IN ('failed', 'expired') BEGIN
    INSERT INTO failed_tasks VALUES (coalesce(NEW.reason, 'unknown'), 1, NEW.task_id, NEW.updated_at)
    ON CONFLICT DO UPDATE SET n = n + 1, sample = excluded.sample, last_at = excluded.last_at;
END
;;
CREATE TRIGGER tasks_no_longer_failed AFTER UPDATE OF status, reason ON tasks
WHEN OLD.status IN ('failed', 'expired') BEGIN
    UPDATE failed_tasks SET n = n - 1 WHERE reason = coalesce(OLD.reason, 'unknown');
END
;;
CREATE TRIGGER tasks_failed AFTER UPDATE OF status, reason ON tasks
WHEN NEW.status IN ('failed', 'expired') BEGIN
    INSERT INTO failed_tasks VALUES (coalesce(NEW.reason, 'unknown'), 1, NEW.task_id, NEW.updated_at)
    ON CONFLICT DO UPDATE SET n = n + 1, sample = excluded.sample, last_at = excluded.last_at;
END
;;
CREATE TRIGGER tasks_gone_failed AFTER DELETE ON tasks WHEN OLD.status IN ('failed', 'expired') BEGIN
    UPDATE failed_tasks SET n = n - 1 WHERE reason = coalesce(OLD.reason, 'unknown');
END
;;
-- An older file: what is there already.
INSERT INTO failed_tasks
SELECT coalesce(reason, 'unknown'), count(*), max(task_id), max(updated_at) FROM tasks
WHERE status IN ('failed', 'expired') GROUP BY 1
;;
INSERT INTO waiting_since
SELECT topic, host, created_at / 60000, count(*) FROM outbox WHERE state = 'waiting' GROUP BY 1, 2, 3
;;
INSERT INTO set_aside
SELECT state, topic, coalesce(reason, ''), coalesce(fingerprint, ''), count(*),
    min(coalesce(finished_at, created_at)), max(coalesce(finished_at, created_at)), max(id)
FROM outbox WHERE state IN ('held', 'parked') GROUP BY 1, 2, 3, 4
;;
INSERT INTO rollups
SELECT 'task', status, strftime('%s', completed_at) / 60, count(*), 0 FROM tasks
WHERE completed_at IS NOT NULL AND status IN ('completed', 'failed', 'expired') GROUP BY 2, 3
;;
INSERT INTO rollups
SELECT 'county', coalesce(platform, '') || '|' || coalesce(state, '') || '|' || coalesce(county, '') || '|' || status,
    strftime('%s', completed_at) / 86400 * 1440, count(*), 0 FROM tasks
WHERE completed_at IS NOT NULL AND status IN ('completed', 'failed', 'expired') GROUP BY 2, 3
