"""Print docs/settings.md, made from the fields of the settings (`make docs`)."""

from __future__ import annotations

import math
from dataclasses import fields

from lienworker.settings import Settings

_HEAD = """# Settings

Settings come from the environment, and from a file `.env` in the current folder for those that the environment does
not set. An empty value counts as unset. A wrong value stops the program with one sentence that names the variable.
This page is made from the program (`make docs`).

| Variable | Default | What it does |
|---|---|---|"""


def shown(default: object) -> str:
    if default is None or default == ():
        return "(unset)"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if default == math.inf:
        return "`forever`"
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


print(_HEAD)
for item in fields(Settings):
    print(f"| `{item.metadata['env']}` | {shown(item.default)} | {item.metadata['doc']} |")
