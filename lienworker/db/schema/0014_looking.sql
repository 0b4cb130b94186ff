-- What an export needs to know before its first row: the columns of operators' own lists by the import that brought
-- them (0 for none), and those of records by the place that they are of. Whoever stores a task or a result notes its
-- names in the same transaction.
CREATE TABLE list_columns (
    id INTEGER PRIMARY KEY,
    import_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (import_id, name)
)
;;
CREATE TABLE result_columns (
    platform TEXT NOT NULL,
    -- empty where the result has none; it may have got one since
    state TEXT NOT NULL,
    county TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (platform, state, county, name)
) WITHOUT ROWID
;;
-- They are not known of what is there already: the first export looks through it.
INSERT INTO facts (name, value, at)
SELECT 'columns_unknown', 'since an upgrade', strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
WHERE EXISTS (SELECT 1 FROM tasks)
;;
-- Owners and addresses by their beginnings, for the search box. A list of parcels has neither.
CREATE INDEX results_by_owner
ON results (CASE WHEN json_valid(data) THEN json_extract(data, '$.owner_name') END COLLATE NOCASE) WHERE stays_here = 0
;;
CREATE INDEX results_by_property ON results (
    CASE WHEN json_valid(data) THEN json_extract(data, '$.property_address') END COLLATE NOCASE
) WHERE stays_here = 0
;;
-- Why tasks of an import failed, counted without a look at any of them.
CREATE INDEX tasks_failed_of_import ON tasks (import_id, reason, status) WHERE status IN ('failed', 'expired')
;;
-- How a file was imported: its mapping and the options that were not left as they are, as a JSON object.
ALTER TABLE imports ADD COLUMN options TEXT NOT NULL DEFAULT '{}'
