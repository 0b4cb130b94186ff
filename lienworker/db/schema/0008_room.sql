-- Room for what comes: words that the program's enums know are no longer checked here, a row of the outbox need not
-- belong to a task, a result need not come from a page, and a task may have several pages of one generation.
--
-- SQLite can take a CHECK or a NOT NULL away only by an edit of its own schema table (its documentation names this way
-- for just these changes: https://sqlite.org/lang_altertable.html#otheralter). Nothing of the tables is rewritten, so it
-- takes as long with a million rows as with none; a copy of `outbox` would need minutes and twice the disk. Each edit
-- must find its text: a migration whose edit finds none comes to nothing as a whole.
--
-- The key of `pages` becomes longer: every old row has the part 'page', so no row moves, and the one thing to be written
-- is the index of the key. It is made anew in this very transaction, before anything else can see the new key. Row ids
-- stay as they are.
ALTER TABLE pages ADD COLUMN part TEXT NOT NULL DEFAULT 'page'
;;
PRAGMA writable_schema = ON
;;
UPDATE sqlite_schema SET sql = replace(sql, old, new)
FROM (SELECT ' CHECK (source IN (''gateway'', ''local_file'', ''cli''))' AS old, '' AS new)
WHERE type = 'table' AND name = 'tasks' AND instr(sql, old)
;;
UPDATE sqlite_schema SET sql = replace(sql, old, new)
FROM (SELECT ' CHECK (topic IN (''fetch'', ''scrape'', ''upload_raw'', ''upload_result'', ''report_failure''))' AS old,
    '' AS new)
WHERE type = 'table' AND name = 'outbox' AND instr(sql, old)
;;
UPDATE sqlite_schema SET sql = replace(sql, old, new)
FROM (SELECT 'state TEXT NOT NULL
        CHECK (state IN (''waiting'', ''leased'', ''held'', ''delivered'', ''superseded'', ''parked'', ''discarded''))'
    AS old, 'state TEXT NOT NULL' AS new)
WHERE type = 'table' AND name = 'outbox' AND instr(sql, old)
;;
UPDATE sqlite_schema SET sql = replace(sql, old, new)
FROM (SELECT 'task_id TEXT NOT NULL REFERENCES tasks' AS old, 'task_id TEXT REFERENCES tasks' AS new)
WHERE type = 'table' AND name = 'outbox' AND instr(sql, old)
;;
UPDATE sqlite_schema SET sql = replace(sql, old, new)
FROM (SELECT 'html_path TEXT NOT NULL' AS old, 'html_path TEXT' AS new)
WHERE type = 'table' AND name = 'results' AND instr(sql, old)
;;
UPDATE sqlite_schema SET sql = replace(sql, old, new)
FROM (SELECT 'PRIMARY KEY (task_id, generation)' AS old, 'PRIMARY KEY (task_id, generation, part)' AS new)
WHERE type = 'table' AND name = 'pages' AND instr(sql, old)
;;
-- Off again, and the schema read anew, so that what follows knows the new key.
PRAGMA writable_schema = RESET
;;
REINDEX pages
