"""Made-up situations of a data folder, each with the verdict that an operator would give."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from operator import methodcaller as do

from lienworker.data_folder import DataFolder, try_lock
from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import close, execute, open_store, write
from lienworker.operator import hosts
from lienworker.outbox.outcomes import configure
from lienworker.outbox.pauses import set_pause
from lienworker.outbox.registration import register_in_transaction
from lienworker.steps.drift import mask_of, take_in
from lienworker.store import tasks
from lienworker.store.history import History, Place, save_history
from lienworker.store.tasks import NewTask, local_task_id
from tests.harness.node import Node

WHOLE = {"owner_name": 1, "property_address": 1, "total_due": 1}
BARE = {"property_address": 1}
_NEVER = 1 << 52


class Scene:
    """A folder in which a situation is made; locks that it takes are held until `ending` ends."""

    def __init__(self, node: Node, mode: str, ending: ExitStack) -> None:
        configure(mode)
        self.folder: DataFolder = open_store(node.data)
        self.ending = ending

    def stack(self, silent: tuple[int, ...] = (0,)) -> None:
        """A stack with a worker for each number of seconds since its last sign of life."""
        lock = try_lock(self.folder.lock)
        assert lock is not None
        self.ending.enter_context(lock)
        for n, seconds in enumerate(silent):
            held = try_lock(self.folder.holders / f"made-up-{n}")
            assert held is not None
            self.ending.enter_context(held)
            values = (f"made-up-{n}", 1000 + n, rfc3339(), rfc3339(now_ms() - 1000 * seconds))
            with write("scene"):
                execute("INSERT INTO workers VALUES (?, 'worker', ?, 4, 0, ?, ?)", values)

    def ended(self, county: str, good: int, bad: int = 0, reason: str = "captcha", minutes_ago: int = 5) -> None:
        urls = [f"http://{county.lower()}.example/{reason}/{minutes_ago}/{n}" for n in range(good + bad)]
        then = rfc3339(now_ms() - minutes_ago * 60_000)
        with write("scene"):
            register_in_transaction([NewTask("cli", url, platform="demo", state="FL", county=county) for url in urls])
            for n, url in enumerate(urls):
                task_id = local_task_id(url)
                execute("UPDATE outbox SET state = 'delivered', finished_at = ? WHERE task_id = ?", (0, task_id))
                if n < good:
                    tasks.mark_completed(task_id)
                else:
                    tasks.mark_failed(task_id, reason, "The page is another one.")
                execute("UPDATE tasks SET completed_at = ? WHERE task_id = ?", (then, task_id))

    def waits(self, n: int, minutes: int = 0, host: str = "levy.example") -> None:
        """Pages that could have been fetched for some minutes."""
        with write("scene"):
            new = [NewTask("cli", f"http://{host}/{k}", platform="demo", state="FL", county="Levy") for k in range(n)]
            register_in_transaction(new)
            execute("UPDATE outbox SET due_at = due_at - ? WHERE topic = 'fetch'", (minutes * 60_000,))
            execute("UPDATE backlog SET not_before = not_before - ?", (minutes * 60_000,))
            execute("UPDATE waiting_since SET minute = minute - ?", (minutes,))

    def upload(self, state: str, due_minutes_ago: int | None = 0) -> None:
        due = now_ms() - due_minutes_ago * 60_000 if due_minutes_ago is not None else _NEVER
        with write("scene"):
            register_in_transaction([NewTask("cli", "http://u.example/1", task_id="u")])
            execute("UPDATE outbox SET state = 'delivered', finished_at = 0 WHERE task_id = 'u'")
            tasks.mark_completed("u")
            execute(
                "INSERT INTO outbox (topic, task_id, generation, queue, priority, state, due_at, reason, created_at)"
                " VALUES ('upload_result', 'u', 1, 'default', 3, ?, ?, 'gateway_refused', ?)",
                (state, due, now_ms() - 3_600_000),
            )

    def breaker(self, kind: str) -> None:
        with write("scene"):
            execute(
                "INSERT INTO breakers (endpoint, is_open, retry_at, kind, words, since)"
                " VALUES ('results', 1, ?, ?, ?, ?)",
                (now_ms() + 60_000, kind, f"it is {kind}", rfc3339()),
            )

    def pause(self, lane: str, cause: str) -> None:
        set_pause(lane, cause, True, f"made up: {cause}")

    def pause_host(self, host: str) -> None:
        hosts.pause_host(host)

    def fields(self, before: tuple[int, int], now: int, *, paused: bool = False) -> None:
        """How many pages of Dixie had the owner: of all before, and of the last twenty."""
        hits, pages = before
        history = History()
        whole, bare = mask_of(WHOLE), mask_of(BARE)
        take_in(history, [whole] * hits + [bare] * (pages - hits) + [whole] * now + [bare] * (20 - now))
        if paused:
            history.paused_at, history.words = rfc3339(), "demo, Dixie FL is paused: owner_name is gone; see raw/x"
        with write("scene"):
            save_history(Place("demo", "FL", "Dixie", "dixie.example"), history)

    def blocked(self, host: str) -> None:
        later = now_ms() + 3_600_000
        with write("scene"):
            sql = "INSERT INTO hosts (host, cooling_until, failures_in_a_row, reason) VALUES (?, ?, 9, 'http_403')"
            execute(f"{sql} ON CONFLICT DO UPDATE SET cooling_until = excluded.cooling_until,"
                    " failures_in_a_row = 9, reason = 'http_403'", (host, later))  # fmt: skip


@dataclass(frozen=True)
class Situation:
    """What is so, and what an operator would say."""

    name: str
    steps: tuple[Callable[[Scene], object], ...]
    level: str
    says: str
    mode: str = "standalone"
    never_says: str = "\0"


SITUATIONS = (
    Situation("an empty folder without a stack", (), "good", "nothing waits to be scraped"),
    Situation("an idle stack", (do("stack"),), "good", "all is well"),
    Situation("an idle stack on demand", (do("stack"),), "good", "all is well", "ondemand"),
    Situation("a stack at work", (do("stack"), do("waits", 3)), "busy", "3 tasks are in progress"),
    Situation("work without a stack", (do("waits", 3),), "bad", "no stack runs on this folder"),
    Situation("on demand without a stack", (), "bad", "no stack runs on this folder", "ondemand"),
    Situation("no worker lives", (do("stack", ()),), "bad", "no worker lives", never_says="all is well"),
    Situation(
        "all workers are silent",
        (do("stack", (90, 90)),),
        "bad",
        "2 of 2 workers give no sign of life",
        never_says="all is well",
    ),
    Situation("one of two workers is silent", (do("stack", (0, 90)),), "bad", "1 of 2 workers give no"),
    Situation(
        "due work that does not move",
        (do("stack"), do("waits", 3, minutes=9)),
        "bad",
        "nothing has moved for 2 minutes",
    ),
    Situation(
        "due work that a person has paused",
        (do("stack"), do("waits", 3, minutes=9), do("pause", "fetch", "operator")),
        "warn",
        "fetch is paused",
        never_says="nothing has moved",
    ),
    Situation(
        "due work of a host that a person has paused",
        (do("stack"), do("waits", 3, minutes=9), do("pause_host", "levy.example")),
        "warn",
        "an operator has paused levy.example",
        never_says="nothing has moved",
    ),
    Situation(
        "due uploads that do not move",
        (do("stack"), do("upload", "waiting", 30)),
        "bad",
        "no upload has moved for 10 minutes",
        "ondemand",
    ),
    Situation(
        "an upload that waits for its file",
        (do("stack"), do("upload", "waiting", None)),
        "good",
        "all is well",
        "ondemand",
    ),
    Situation(
        "a county of which nothing is read",
        (do("stack"), do("ended", "Dixie", 0, 151)),
        "bad",
        "demo, dixie fl: 0 of the last 100 pages were read (mostly captcha)",
    ),
    Situation(
        "a county that fails behind another's thousands",
        (do("stack"), do("ended", "Levy", 2_000), do("ended", "Dixie", 0, 151, minutes_ago=600)),
        "bad",
        "demo, dixie fl: 0 of the last 151 pages were read",
    ),
    Situation(
        "a county that fails now and then",
        (do("stack"), do("ended", "Dixie", 70, 30)),
        "warn",
        "demo, dixie fl: 70 of the last 100 pages were read",
    ),
    Situation("a county with a few failures", (do("stack"), do("ended", "Dixie", 96, 4)), "good", "all"),
    Situation("three pages, all failed", (do("stack"), do("ended", "Dixie", 0, 3)), "good", "all"),
    Situation(
        "a county that recovered",
        (do("stack"), do("ended", "Dixie", 0, 151, minutes_ago=90), do("ended", "Dixie", 120)),
        "good",
        "all is well",
    ),
    Situation(
        "tasks that a person cancelled",
        (do("stack"), do("ended", "Dixie", 9, 99, "cancelled")),
        "good",
        "all is well",
    ),
    Situation(
        "a site that refuses us",
        (do("stack"), do("waits", 7, host="levy.example"), do("blocked", "levy.example")),
        "warn",
        "levy.example does not serve us (http_403); 7 pages wait for it",
    ),
    Situation("a refused token", (do("stack"), do("breaker", "auth")), "bad", "refuses our token", "ondemand"),
    Situation(
        "a Gateway that is down",
        (do("stack"), do("breaker", "down")),
        "warn",
        "cannot be reached since",
        "ondemand",
    ),
    Situation("a refused upload", (do("stack"), do("upload", "parked")), "warn", "1 upload is parked", "ondemand"),
    Situation("a full disk", (do("stack"), do("pause", "fetch", "disk")), "bad", "fetch is paused (made up"),
    Situation(
        "a field on 14 of 20 pages, and 85 % before",
        (do("stack"), do("ended", "Dixie", 9), do("fields", (850, 1000), 14)),
        "good",
        "all is well",
    ),
    Situation(
        "a field on 11 of 20 pages, and all before",
        (do("stack"), do("ended", "Dixie", 9), do("fields", (1000, 1000), 11)),
        "warn",
        "demo, dixie fl: owner_name is on 55% of the newest pages, 100% before",
    ),
    Situation(
        "a county that the drift guard holds",
        (do("stack"), do("ended", "Dixie", 9), do("fields", (1000, 1000), 0, paused=True)),
        "warn",
        "dixie fl is paused: owner_name is gone",
    ),
)


def make(situation: Situation, node: Node, ending: ExitStack) -> None:
    """Make the situation in the node's folder, and leave the database closed."""
    scene = Scene(node, situation.mode, ending)
    for step in situation.steps:
        step(scene)
    close()
