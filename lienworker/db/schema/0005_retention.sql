-- When a page's raw file was purged. The row stays as long as its task: it knows what a refresh is compared with.
ALTER TABLE pages ADD COLUMN purged_at TEXT
;;
-- Raw files that are to be removed: noted in the transaction that lets go of them, so that a kill leaves no orphan.
-- `name` is the parcel's id (or the task's, where that is not known) that the file's name was made from.
CREATE TABLE doomed_files (
    path TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL
) WITHOUT ROWID
