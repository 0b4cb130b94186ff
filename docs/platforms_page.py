"""Print docs/platforms.md, made from the platforms themselves (`make docs`)."""

from __future__ import annotations

import sys

from lienworker.platforms import Registry
from lienworker.platforms.catalog.registry import BUILT_IN

_HEAD = """# Platforms

What the program reads without a line of your own, and how sure it is of each. A platform *from documentation* was
written without a page in hand, from what people who read these sites have published: check its first results against
the site. What no platform knows is read by `generic`. [Writing a platform](writing-a-platform.md) adds to this list;
`lienworker platforms list` shows it with what is installed. This page is made from the program (`make docs`).

| Platform | What it reads | Written from |
|---|---|---|"""


def about(platform: object) -> str:
    """The first paragraph of the module that a platform is in."""
    described = sys.modules[type(platform).__module__].__doc__ or ""
    return " ".join(described.partition("\n\n")[0].split())


print(_HEAD)
ours = Registry(BUILT_IN)
for name in ours.names():
    platform = ours.get(name)
    print(f"| `{name}` | {about(platform)} | {platform.evidence} |")
