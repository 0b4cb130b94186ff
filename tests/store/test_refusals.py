"""What a site says when it refuses us is kept: a little of it, and not for ever."""

from __future__ import annotations

from lienworker.data_folder import DataFolder
from lienworker.db.database import execute, one_row, write
from lienworker.store.refusals import record_refusal, refusals, refusing_hosts


def refuse(host: str = "a.example", text: str = "Blocked", reason: str = "http_403") -> None:
    with write("test"):
        record_refusal(host, reason, f"http://{host}/1", 403, text.encode())


def age_all() -> None:
    with write("test"):
        execute("UPDATE facts SET value = replace(value, '\"at\": \"2', '\"at\": \"1') WHERE name LIKE 'refused %'")


def test_the_last_three_pages_of_a_host_and_reason_are_kept_one_a_minute(folder: DataFolder) -> None:
    for n in range(5):
        refuse(text=f"Blocked {n}")
        refuse(text="within the same minute")
        age_all()
    assert [page["text"] for page in refusals("a.example", "http_403")] == ["Blocked 4", "Blocked 3", "Blocked 2"]
    assert refusals("a.example", "http_500") == []


def test_a_page_is_cut_and_may_be_any_bytes(folder: DataFolder) -> None:
    with write("test"):
        record_refusal("a.example proxy", "http_500", "http://a.example/1", 500, b"\xff\x00" * 100_000)
    (page,) = refusals("a.example proxy", "http_500")
    assert len(page["text"]) == 8_000
    assert refusing_hosts("2", 5)[0]["host"] == "a.example proxy"


def test_a_thousand_hosts_leave_a_hundred(folder: DataFolder) -> None:
    for n in range(130):
        refuse(f"h{n}.example")
    assert one_row("SELECT count(*) FROM facts WHERE name LIKE 'refused %'")[0] == 100
    assert len(refusing_hosts("2", 5)) == 5
