"""Saved pages: what gets in, under which address, and what stays outside."""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from lienworker.errors import InputError
from lienworker.intake.rows import Reject
from lienworker.intake.saved import SavedPage, is_saved, read_saved

URL = "https://county.example/parcel/1"
PAGE = b"<html><body>Parcel 12-34</body></html>"
_MOST = 100_000


def pages(path: Path) -> list[SavedPage]:
    found = list(read_saved(path, _MOST))
    assert not [item for item in found if isinstance(item, Reject)]
    return [item for item in found if isinstance(item, SavedPage)]


def outline(path: Path) -> list[str]:
    """The address of each page, or the reason why it is none."""
    return [item.reason if isinstance(item, Reject) else item.url or "" for item in read_saved(path, _MOST)]


def entry(url: str = URL, text: str | None = PAGE.decode(), kind: str = "text/html", **more: Any) -> dict[str, Any]:
    content = {"mimeType": kind, **({"text": text} if text is not None else {}), **more.pop("content", {})}
    return {
        "startedDateTime": "2026-06-01T10:00:00.000-04:00",
        "request": {"url": url, "cookies": [{"name": "sid", "value": "SECRET"}]},
        "response": {"status": 200, "content": content, **more},
    }


def har(path: Path, *entries: Any) -> Path:
    path.write_text(json.dumps({"log": {"entries": entries}}))
    return path


def warc(path: Path, *replies: tuple[str, bytes, str], compress: bool = True) -> Path:
    with open(path, "wb") as out:
        writer = WARCWriter(out, gzip=compress)
        for url, body, kind in replies:
            headers = StatusAndHeaders("200 OK", [("Content-Type", kind)], "HTTP/1.1")
            writer.write_record(
                writer.create_warc_record(url, "response", payload=io.BytesIO(body), http_headers=headers)
            )
    return path


def test_a_recorded_session_gives_its_pages_and_nothing_else(tmp_path: Path) -> None:
    path = har(
        tmp_path / "a.har",
        entry(),
        entry("https://county.example/app.js", "x()", "application/javascript"),
        entry("https://county.example/parcel/2", base64.b64encode(PAGE).decode(), content={"encoding": "base64"}),
        entry("https://county.example/gone", status=404),
        entry("https://county.example/parcel/3", None),
    )

    assert outline(path) == [URL, "https://county.example/parcel/2", "no_body"]
    (first, *_) = read_saved(path, _MOST)
    assert isinstance(first, SavedPage)
    assert (first.body, first.content_type, first.charset) == (PAGE, "text/html", "utf-8")
    assert "SECRET" not in repr(first)


@pytest.mark.parametrize("compress", [True, False])
def test_an_archive_gives_its_pages(tmp_path: Path, compress: bool) -> None:
    replies = (URL, PAGE, "text/html; charset=windows-1252"), ("https://county.example/a.png", b"x", "image/png")
    (found,) = pages(warc(tmp_path / "a.warc.gz", *replies, compress=compress))

    assert (found.url, found.body, found.charset) == (URL, PAGE, "windows-1252")


def test_a_wacz_is_the_archives_in_it(tmp_path: Path) -> None:
    inner = warc(tmp_path / "data.warc.gz", (URL, PAGE, "text/html"))
    with zipfile.ZipFile(tmp_path / "a.wacz", "w") as archive:
        archive.writestr("archive/data.warc.gz", inner.read_bytes())
        archive.writestr("pages/pages.jsonl", "{}")

    assert outline(tmp_path / "a.wacz") == [URL]


def test_an_address_in_front_of_a_login_loses_the_login(tmp_path: Path) -> None:
    assert outline(har(tmp_path / "a.har", entry("https://me:pw@county.example/1"))) == ["https://county.example/1"]


@pytest.mark.parametrize(
    ("note", "url"),
    [
        (b"<!-- saved from url=(0031)https://county.example/parcel/1 -->", URL),
        (b"<!--\n Page saved with SingleFile \n url: https://county.example/parcel/1 \n-->", URL),
        (b"<!-- saved from url=(0014)about:internet -->", ""),
        (b"", ""),
    ],
)
def test_a_file_is_known_by_the_address_that_the_browser_noted(tmp_path: Path, note: bytes, url: str) -> None:
    (tmp_path / "Parcel 1.html").write_bytes(b"<!DOCTYPE html>\n" + note + PAGE)

    assert outline(tmp_path / "Parcel 1.html") == [url]


