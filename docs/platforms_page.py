"""Print docs/platforms.md, made from the platforms themselves (`make docs`)."""

from __future__ import annotations

import sys
from pathlib import Path

from lienworker.platforms import Platform, Registry
from lienworker.platforms.catalog.registry import BUILT_IN, reach_of

_EXAMPLE = Path(__file__).parent.parent / "examples" / "iasworld-county.toml"
_HEAD = """# Platforms

What the program reads without a line of your own, and how sure it is of each. A platform *from documentation* was
written without a page in hand, from what people who read these sites have published: check its first results against
the site. What no platform knows is read by `generic`. [Writing a platform](writing-a-platform.md) adds to this list;
`lienworker platforms list` shows it with what is installed. This page is made from the program (`make docs`).

| Platform | What it reads | Written from |
|---|---|---|"""
_REACH = """
## How their pages are reached

One GET of an address reaches the pages of most platforms. These need more (a [flow](flows.md): a session, a form, a
log-in, several pages a parcel), or are closed to robots, and we obey: *parse only* platforms read pages that you have
saved. *Verified on recorded pages* means that replies of the real sites were walked in the tests, *from documentation*
that nobody has seen it work against the real site yet; `lienworker platforms try` and `scrape --trace` show each step.

| Platform | Reach | The rows to import bring |
|---|---|---|"""
_COUNTY = """
A setting of a flow that has a value is the platform's; the others come with the row, or from a definition of your own.
A county on iasWorld whose addresses differ is such a definition (`examples/iasworld-county.toml`):

```toml
{example}```

Walking `iasworld` agrees to the county's disclaimer in your name: read it first. The public key of `sri` is the setting
`api_key`: it is in the script of the vendor's site, and 401 or 403 mean that it has changed. RealAuction's sites refuse
an empty user agent and robots': what we call ourselves is your word, `LIENWORKER_USER_AGENT`."""


def about(platform: Platform) -> str:
    """The first paragraph of the module that a platform is in."""
    described = sys.modules[type(platform).__module__].__doc__ or ""
    return " ".join(described.partition("\n\n")[0].split())


def brought(platform: Platform) -> str:
    """What a target must say for the platform's flow, besides its parcel."""
    names = [name for name, value in platform.flow.settings.items() if not value] if platform.flow else []
    return ", ".join(f"`{name}`" for name in names)


ours = Registry(BUILT_IN)
platforms = [ours.get(name) for name in ours.names()]
print(_HEAD)
for platform in platforms:
    print(f"| `{platform.name}` | {about(platform)} | {platform.evidence} |")
print(_REACH)
for platform in platforms:
    if platform.reach:
        print(f"| `{platform.name}` | {reach_of(platform)} | {brought(platform)} |")
print(_COUNTY.format(example=_EXAMPLE.read_text()))
