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
}
#: Colour schemes and widths; those of the documents are `make screenshots`.
LOOKS = (("light", 1440), ("light", 1024), ("light", 380), ("dark", 1440))
PORT = 5619


def main(target: Path) -> None:
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
                _shoot_all(node, target, path)


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


def _shoot_all(node: Node, target: Path, path: str) -> None:
    server = node.start("web", "--port", str(PORT))
    try:
        _wait()
        with chromium(path) as browser:
            for scheme, width in LOOKS:
                _shoot(browser, target, scheme, width, (node.data / "web_token").read_text().strip())
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


def _shoot(browser, target: Path, scheme: str, width: int, token: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 820}, color_scheme=scheme)
    page.goto(f"http://127.0.0.1:{PORT}/?token={token}")
    page.goto(f"http://127.0.0.1:{PORT}/tasks?reason=http_404")
    task = page.locator("tbody th a").first.get_attribute("href")
    page.goto(f"http://127.0.0.1:{PORT}/tasks?status=completed")
    done = page.locator("tbody th a").first.get_attribute("href")
    page.goto(f"http://127.0.0.1:{PORT}/outbox")
    row = page.locator("#sendings tbody th a").first.get_attribute("href")
    views = {**VIEWS, "task": task, "result": done, "rawpage": f"{done}/page", "row": row}
    views["confirm"] = "/act/tasks/retry?status=failed&back=/tasks"
    for name, where in views.items():
        page.goto(f"http://127.0.0.1:{PORT}{where}")
        page.wait_for_timeout(400)
        page.screenshot(path=str(target / f"{name}-{scheme}-{width}.png"), full_page=True)
    page.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
