"""A raw page without what runs, loads or leads anywhere, made in a child process with limits.

A page can be built so that parsing it costs minutes or gigabytes. Nobody else may wait for it: the child has a deadline
and a memory limit, and is killed where it needs more.

Run as a program, it reads a page from standard input and writes the harmless one to standard output.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import resource
import sys
from typing import Any

#: Characters of a page to render; no person reads a longer page.
_LONGEST = 4_000_000
_SECONDS = 8.0
_MEMORY = 768 * 1024 * 1024
#: Children at a time: their memory adds up.
_CHILDREN = 2
_REACHES_OUT = (
    "script, link, meta, base, iframe, frame, frameset, object, embed, applet, noscript, portal, video, audio"
)
#: What a style sheet loads things with. The frame's policy would stop it anyway; this way it is not even tried.
_LOADING_STYLE = re.compile(r"@import|(?:url|src|image|image-set|cross-fade)\s*\(", re.IGNORECASE)
_REFERENCES = {"src", "srcset", "href", "action", "formaction", "background", "poster", "data", "ping", "xlink:href"}


class Sanitizer:
    """Makes pages harmless, a few at a time."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(_CHILDREN)

    async def sanitized(self, text: str) -> str | None:
        """Return the page without what runs, loads or leads anywhere; None where that costs too much."""
        if len(text) > _LONGEST:
            return None
        async with self._places:
            return await _in_child(text)


async def _in_child(text: str) -> str | None:
    # Our own module, with nothing from a visitor on its command line.
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", __name__, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(_SECONDS):
            made, _ = await child.communicate(text.encode("utf-8", "replace"))
    except TimeoutError:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()
    return made.decode() if child.returncode == 0 else None


def sanitize(text: str) -> str:
    """Return what a person would have seen of the page, and nothing else."""
    from parsel import Selector

    if not text.strip():
        return ""
    selector = Selector(text=text, type="html")
    selector.css(_REACHES_OUT).drop()
    for element in selector.root.iter():
        if element.tag == "style":
            element.text = _LOADING_STYLE.sub("none(", element.text or "")
        _sanitize_attributes(element.attrib)
    return str(selector.get())


def _sanitize_attributes(attributes: Any) -> None:
    for name in list(attributes):
        plain = str(name).lower()
        if plain.startswith("on") or (plain in _REFERENCES and not _is_picture(attributes[name])):
            del attributes[name]
        elif plain == "style":
            attributes[name] = _LOADING_STYLE.sub("none(", attributes[name])


def _is_picture(value: str) -> bool:
    return value.startswith(("data:image/png", "data:image/jpeg", "data:image/gif"))


def main() -> None:
    """Run the child. Its own limits apply even where the monitor is gone; macOS has none for memory."""
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (int(_SECONDS), int(_SECONDS)))
    sys.stdout.buffer.write(sanitize(sys.stdin.buffer.read().decode()).encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
