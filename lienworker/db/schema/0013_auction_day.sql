-- What an operator says of a site. It counts before the platform's word; before robots.txt only with `over_robots`.
ALTER TABLE hosts ADD COLUMN operator_delay REAL
;;
ALTER TABLE hosts ADD COLUMN operator_concurrency INTEGER
;;
ALTER TABLE hosts ADD COLUMN over_robots INTEGER NOT NULL DEFAULT 0
;;
-- Since when an operator has paused the site, ms.
ALTER TABLE hosts ADD COLUMN paused_at INTEGER
;;
-- Counties that an operator has paused: their fetches are held, reason `paused`.
CREATE TABLE paused_counties (
    state TEXT NOT NULL COLLATE NOCASE,
    county TEXT NOT NULL COLLATE NOCASE,
    since TEXT NOT NULL,
    PRIMARY KEY (state, county)
) WITHOUT ROWID
;;
-- How many fetches have ended at a host, well or not: with the tries (`served` and `failed`) they say how often a page is
-- tried. What ended unserved before this is not known, and counts as ended by its last try.
ALTER TABLE hosts ADD COLUMN ended INTEGER NOT NULL DEFAULT 0
;;
UPDATE hosts SET ended = served + failed
;;
DROP TRIGGER hosts_served
;;
CREATE TRIGGER hosts_served AFTER UPDATE OF state ON outbox
WHEN NEW.topic = 'fetch' AND NEW.state = 'delivered' AND OLD.state = 'leased' AND NEW.reason IS NOT 'expired' BEGIN
    UPDATE hosts SET ended = ended + 1,
        served = served + (NEW.reason IS NULL OR NEW.reason IN ('unchanged', 'not_modified'))
    WHERE host = NEW.host;
END
;;
-- The pace that each site really keeps, as it was seen while there was work for it.
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
) WITHOUT ROWID
;;
-- Until when a task is to be done, ms. A row with a deadline is due at once, and sorted by it: its `due_at` is the deadline
-- twenty years earlier, so that claims need no other index (outbox.rows.deadline_order).
ALTER TABLE tasks ADD COLUMN due_by INTEGER
;;
ALTER TABLE outbox ADD COLUMN due_by INTEGER
;;
-- Rows with a deadline that failed once wait for their backoff like any other; when it is over, they are sorted in again.
CREATE INDEX outbox_deadline_retries ON outbox (due_at)
WHERE state = 'waiting' AND due_by IS NOT NULL AND attempts > 0
;;
-- The deadline of an import, and the auction that it is for.
ALTER TABLE imports ADD COLUMN due_by INTEGER
;;
ALTER TABLE imports ADD COLUMN auction TEXT
