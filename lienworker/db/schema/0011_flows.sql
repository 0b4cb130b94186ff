-- A parcel of several pages: the order of its parts (0 is the parcel's own page), and the name under which the Gateway
-- has a part that was sent while others of its parcel were not.
ALTER TABLE pages ADD COLUMN position INTEGER NOT NULL DEFAULT 0
;;
ALTER TABLE pages ADD COLUMN sent_name TEXT
;;
-- Sessions at sites, used by one flow at a time: the fetch row that has it, for as long as that row is leased.
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
) WITHOUT ROWID
;;
-- POSTs that must not be sent twice, noted before they are sent.
CREATE TABLE unsafe_posts (
    task_id TEXT NOT NULL PRIMARY KEY,
    generation INTEGER NOT NULL,
    step TEXT NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID
;;
-- Flows that a host may have open at a time; NULL for a host whose pages are reached by one GET.
ALTER TABLE hosts ADD COLUMN flow_width INTEGER
;;
-- Requests that a parcel costs there, a moving average; NULL for one.
ALTER TABLE hosts ADD COLUMN requests REAL
