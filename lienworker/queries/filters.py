"""What tasks and results are looked for by."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """What tasks and results are looked for by; what is None does not count. State and county are without case."""

    status: str | None = None
    queue: str | None = None
    platform: str | None = None
    state: str | None = None
    county: str | None = None
    source: str | None = None
    reason: str | None = None
    text: str | None = None
    import_id: int | None = None
    #: RFC 3339: tasks that came, or results that were made, from then on.
    since: str | None = None
    #: Only results that somebody should look at.
    doubtful: bool = False

    @property
    def is_empty(self) -> bool:
        return self == TaskFilter()

    def in_words(self) -> str:
        said = [(item.name, getattr(self, item.name)) for item in fields(self) if item.name != "doubtful"]
        words = [f"{name}={value}" for name, value in said if value is not None]
        return " ".join(words + ["doubtful"] * self.doubtful) or "all"
