"""Tasks and pages whose rows are lost: both are rebuilt from what other rows still know."""

from __future__ import annotations

from mimetypes import MimeTypes

from lienworker.data_folder import DataFolder
from lienworker.db.clock import rfc3339
from lienworker.db.database import all_rows, execute, one_row
from lienworker.outbox import transitions
from lienworker.store.pages import PageRecord, save_page
from lienworker.store.raw_files import is_raw_path
from lienworker.store.tasks import ADDRESS_LOST, SOURCES

_WORDS = "The address was lost with a damaged database: import the list again."

#: Tasks that other rows refer to. Every such row had its task: the damage destroyed it.
#: An id that we did not make came from the Gateway, and only its tasks have reports. No more is assumed.
#: The last step says how far a task was: in progress, or ended with a reason. What the Gateway has was completed.
_REBUILD_TASKS = """
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
FROM judged RETURNING url
"""
#: Ids that we make; any other is the Gateway's.
_OURS = "length(task_id) = 34 AND task_id GLOB 'p-[0-9a-f]*'"
_RESULTS_WITHOUT_PAGE = """
SELECT r.task_id, r.generation, r.html_path, r.raw_sha256, t.url, r.fetched_at
FROM results r JOIN tasks t ON t.task_id = r.task_id
WHERE r.html_path IS NOT NULL AND r.source_task IS NULL AND NOT EXISTS
    (SELECT 1 FROM pages p WHERE p.task_id = r.task_id AND p.generation = r.generation)
"""


def rebuild_tasks() -> tuple[int, int]:
    """Rebuild lost tasks from pages, results and steps; return how many, and how many of them have no address.

    A result that cannot be read is deleted: its task is queued again. So is a step of an unknown topic or state.
    Part of a larger transaction.
    """
    transitions.remove_unknown()
    execute(
        f"UPDATE tasks SET source = CASE WHEN {_OURS} THEN 'local_file' ELSE 'gateway' END"
        f" WHERE source NOT IN {SOURCES}"
    )
    execute("UPDATE tasks SET target_json = '{}' WHERE NOT json_valid(target_json)")
    execute("DELETE FROM results WHERE NOT json_valid(data)")
    urls = [url for (url,) in all_rows(_REBUILD_TASKS, (ADDRESS_LOST, _WORDS, rfc3339()))]
    # Nobody can do these steps: the page that they were for is not known any more.
    transitions.discard_steps_without_address(ADDRESS_LOST)
    return len(urls), urls.count("")


def rebuild_pages(folder: DataFolder) -> int:
    """Rebuild the rows of pages behind results where their files exist; return how many.

    What the site said about a page is lost with its row; what the result knows is enough to read and to deliver it.
    Part of a larger transaction.
    """
    pages = [
        PageRecord(
            task_id=task_id,
            generation=generation,
            path=path,
            sha256=sha256,
            size=0,
            url=url,
            status=200,
            content_type=MimeTypes().guess_type(path)[0] or "text/html",
            charset=None,
            etag=None,
            last_modified=None,
            fetched_at=fetched_at,
            fetch_ms=0,
        )
        for task_id, generation, path, sha256, url, fetched_at in all_rows(_RESULTS_WITHOUT_PAGE)
        if is_raw_path(path) and (folder.root / path).is_file()
    ]
    save_page(*pages)
    return len(pages)


def unknown_words() -> int:
    """Return how many tasks and steps have a source, topic or state that does not exist."""
    (tasks,) = one_row(f"SELECT count(*) FROM tasks WHERE source NOT IN {SOURCES}")
    return int(tasks) + transitions.count_unknown()
