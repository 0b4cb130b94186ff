"""What the tests of the store share."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from lienworker.db.database import execute, write
from lienworker.store.results import NewResult, save_result
from lienworker.store.tasks import NewTask, insert_tasks

_RUNNER = """
import json, sys, time
from pathlib import Path
root = Path(sys.argv[1])
{imports}

def at(moment, action):
    time.sleep(max(0, start + moment - time.time()))
    return action()

print("ready", flush=True)
start = float(sys.stdin.readline())
try:
    answer = {expression}
except Exception as problem:
    answer = f"{{type(problem).__name__}}: {{problem}}"
print(json.dumps(answer), flush=True)
"""


def race(n: int, root: Path, imports: str, expression: str) -> list[Any]:
    """Evaluates an expression in n processes that all get the same signal; gives what each of them got.

    In the expression, `root` is the folder, and `at(seconds, action)` takes an action at the same moment everywhere.
    """
    code = _RUNNER.format(imports=imports, expression=expression)
    runners = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(n)
    ]
    for runner in runners:
        assert runner.stdout is not None
        assert runner.stdout.readline() == "ready\n"
    signal = f"{time.time() + 0.1}\n"
    for runner in runners:
        assert runner.stdin is not None
        runner.stdin.write(signal)
        runner.stdin.flush()
    return [json.loads(runner.communicate(timeout=60)[0]) for runner in runners]


def a_task(task_id: str, **fields: Any) -> NewTask:
    return NewTask(**{"source": "cli", "url": f"http://a.example/{task_id}", "task_id": task_id, **fields})


def add_tasks(*task_ids: str) -> None:
    with write("test"):
        insert_tasks({task_id: a_task(task_id) for task_id in task_ids})


def add_outbox_row(task_id: str, topic: str = "fetch", generation: int = 1, **fields: Any) -> int:
    """A row as plain SQL adds it, behind the back of the code that counts."""
    values = {
        "queue": "default",
        "priority": 3,
        "state": "waiting",
        "due_at": 0,
        "created_at": 0,
        "host": "a",
        **fields,
    }
    values |= {"task_id": task_id, "topic": topic, "generation": generation}
    marks = ", ".join("?" * len(values))
    sql = f"INSERT INTO outbox ({', '.join(values)}) VALUES ({marks})"
    row_id = execute(sql, tuple(values.values())).lastrowid
    assert row_id is not None
    return row_id


def a_result(task_id: str, generation: int = 1, **fields: Any) -> NewResult:
    chosen = {
        "parcel_id": "P-1",
        "platform": "generic",
        "state": "FL",
        "county": "Lee",
        "data": {"owner_name": "Ann"},
        "json_path": f"pending/{task_id}.json",
        "html_path": "raw/page.html.gz",
        "raw_sha256": "00",
        "fetched_at": "2026-11-16T00:00:00.000Z",
        "parser_version": "1",
        "scraped_at": "2026-11-16T00:00:01.000Z",
        "parse_duration_ms": 3,
        **fields,
    }
    return NewResult(task_id=task_id, generation=generation, **chosen)


def store_result(task_id: str, generation: int = 1, **fields: Any) -> NewResult:
    made = a_result(task_id, generation, **fields)
    with write("test"):
        save_result(made)
    return made
