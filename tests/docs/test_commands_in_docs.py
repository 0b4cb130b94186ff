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
SOMETHING_IS_THERE = {"operations.md"}


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
