"""Screenshots of each view for docs/monitor.md, of the demo county: `make screenshots`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lienworker.testing.county.site import demo_site
from tests.harness.node import Node, interrupt, wait_until, write_list
from tests.web.browser import chromium, chromium_path

VIEWS = {
    "overview": "/",
    "tasks": "/tasks?status=failed",
    "results": "/results?platform=demo",
    "outbox": "/outbox",
    "counties": "/counties",
    "county": "/county?platform=demo&state=XX&county=Juniper",
    "imports": "/imports",
    "import": "/imports/1",
    "audit": "/audit",
    "search": "/search?q=evermere",
    "confirm": "/act/tasks/retry?status=failed&back=/tasks",
}
#: What is shown in narrower windows and in the dark; with `--all` everything is.
FEW = ("overview", "tasks", "result")
LOOKS = {"": ("light", 1440), "-dark": ("dark", 1440), "-1024": ("light", 1024), "-380": ("light", 380)}
PORT = 5619


def main(target: Path, *, everything: bool) -> None:
    path = chromium_path()
    if path is None:
        sys.exit("Chromium is needed: apt-get install chromium")
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lienworker-shots-") as folder:
        node = Node(Path(folder) / "data")
        with demo_site(latency=0.05) as site:
            rows = site.parcels(150) + site.odd_parcels()
            node.cli("run", write_list(Path(folder) / "juniper.jsonl", rows))
            with _stack(node):
                node.cli("import", write_list(Path(folder) / "juniper-more.jsonl", site.parcels(900, 300)))
                node.cli("pause", "--intake")
                node.cli("resume", "--intake")
                _shoot_all(node, target, path, everything)


@contextmanager
def _stack(node: Node) -> Iterator[None]:
    # Its log is not looked at, and a pipe that nobody reads would stop it.
    stack = node.start("up", LIENWORKER_WEB_PORT="0", LIENWORKER_HOST_CONCURRENCY="1", LIENWORKER_LOG_LEVEL="warning")
    try:
        wait_until(node.is_up)
        yield
    finally:
        interrupt(stack)
        stack.communicate(timeout=60)


def _shoot_all(node: Node, target: Path, path: str, everything: bool) -> None:
    server = node.start("web", "--port", str(PORT))
    try:
        _wait()
        with chromium(path) as browser:
            token = (node.data / "web_token").read_text().strip()
            for suffix in LOOKS:
                _shoot(browser, target, suffix, token, everything or not suffix)
    finally:
        server.terminate()
        server.communicate(timeout=60)


def _wait() -> None:
    for _ in range(100):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/healthz", timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise subprocess.SubprocessError("the monitor does not start")


def _shoot(browser, target: Path, suffix: str, token: str, everything: bool) -> None:
    scheme, width = LOOKS[suffix]
    page = browser.new_page(viewport={"width": width, "height": 1000}, color_scheme=scheme)
    page.goto(f"http://127.0.0.1:{PORT}/?token={token}")

    def first(path: str, link: str = "tbody th a") -> str:
        page.goto(f"http://127.0.0.1:{PORT}{path}")
        return page.locator(link).first.get_attribute("href")

    done = first("/tasks?status=completed")
    views = {
        **VIEWS,
        "task": first("/tasks?reason=http_404"),
        "result": done,
        "rawpage": f"{done}/page",
        "row": first("/outbox", "#sendings tbody th a"),
    }
    for name in views if everything else FEW:
        page.goto(f"http://127.0.0.1:{PORT}{views[name]}")
        page.wait_for_selector("#live-state:not(:text-matches('^not live'))", state="attached")
        page.screenshot(path=str(target / f"{name}{suffix}.png"), full_page=width < 400)
    page.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), everything="--all" in sys.argv)
