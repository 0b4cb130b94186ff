"""What the Gateway is told of a failure: its reason and a sentence of ours, and nothing of our network or our disk."""

from __future__ import annotations

import json

import pytest

from lienworker.db.database import all_rows, execute, write
from lienworker.outbox.claims import claim_task
from lienworker.outbox.outcomes import fail
from lienworker.outbox.registration import register_task
from lienworker.outbox.report_messages import report_words
from lienworker.store.tasks import NewTask
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.in_process import Desk

INTERNAL = (
    "http://10.1.2.3:8080/parcel: the proxy squid-7.corp.internal cannot be reached",
    "[Errno 13] Permission denied: '/srv/lienworker/raw/demo/p1.html.gz'",
    "http://user:secret@proxy:3128 fe80::1%eth0 redis-1",
)


def failed_with(here: Desk, task_id: str, reason: str, words: str) -> None:
    register_task(NewTask("gateway", "http://county.example/1", task_id=task_id))
    with here.runtime.holder.lease() as token:
        row = claim_task(task_id, "fetch", token, here.runtime.rules)
        assert row
        with write("test"):
            assert fail(row, reason, words)


def told(here: Desk, gateway: ReferenceGateway) -> list[str]:
    for n in range(len(INTERNAL)):
        gateway.enqueue({"task_id": f"t-{n}", "platform": "demo", "target": {}})
    gateway.state.take_tasks(100, len(INTERNAL) * ["demo"], here.runtime.folder.worker_id())
    here.upload()
    return [json.loads(record.error)["error"] for record in gateway.state.tasks.values() if record.error]


def test_a_report_names_nothing_of_our_network_or_our_disk(here: Desk, gateway: ReferenceGateway) -> None:
    for n, words in enumerate(INTERNAL):
        failed_with(here, f"t-{n}", "proxy_failed", words)
    assert set(told(here, gateway)) == {"proxy_failed: The proxy could not be used."}
    assert all(INTERNAL[n] in here.errors(f"t-{n}") for n in range(len(INTERNAL)))  # people here still read it


def test_a_report_that_an_early_version_stored_is_cleared_when_it_is_sent(
    here: Desk, gateway: ReferenceGateway
) -> None:
    for n, words in enumerate(INTERNAL):
        failed_with(here, f"t-{n}", "proxy_failed", words)
        early = json.dumps({"verb": "fail", "words": f"timeout: {words}"})
        with write("test"):
            execute("UPDATE outbox SET payload = ? WHERE topic = 'report_failure' AND task_id = ?", (early, f"t-{n}"))
    assert set(told(here, gateway)) == {"timeout: The site took too long to answer."}


def test_what_is_stored_is_what_is_sent(here: Desk) -> None:
    failed_with(here, "t-1", "http_404", INTERNAL[0])
    ((payload,),) = all_rows("SELECT payload FROM outbox WHERE topic = 'report_failure'")
    assert json.loads(payload)["words"] == "http_404: The site answered with HTTP 404."


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("http_503", "http_503: The site answered with HTTP 503."),
        ("a_plugin_of_ours", "a_plugin_of_ours: The task could not be done; the worker's own records say more."),
        ("Cannot open /srv/data", "failed: The task could not be done; the worker's own records say more."),
        ("", "failed: The task could not be done; the worker's own records say more."),
        ("10.0.0.1", "failed: The task could not be done; the worker's own records say more."),
    ],
)
def test_a_reason_that_nobody_foresaw_gives_nothing_away(reason: str, words: str) -> None:
    assert report_words(reason) == words
