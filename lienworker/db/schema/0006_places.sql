-- A list has no parcel of its own to deliver: it stays here, and nothing waits for it to go.
ALTER TABLE results ADD COLUMN stays_here INTEGER NOT NULL DEFAULT 0
;;
UPDATE results SET stays_here = 1, json_path = NULL
WHERE synced = 0 AND json_extract(data, '$.parcels') IS NOT NULL AND json_extract(data, '$.parcel_id') IS NULL
;;
-- How often a host gave us what we asked for, and how often it did not.
ALTER TABLE hosts ADD COLUMN served INTEGER NOT NULL DEFAULT 0
;;
ALTER TABLE hosts ADD COLUMN failed INTEGER NOT NULL DEFAULT 0
;;
CREATE TRIGGER hosts_served AFTER UPDATE OF state ON outbox
WHEN NEW.topic = 'fetch' AND NEW.state = 'delivered' AND OLD.state = 'leased'
    AND (NEW.reason IS NULL OR NEW.reason IN ('unchanged', 'not_modified')) BEGIN
    UPDATE hosts SET served = served + 1 WHERE host = NEW.host;
END
;;
CREATE TRIGGER hosts_failed AFTER INSERT ON attempts
WHEN NEW.topic = 'fetch' AND NEW.reason NOT IN ('worker_died', 'host_down') BEGIN
    UPDATE hosts SET failed = failed + 1 WHERE host = (SELECT host FROM outbox WHERE id = NEW.outbox_id);
END
;;
-- The backlog by age knows the county, too, of what waits to be fetched.
DROP TRIGGER outbox_ages
;;
DROP TRIGGER outbox_stops_ageing
;;
DROP TRIGGER outbox_ages_again
;;
DROP TRIGGER outbox_gone_ageing
;;
DROP TABLE waiting_since
;;
CREATE TABLE waiting_since (
    topic TEXT NOT NULL,
    host TEXT NOT NULL,
    -- platform, state and county with bars between them; empty for all but fetches
    place TEXT NOT NULL,
    minute INTEGER NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (topic, host, place, minute)
) WITHOUT ROWID
;;
CREATE TRIGGER outbox_ages AFTER INSERT ON outbox WHEN NEW.state = 'waiting' BEGIN
    INSERT INTO waiting_since VALUES (
        NEW.topic, NEW.host,
        CASE NEW.topic WHEN 'fetch' THEN coalesce((
            SELECT coalesce(platform, '') || '|' || coalesce(state, '') || '|' || coalesce(county, '')
            FROM tasks WHERE task_id = NEW.task_id), '') ELSE '' END,
        NEW.created_at / 60000, 1
    ) ON CONFLICT DO UPDATE SET n = n + 1;
END
;;
CREATE TRIGGER outbox_stops_ageing AFTER UPDATE OF state, host ON outbox
WHEN OLD.state = 'waiting' AND (NEW.state <> 'waiting' OR NEW.host <> OLD.host) BEGIN
    UPDATE waiting_since SET n = n - 1
    WHERE topic = OLD.topic AND host = OLD.host AND minute = OLD.created_at / 60000
    AND place = CASE OLD.topic WHEN 'fetch' THEN coalesce((
        SELECT coalesce(platform, '') || '|' || coalesce(state, '') || '|' || coalesce(county, '')
        FROM tasks WHERE task_id = OLD.task_id), '') ELSE '' END;
END
;;
CREATE TRIGGER outbox_ages_again AFTER UPDATE OF state, host ON outbox
WHEN NEW.state = 'waiting' AND (OLD.state <> 'waiting' OR NEW.host <> OLD.host) BEGIN
    INSERT INTO waiting_since VALUES (
        NEW.topic, NEW.host,
        CASE NEW.topic WHEN 'fetch' THEN coalesce((
            SELECT coalesce(platform, '') || '|' || coalesce(state, '') || '|' || coalesce(county, '')
            FROM tasks WHERE task_id = NEW.task_id), '') ELSE '' END,
        NEW.created_at / 60000, 1
    ) ON CONFLICT DO UPDATE SET n = n + 1;
END
;;
CREATE TRIGGER outbox_gone_ageing AFTER DELETE ON outbox WHEN OLD.state = 'waiting' BEGIN
    UPDATE waiting_since SET n = n - 1
    WHERE topic = OLD.topic AND host = OLD.host AND minute = OLD.created_at / 60000
    AND place = CASE OLD.topic WHEN 'fetch' THEN coalesce((
        SELECT coalesce(platform, '') || '|' || coalesce(state, '') || '|' || coalesce(county, '')
        FROM tasks WHERE task_id = OLD.task_id), '') ELSE '' END;
END
;;
INSERT INTO waiting_since
SELECT o.topic, o.host,
    CASE o.topic WHEN 'fetch' THEN coalesce(t.platform, '') || '|' || coalesce(t.state, '') || '|'
        || coalesce(t.county, '') ELSE '' END,
    o.created_at / 60000, count(*)
FROM outbox o JOIN tasks t ON t.task_id = o.task_id WHERE o.state = 'waiting' GROUP BY 1, 2, 3, 4
