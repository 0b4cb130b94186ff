"""One of the county sites in the foreground, until interrupted."""

from __future__ import annotations

import argparse
import asyncio
from contextlib import suppress
from pathlib import Path

from lienworker.testing.serving import HOST, serve_until_told
from lienworker.testing.sites import SITES


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m lienworker.testing.sites", description="A county site with sessions."
    )
    parser.add_argument("kind", choices=sorted(SITES))
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--port-file", type=Path, help="write the port here once the site answers")
    parser.add_argument("--end-every", type=int, default=0, metavar="N", help="end a session after so many parcels")
    asked = parser.parse_args()
    site = SITES[asked.kind](end_every=asked.end_every)
    with suppress(KeyboardInterrupt):
        asyncio.run(serve_until_told(site, HOST, asked.port, asked.port_file))


if __name__ == "__main__":
    main()
