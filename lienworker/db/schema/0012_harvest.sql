-- Sources that are read page by page, each page with many parcels. The cursor is the fetch row of the newest page.
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
)
;;
-- Which page of a source a result was read from, and at which place in it.
ALTER TABLE results ADD COLUMN source_task TEXT
;;
ALTER TABLE results ADD COLUMN source_index INTEGER
;;
CREATE INDEX results_of_source ON results (source_task, source_index) WHERE source_task IS NOT NULL
;;
-- The raw file that must be acknowledged before this result may go, where that is the file of a source page.
ALTER TABLE outbox ADD COLUMN raw_id INTEGER
;;
CREATE INDEX outbox_after_raw ON outbox (raw_id) WHERE raw_id IS NOT NULL
