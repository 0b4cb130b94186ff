"""A real Chromium for tests and screenshots."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def chromium_path() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for name in names if (path := shutil.which(name))), None)


def need_browser() -> str:
    """The browser's path; where it is missing, skip aloud, or fail on CI."""
    path = chromium_path()
    try:
        import playwright  # noqa: F401
    except ImportError:
        path = None
    if path is None:
        words = "browser tests need Chromium and playwright: apt-get install chromium, pip install playwright"
        if os.environ.get("CI") == "true":
            pytest.fail(words)
        pytest.skip(words)
    return path


@contextmanager
def chromium(path: str) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        try:
            yield browser
        finally:
            browser.close()
