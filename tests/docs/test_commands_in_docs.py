"""Each command in the documents is run: page by page, in order, as a reader would type them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lienworker.testing.county.site import DemoSite
from lienworker.testing.gateway import reference_gateway
from tests.docs.blocks import blocks, documents
from tests.docs.sandbox import Sandbox

PAGES = [page for page in documents() if any(block.kind == "sh" and not block.why_not for block in blocks(page))]
#: Pages for who has a data folder already.
SOMETHING_IS_THERE = {"auction-day.md", "operations.md"}


#: What a newcomer reads, in this order.
FIRST_PAGES = ("README.md", "quick-start.md", "standalone.md")


@pytest.mark.slow
def test_a_newcomer_walks_through_the_first_pages_in_one_folder(site: DemoSite, tmp_path: Path) -> None:
    """From the top of the README to the end of standalone.md; then each command that a message on the way named."""
    by_name = {page.name: page for page in PAGES}
    with reference_gateway() as gateway:
        sandbox = Sandbox(tmp_path, site, gateway)
        try:
            for name in FIRST_PAGES:
                for block in blocks(by_name[name]):
                    for command in block.commands if block.kind == "sh" and not block.why_not else ():
                        sandbox.run(command)
                sandbox.close()
            (tmp_path / "bare.csv").write_text("url,parcel_id\nhttp://127.0.0.1:9/1,00-1\n")
            sandbox.run("lienworker import bare.csv")
            assert any("`lienworker " in said for said in sandbox.said)
            sandbox.run("export GATEWAY_URL=https://gateway.example GATEWAY_TOKEN=…")  # some of it is about sending
            for command in sandbox.advice():
                sandbox.run(command, codes=(0, 1))  # 1: it works, and tells of trouble; 2 would be a command of no use
        finally:
            sandbox.close()


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_tells_to_type_works(page: Path, site: DemoSite, tmp_path: Path) -> None:
    with reference_gateway() as gateway:
        sandbox = Sandbox(tmp_path, site, gateway)
        if page.name in SOMETHING_IS_THERE:
            sandbox.run("lienworker import parcels.csv")
        try:
            for block in blocks(page):
                if block.kind == "sh" and not block.why_not:
                    for command in block.commands:
                        sandbox.run(command)
        finally:
            sandbox.close()


def test_there_is_something_to_run() -> None:
    assert {"README.md", "quick-start.md", "writing-a-platform.md"} <= {page.name for page in PAGES}
