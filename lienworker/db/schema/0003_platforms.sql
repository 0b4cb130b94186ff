-- One pass of the parsers over stored pages, and what each page gave in it, so that two passes can be compared.
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
)
;;
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
) WITHOUT ROWID
;;
-- How often each field was there, for each platform and county: the last pages one by one, those before them summed up.
-- A county that is not known goes by its host.
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
    sample_path TEXT,
    PRIMARY KEY (platform, state, county)
) WITHOUT ROWID
;;
CREATE INDEX field_history_paused ON field_history (paused_at) WHERE paused_at IS NOT NULL