def test_an_mhtml_file_is_the_page_in_it(tmp_path: Path) -> None:
    text = (
        f"From: <Saved by Blink>\r\nSnapshot-Content-Location: {URL}\r\nMIME-Version: 1.0\r\n"
        'Content-Type: multipart/related; type="text/html"; boundary="b"\r\n\r\n--b\r\n'
        "Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
        "<html><body>Parcel=2012</body></html>\r\n--b\r\nContent-Type: image/png\r\n\r\nx\r\n--b--\r\n"
    )
    (tmp_path / "a.mhtml").write_text(text, newline="")

    (found,) = pages(tmp_path / "a.mhtml")

    assert (found.url, found.charset) == (URL, "utf-8")
    assert found.body.strip() == b"<html><body>Parcel 12</body></html>"


def test_a_folder_and_a_zip_archive_are_the_files_in_them(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    (folder / "sub").mkdir(parents=True)
    (folder / "b.html").write_bytes(PAGE)
    (folder / "sub" / "a.htm").write_bytes(PAGE)
    (folder / "logo.png").write_bytes(b"x")
    (folder / "out.html").symlink_to(tmp_path / "elsewhere.html")
    (tmp_path / "elsewhere.html").write_bytes(PAGE)
    with zipfile.ZipFile(tmp_path / "pages.zip", "w") as archive:
        archive.writestr("../../etc/evil.html", PAGE)
        archive.writestr("b.html", PAGE)

    assert [page.name for page in pages(folder)] == ["b.html", "a.htm"]
    assert [page.name for page in pages(tmp_path / "pages.zip")] == ["evil.html", "b.html"]
    assert is_saved(tmp_path / "pages.zip")
    assert not is_saved("list.csv")


def test_pages_that_cannot_be_used_are_rejected_one_by_one(tmp_path: Path) -> None:
    large = gzip.compress(b"x" * (_MOST + 1))
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "a.html").write_bytes(b"x" * (_MOST + 1))
    (tmp_path / "pages" / "b.html").write_bytes(b"  ")
    (tmp_path / "pages" / "c.mhtml").write_bytes(b"no page")
    (tmp_path / "pages" / "d.har").write_bytes(b"{")

    assert outline(tmp_path / "pages") == ["too_large", "empty_page", "no_page", "unreadable_file"]
    assert len(large) < 1_000
    assert outline(warc(tmp_path / "a.warc", (URL, b"x" * (_MOST * 20), "text/html"))) == ["too_large"]


def test_an_archive_that_is_cut_off_keeps_what_comes_before(tmp_path: Path) -> None:
    whole = warc(tmp_path / "a.warc.gz", *[(f"{URL}{n}", PAGE, "text/html") for n in range(20)]).read_bytes()
    (tmp_path / "cut.warc.gz").write_bytes(whole[: len(whole) // 2])

    found = outline(tmp_path / "cut.warc.gz")

    assert found[:5] == [f"{URL}{n}" for n in range(5)]


@pytest.mark.parametrize("name", ["a.har", "a.warc", "a.wacz", "a.warc.gz"])
def test_what_is_no_archive_gets_one_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"not an archive at all, by far\n" * 10)

    with pytest.raises(InputError) as caught:
        list(read_saved(tmp_path / name, _MOST))

    assert "\n" not in str(caught.value)


def test_damaged_archives_give_pages_rejects_or_one_sentence(tmp_path: Path) -> None:
    chance = random.Random(5)
    whole = {
        "a.warc": warc(tmp_path / "w", *[(URL, PAGE, "text/html")] * 5, compress=False).read_bytes(),
        "a.warc.gz": warc(tmp_path / "w", *[(URL, PAGE, "text/html")] * 5).read_bytes(),
        "a.har": har(tmp_path / "h", entry(), entry()).read_bytes(),
    }
    for _ in range(300):
        name, content = chance.choice(list(whole.items()))
        damaged = bytearray(content)
        for _ in range(chance.randrange(1, 10)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        (tmp_path / name).write_bytes(damaged[: chance.randrange(1, len(damaged) + 1)])
        with contextlib.suppress(InputError):  # anything else would be a fault of ours
            list(read_saved(tmp_path / name, _MOST))
