"""What is said about a raw file when it is sent: its name at the Gateway and its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lienworker.hubs.gateway.wire import raw_name

_KEYS = ("platform", "state", "county", "parcel_id")


def raw_form(task_id: str, page: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name and the metadata of a stored page, as `outbox.uploads.raw_pages` gives it."""
    keys = {name: str(page[name] or "") for name in _KEYS}
    metadata = {
        **keys,
        "task_id": task_id,
        "url": page["url"],
        "raw_html_hash": page["sha256"],
        "fetched_at": page["fetched_at"],
        "content_type": page["content_type"],
    }
    extension = ".".join(page["path"].rsplit(".", 2)[1:])
    return raw_name(**keys, raw_sha256=page["sha256"], ext=extension), metadata
