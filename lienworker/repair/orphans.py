"""Rows whose task or page row is lost: both are made again from what the other rows still know."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lienworker.store.clock import now_ms, rfc3339
from lienworker.store.database import all_rows, execute, execute_many, one_row
from lienworker.store.stored_paths import is_raw_path
from lienworker.store.tasks import ADDRESS_LOST

_WORDS = "The address was lost with a damaged database: import the list again."

#: Tasks that other rows speak of. Every such row had its task: the damage has taken it.
#: An id that is not of our own making was given by the Gateway, and only its tasks have reports. No more is claimed.
#: The last step says how far a task was: on its way, or ended with a reason. What the Gateway has was completed.
_MAKE_TASKS = """
INSERT INTO tasks (task_id, source, platform, state, county, parcel_id, url, queue, priority, status, generation,
                   reason, last_error, created_at, received_at, updated_at, completed_at)
WITH lost AS (
    SELECT task_id FROM pages UNION SELECT task_id FROM results UNION SELECT task_id FROM outbox
    EXCEPT SELECT task_id FROM tasks
),
known AS (
    SELECT l.task_id, r.platform, r.state, r.county, r.parcel_id, r.scraped_at, step.queue, step.priority,
        coalesce((SELECT url FROM pages WHERE task_id = l.task_id ORDER BY generation DESC LIMIT 1), '') AS url,
        (SELECT max(generation) FROM (
            SELECT generation FROM pages WHERE task_id = l.task_id
            UNION ALL SELECT generation FROM outbox WHERE task_id = l.task_id
            UNION ALL SELECT r.generation)) AS generation,
        length(l.task_id) <> 34 OR l.task_id NOT GLOB 'p-[0-9a-f]*'
            OR EXISTS (SELECT 1 FROM outbox WHERE task_id = l.task_id AND topic = 'report_failure') AS is_gateways,
        r.task_id IS NOT NULL OR EXISTS (
            SELECT 1 FROM outbox WHERE task_id = l.task_id AND topic = 'upload_result' AND state = 'delivered'
        ) AS is_completed,
        coalesce(step.state IN ('waiting', 'leased', 'held'), 0) AS is_on_its_way,
        CASE WHEN step.state = 'delivered' AND step.reason NOT IN ('unchanged', 'not_modified')
            THEN step.reason END AS reason
    FROM lost l LEFT JOIN results r ON r.task_id = l.task_id
    LEFT JOIN outbox step ON step.id = (
        SELECT max(id) FROM outbox WHERE task_id = l.task_id AND topic IN ('fetch', 'scrape'))
),
judged AS (
    SELECT *, CASE WHEN is_on_its_way AND url <> '' THEN 'pending' WHEN is_completed THEN 'completed'
        WHEN reason IS NOT NULL OR url = '' THEN 'failed' ELSE 'pending' END AS status FROM known
)
SELECT task_id, CASE WHEN is_gateways THEN 'gateway' ELSE 'local_file' END, platform, state, county, parcel_id, url,
    coalesce(queue, 'default'), coalesce(priority, 3), status, generation,
    CASE status WHEN 'failed' THEN coalesce(reason, ?1) END,
    CASE WHEN status = 'failed' AND reason IS NULL THEN ?2 END,
    ?3, ?3, ?3, CASE status WHEN 'completed' THEN coalesce(scraped_at, ?3) WHEN 'failed' THEN ?3 END
FROM judged
"""
#: What the site said about a page is lost with its row; what the result knows is enough to read and to deliver it.
_MAKE_PAGE = """
INSERT INTO pages (task_id, generation, path, sha256, size, url, status, content_type, fetched_at, fetch_ms)
VALUES (?, ?, ?, ?, 0, ?, 200, ?, ?, 0)
"""
_TYPES = {".json.gz": "application/json", ".csv.gz": "text/csv"}


@dataclass(slots=True)
class MadeAgain:
    """How many tasks and pages were made again, and how many of the tasks have no address any more."""

    tasks: int = 0
    without_address: int = 0
    pages: int = 0


def mend_rows() -> MadeAgain:
    """A task whose row is lost is made again from its pages, result and steps. Part of a larger transaction.

    A result that cannot be read goes: its task is sent round again.
    """
    execute("UPDATE tasks SET target_json = '{}' WHERE NOT json_valid(target_json)")
    execute("DELETE FROM results WHERE NOT json_valid(data)")
    before = _without_address()
    made = execute(_MAKE_TASKS, (ADDRESS_LOST, _WORDS, rfc3339())).rowcount
    _give_up_steps()
    return MadeAgain(made, _without_address() - before)


def _give_up_steps() -> None:
    """Those that nobody can take: the page that they were for is not known any more."""
    execute(
        "UPDATE outbox SET state = 'discarded', reason = ?, finished_at = ? WHERE topic IN ('fetch', 'scrape')"
        " AND state IN ('waiting', 'leased', 'held') AND task_id IN (SELECT task_id FROM tasks WHERE url = '')",
        (ADDRESS_LOST, now_ms()),
    )


def _without_address() -> int:
    return int(one_row("SELECT count(*) FROM tasks WHERE url = ''")[0])


def make_pages_again(root: Path) -> int:
    """Pages behind results whose rows are lost and whose files are there. Part of a larger transaction."""
    lost = all_rows(
        "SELECT r.task_id, r.generation, r.html_path, r.raw_sha256, t.url, r.fetched_at"
        " FROM results r JOIN tasks t ON t.task_id = r.task_id WHERE NOT EXISTS"
        " (SELECT 1 FROM pages p WHERE p.task_id = r.task_id AND p.generation = r.generation)"
    )
    there = [row for row in lost if is_raw_path(row[2]) and (root / row[2]).is_file()]
    execute_many(_MAKE_PAGE, ((*row[:5], _type_of(row[2]), row[5]) for row in there))
    return len(there)


def _type_of(path: str) -> str:
    return next((kind for ending, kind in _TYPES.items() if path.endswith(ending)), "text/html")
