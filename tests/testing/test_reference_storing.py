"""The reference Gateway, by plain HTTP: raw files and results."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from lienworker.testing.gateway import reference_gateway
from tests.harness.gateway_calls import Caller, item, items


def test_an_upload_is_ok_and_says_where_it_is(call: Caller) -> None:
    reply = call.upload("abc.html.gz", b"page")
    assert reply.json == {"status": "ok", "path": "raw/abc.html.gz"}
    file = call.gateway.state.raw_files["abc.html.gz"]
    assert (file.sha256, file.size, file.worker_id) == (hashlib.sha256(b"page").hexdigest(), 4, "worker-1")
    assert call.gateway.state.raw_content("abc.html.gz") == b"page"


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("folder/deep/x.html.gz", "x.html.gz"),
        ("../../x.html.gz", "x.html.gz"),
        ("x..y.gz", "xy.gz"),
        ("n" * 300 + ".html.gz", "n" * 200),
    ],
)
def test_only_the_base_name_counts_and_long_names_lose_their_end(call: Caller, sent: str, kept: str) -> None:
    assert call.upload(sent, b"page").json["path"] == f"raw/{kept}"
    assert set(call.gateway.state.raw_files) == {kept}


def test_the_same_name_silently_overwrites_across_workers_too(call: Caller) -> None:
    call.upload("x.gz", b"first")
    assert Caller(call.gateway, "worker-2").upload("x.gz", b"second").json["status"] == "ok"
    assert call.gateway.state.raw_content("x.gz") == b"second"
    assert [upload.worker_id for upload in call.gateway.state.raw_uploads] == ["worker-1", "worker-2"]


@pytest.mark.parametrize("metadata", [None, "", "  ", "not json"])
def test_a_strict_one_wants_metadata_that_is_json(call: Caller, metadata: str | None) -> None:
    call.gateway.configure(strict=True)
    assert call.upload("x.gz", b"page", metadata).status == 400
    assert not call.gateway.state.raw_files


def test_an_upload_without_a_file_or_without_multipart_is_a_400(call: Caller) -> None:
    assert call.upload(None, b"").status == 400
    assert call.post("/internal/raw-files", {"file": "x"}).status == 400


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", 'multipart/form-data; a=b; boundary="x"'])
def test_a_form_that_is_cut_off_is_a_400_and_a_whole_one_is_stored(call: Caller, kind: str) -> None:
    whole = (
        b'--x\r\ncontent-disposition: form-data; filename="a \\"b\\".gz"; name=file\r\n\r\n1\r\n2\r\n'
        b'--x\r\nContent-Type: application/json\r\nContent-Disposition: form-data; name="metadata"\r\n\r\n{}\r\n'
        b"--x--\r\n"
    )
    for end in (len(whole) - 6, len(whole) // 2, 3, 0):
        cut = call.post("/internal/raw-files", text=whole[:end], **{"Content-Type": kind})
        assert (cut.status, call.gateway.state.raw_files) == (400, {})
    assert call.post("/internal/raw-files", text=whole, **{"Content-Type": kind}).status == 200
    assert call.gateway.state.raw_content('a "b".gz') == b"1\r\n2"


def test_with_its_database_down_a_raw_file_gets_a_200_that_is_an_error(call: Caller) -> None:
    call.gateway.fault("database_down")
    reply = call.upload("x.gz", b"page")
    assert reply.status == 200
    assert reply.json["status"] == "error"
    assert reply.json["message"]
    assert not call.gateway.state.raw_files


def test_raw_files_can_live_in_a_folder(tmp_path: Path) -> None:
    with reference_gateway(raw_folder=tmp_path / "raw") as gateway:
        Caller(gateway).upload("../x.gz", b"page")
        assert [path.name for path in (tmp_path / "raw").iterdir()] == ["x.gz"]
        assert gateway.state.raw_content("x.gz") == b"page"


def _submit(call: Caller, *sent: Any) -> Any:
    reply = call.post("/internal/results", list(sent))
    assert reply.status == 200, reply.body
    return reply.json


def test_results_are_counted_as_inserted_then_updated_with_null_errors(call: Caller) -> None:
    assert _submit(call, *items(3)) == {"inserted": 3, "updated": 0, "failed": 0, "errors": None}
    assert _submit(call, *items(4)) == {"inserted": 1, "updated": 3, "failed": 0, "errors": None}


def test_storing_is_by_all_four_keys(call: Caller) -> None:
    variants = [item(), item(parcel_id="P-2"), item(platform="x"), item(state="GA"), item(county="Other")]
    assert _submit(call, *variants)["inserted"] == 5
    assert set(call.gateway.state.results) >= {("P-1", "demo", "FL", "Juniper"), ("P-1", "demo", "FL", "Other")}


def test_an_older_resend_overwrites_a_newer_result(call: Caller) -> None:
    _submit(call, item(data={"v": "new"}, scraped_at="2026-02-01T00:00:00Z"))
    _submit(call, item(data={"v": "old"}, scraped_at="2026-01-01T00:00:00Z"))
    (row,) = call.gateway.state.results.values()
    assert row.data == {"v": "old"}
    assert len(call.gateway.state.history[row.key]) == 2


def test_partial_failure_is_a_200_that_names_parcels_and_no_task(call: Caller) -> None:
    call.gateway.fault("parcels", names=["P-1"], words="ERROR: boom (SQLSTATE XX000)")
    reply = _submit(call, *items(3))
    assert reply == {"inserted": 2, "updated": 0, "failed": 1, "errors": ["P-1: ERROR: boom (SQLSTATE XX000)"]}


def test_after_the_11th_failure_the_rest_is_skipped_in_silence(call: Caller) -> None:
    call.gateway.fault("parcels", names=[f"P-{n}" for n in range(0, 40, 2)])
    reply = _submit(call, *items(40))
    assert (reply["inserted"], reply["failed"], len(reply["errors"])) == (10, 11, 11)
    assert len(call.gateway.state.results) == 10


def test_ten_failures_stop_nothing(call: Caller) -> None:
    call.gateway.fault("parcels", names=[f"P-{n}" for n in range(10)])
    assert _submit(call, *items(40))["inserted"] == 30


def test_its_database_down_is_a_200_with_everything_failed(call: Caller) -> None:
    call.gateway.fault("database_down")
    reply = _submit(call, *items(5))
    assert (reply["inserted"], reply["updated"], reply["failed"]) == (0, 0, 5)
    assert reply["errors"][0].startswith("P-0: ")
    call.gateway.clear_faults()
    assert _submit(call, *items(5))["inserted"] == 5


WRONG = {
    "numeric parcel_id": {"parcel_id": 7},
    "data as a list": {"data": [1]},
    "data as text": {"data": "x"},
    "float duration": {"parse_duration_ms": 12.0},
    "text duration": {"parse_duration_ms": "12"},
    "numeric task_id": {"task_id": 1},
    "numeric hash": {"raw_html_hash": 5},
    "time without a zone": {"scraped_at": "2026-01-02T03:04:05"},
    "time with a space": {"scraped_at": "2026-01-02 03:04:05Z"},
    "time without seconds": {"scraped_at": "2026-01-02T03:04Z"},
    "impossible time": {"scraped_at": "2026-13-02T03:04:05Z"},
    "small z": {"scraped_at": "2026-01-02T03:04:05z"},
    "number as time": {"scraped_at": 1767322800},
}
WRONG_FOR_A_STRICT_ONE = {
    "time in another zone": {"scraped_at": "2026-01-02T03:04:05+02:00"},
    "a comma in the time": {"scraped_at": "2026-01-02T03:04:05,5Z"},
    "no time": {"scraped_at": None},
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG.keys())
def test_one_wrongly_typed_item_rejects_the_whole_batch_without_detail(call: Caller, change: dict[str, Any]) -> None:
    reply = call.post("/internal/results", [item("P-1"), item("P-2") | change, item("P-3")])
    assert reply.status == 400
    assert reply.text == "invalid JSON\n"
    assert not call.gateway.state.results


@pytest.mark.parametrize("change", WRONG_FOR_A_STRICT_ONE.values(), ids=WRONG_FOR_A_STRICT_ONE.keys())
def test_a_strict_one_wants_utc(call: Caller, change: dict[str, Any]) -> None:
    assert call.post("/internal/results", [item() | change]).status == 200
    call.gateway.configure(strict=True)
    assert call.post("/internal/results", [item() | change]).status == 400


@pytest.mark.parametrize("text", [b"", b"{}", b"7", b"[1]", b'["x"]', b"[", b'[{"data":{"x":NaN}}]', b"[" * 50_000])
def test_what_is_not_a_bare_list_of_items_is_a_400(call: Caller, text: bytes) -> None:
    assert call.post("/internal/results", text=text).status == 400


def test_nan_rejects_the_whole_batch(call: Caller) -> None:
    assert call.post("/internal/results", text=json.dumps([item(data={"x": float("nan")})]).encode()).status == 400


@pytest.mark.parametrize(
    "time", ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05.123456789Z"]
)
def test_strict_times_are_taken(call: Caller, time: str) -> None:
    assert _submit(call, item(scraped_at=time))["inserted"] == 1


@pytest.mark.parametrize(("name", "limit"), [("state", 8), ("platform", 64), ("parcel_id", 255), ("county", 255)])
def test_each_key_has_its_limit_in_characters(call: Caller, name: str, limit: int) -> None:
    assert _submit(call, item(**{name: "ü" * limit}))["inserted"] == 1
    reply = _submit(call, item(**{name: "ü" * (limit + 1)}), item("another"))
    assert (reply["inserted"], reply["failed"]) == (1, 1)
    assert f"value too long for type character varying({limit})" in reply["errors"][0]


@pytest.mark.parametrize("data", [{"a": "x\0y"}, {"a\0": 1}, {"a": [{"b": ["\0"]}]}])
def test_nul_characters_in_data_fail_by_themselves(call: Caller, data: dict[str, Any]) -> None:
    reply = _submit(call, item("P-1"), item("P-2", data=data), item("P-3"))
    assert (reply["inserted"], reply["failed"]) == (2, 1)
    assert reply["errors"][0].startswith("P-2: ")


def test_integers_over_2_to_the_53_lose_precision(call: Caller) -> None:
    _submit(call, item(data={"exact": 2**53, "lost": 2**53 + 1}))
    (row,) = call.gateway.state.results.values()
    assert row.data == {"exact": 2**53, "lost": 2**53}


def test_an_empty_list_is_fine(call: Caller) -> None:
    assert _submit(call) == {"inserted": 0, "updated": 0, "failed": 0, "errors": None}
