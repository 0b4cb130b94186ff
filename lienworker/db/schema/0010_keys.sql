-- Whether a task's platform is not its own word, but what its address or its page showed: another may read it tomorrow.
ALTER TABLE tasks ADD COLUMN platform_learned INTEGER NOT NULL DEFAULT 0
;;
-- A task may learn its platform, state and county later: from its page, or from a person. What is counted by county
-- goes with it: its fetch that waits, and the day on which it ended (unless that has been folded into "ever").
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
END
;;
-- Results and tasks under the names by which some people know them (docs/other-names.md). Nothing here reads them.
CREATE VIEW local_results AS
SELECT r.rowid AS id, r.task_id, r.parcel_id, r.platform, r.state, r.county, t.url, r.data AS data_json, r.json_path,
    r.html_path, r.raw_sha256 AS raw_html_hash, r.parser_version, r.parse_duration_ms, r.scraped_at, r.scraped_at AS
    created_at, r.synced, r.sync_attempts, r.last_error
FROM results r LEFT JOIN tasks t ON t.task_id = r.task_id
;;
CREATE VIEW standalone_tasks AS
SELECT rowid AS id, task_id, source, platform, state, county, parcel_id, url, target_json, queue, priority, status,
    attempts, reason, last_error, import_id, created_at, updated_at, completed_at
FROM tasks
;;
-- Results in the order in which they were made: for lists and exports that begin with the newest, or at a time.
CREATE INDEX results_by_time ON results (scraped_at)
;;
-- A task of the Gateway by its address; the id of any other is made from it.
CREATE INDEX tasks_by_address ON tasks (url) WHERE source = 'gateway'
