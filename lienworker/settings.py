"""All settings, in one frozen object read from a mapping (the environment and `.env`)."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from lienworker import __version__
from lienworker import setting_values as read_as
from lienworker.errors import SettingsError
from lienworker.trust import distrust, distrust_stat

USER_AGENT = f"lienworker/{__version__} (county parcel research)"


def _settings_file() -> dict[str, str]:
    """Return the values of `.env` in the current folder."""
    from dotenv import dotenv_values

    place = Path.cwd() / ".env"
    if words := distrust(place):
        raise SettingsError(".env", words)
    try:
        with place.open(encoding="utf-8") as content:
            # Check again what was opened: it cannot be exchanged any more.
            if words := distrust_stat(place, os.fstat(content.fileno())):
                raise SettingsError(".env", words)
            return {name: value for name, value in dotenv_values(stream=content).items() if value is not None}
    except (FileNotFoundError, IsADirectoryError):
        return {}
    except UnicodeDecodeError:
        raise SettingsError(".env", f"the one in {Path.cwd()} is not UTF-8 text; save it as UTF-8.") from None
    except OSError as problem:
        raise SettingsError(".env", f"the one in {Path.cwd()} cannot be read: {problem.strerror}.") from None


#: Variables of ours that are no settings: how parts of a stack find each other, and tests' own.
_NOT_SETTINGS = frozenset({"LIENWORKER_LIFELINE_FD", "LIENWORKER_CRASH_AT", "LIENWORKER_CRASH_MARK"})
#: What compose.yaml reads by itself.
_NOT_SETTINGS |= {"LIENWORKER_IMAGE", "LIENWORKER_BIND"}
_PREFIXES = ("LIENWORKER_", "GATEWAY_")
_ALIKE = 0.85


def unknown_settings() -> list[str]:
    """Return a sentence for each variable in the environment or in `.env` that looks like a setting and is none."""
    known = {item.metadata["env"] for item in fields(Settings)}
    own = _settings_file()
    wrong = [
        name for name in {**own, **os.environ} if name not in known | _NOT_SETTINGS and _looks_like_ours(name, known)
    ]
    return [_said(name, known, ".env" if name in own else "the environment") for name in sorted(wrong)]


@dataclass(frozen=True, slots=True)
class DescribedSetting:
    """A setting for people: its variable, what it does, its value as text (no secret) and where that is set."""

    name: str
    doc: str
    default: str
    shown: str
    source: str


def described_settings() -> list[DescribedSetting]:
    """Return every setting as it is now."""
    own, settings = _settings_file(), Settings.from_environment()
    return [_described(item, settings, own) for item in fields(Settings)]


def _described(item: Any, settings: Settings, own: Mapping[str, str]) -> DescribedSetting:
    name, doc = item.metadata["env"], item.metadata["doc"]
    places = {"environment": os.environ, ".env": own}
    source = next((place for place, values in places.items() if values.get(name, "").strip()), "default")
    value = _as_text(getattr(settings, item.name))
    is_hidden = item.metadata["secret"] and value
    return DescribedSetting(name, doc, _as_text(item.default), "(set)" if is_hidden else value, source)


def _looks_like_ours(name: str, known: set[str]) -> bool:
    return name.startswith(_PREFIXES) or bool(get_close_matches(name, known, n=1, cutoff=_ALIKE))


def _said(name: str, known: set[str], where: str) -> str:
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else "docs/settings.md has them all."
    return f"{name} (in {where}) is no setting; {hint}"


def _setting(env: str, default: Any, parse: Callable[[str], Any], doc: str, *, secret: bool = False) -> Any:
    """Return a field with its variable, its unit and its reason; docs/settings.md is checked against these."""
    return field(default=default, metadata={"env": env, "parse": parse, "doc": doc, "secret": secret}, repr=not secret)


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value == math.inf:
        return "forever"
    return ",".join(value) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True)
class Settings:
    """Every setting. Nothing else reads the environment."""

    data_dir: Path = _setting(
        "LIENWORKER_DATA_DIR", Path("data"), read_as.folder, "The data folder: database, raw pages, results."
    )
    redis_url: str | None = _setting(
        "REDIS_URL",
        None,
        read_as.url("redis", "rediss", "unix"),
        "Your own Redis. Unset: a private one is started in the data folder.",
        secret=True,
    )
    standalone: bool = _setting(
        "STANDALONE", False, read_as.flag, "`true`: no call goes to the Gateway, whatever else is set."
    )
    gateway_sync: str = _setting(
        "GATEWAY_SYNC",
        "enabled",
        read_as.choice("enabled", "disabled", "required"),
        "`disabled`: the same as `STANDALONE=true`. `required`: without a `GATEWAY_URL` nothing starts.",
    )
    gateway_url: str | None = _setting(
        "GATEWAY_URL",
        None,
        read_as.url("http", "https"),
        "The Gateway's address. Unset: the mode is standalone.",
        secret=True,  # it may hold a password
    )
    gateway_token: str | None = _setting(
        "GATEWAY_TOKEN", None, read_as.line, "The Gateway's worker token.", secret=True
    )
    worker_id: str | None = _setting(
        "WORKER_ID",
        None,
        read_as.worker_id,
        "This worker's name at the Gateway. Unset: made once and kept in the data folder.",
    )
    gateway_retry: float = _setting(
        "LIENWORKER_GATEWAY_RETRY",
        30.0,
        read_as.number(float, 0.01, 300),
        "Seconds before the Gateway is tried again after it failed; twice as long each time, up to five minutes. Where "
        "nobody answers, it is looked for more often.",
    )
    heartbeat: float = _setting(
        "LIENWORKER_HEARTBEAT",
        60.0,
        read_as.number(float, 1, 70),  # with one lost beat still less than two minutes apart
        "Seconds between two heartbeats to the Gateway.",
    )
    max_waiting: int = _setting(
        "LIENWORKER_MAX_WAITING",
        1000,
        read_as.number(int, 1, 10**7),
        "Tasks that may wait, or be done and not delivered, before no more are taken from the Gateway.",
    )
    task_expiry: float = _setting(
        "LIENWORKER_TASK_EXPIRY",
        168.0,
        read_as.number(float, 0.001, 87600),
        "Hours after which a task of the Gateway is not scraped any more.",
    )
    upload_concurrency: int = _setting(
        "LIENWORKER_UPLOAD_CONCURRENCY",
        16,
        read_as.number(int, 1, 256),
        "Raw files in flight to the Gateway at a time, at most.",
    )
    proxy: str | None = _setting(
        "LIENWORKER_PROXY",
        None,
        read_as.url("http", "socks5", "socks5h"),
        "A proxy for all fetches; a task may bring its own.",
        secret=True,
    )
    host_delay: float = _setting(
        "LIENWORKER_HOST_DELAY",
        1.0,
        read_as.number(float, 0, 3600),
        "Seconds between two requests to one host; a platform may ask for its own.",
    )
    host_concurrency: int = _setting(
        "LIENWORKER_HOST_CONCURRENCY", 4, read_as.number(int, 1, 1000), "Open requests to one host at a time."
    )
    host_give_up: float = _setting(
        "LIENWORKER_HOST_GIVE_UP",
        1800.0,
        read_as.number(float, 1, 604800),
        "Seconds without one answer from a host after which its waiting tasks fail as `host_down`.",
    )
    run_give_up: float = _setting(
        "LIENWORKER_RUN_GIVE_UP",
        10.0,
        read_as.number(float, 0.05, 10080),
        "Minutes without one answer from a host after which `lienworker run` waits for it no longer: what waits there "
        "fails as `host_down`. `LIENWORKER_HOST_GIVE_UP` applies where it is shorter.",
    )
    past_deadline: str = _setting(
        "LIENWORKER_PAST_DEADLINE",
        "keep",
        read_as.choice("keep", "expire"),
        "What happens to tasks whose deadline (`import --by`) has passed: `keep` them, or let them `expire` unfetched, "
        "as `--drop-after` does for one import.",
    )
    allow_private_hosts: tuple[str, ...] = _setting(
        "LIENWORKER_ALLOW_PRIVATE_HOSTS",
        (),
        read_as.words,
        "Host names, addresses or networks in private ranges that may be fetched, with commas; `all` for every one.",
    )
    robots: str = _setting(
        "LIENWORKER_ROBOTS", "obey", read_as.choice("obey", "ignore"), "Whether robots.txt is obeyed."
    )
    user_agent: str = _setting(
        "LIENWORKER_USER_AGENT", USER_AGENT, read_as.line, "What we call ourselves to county sites."
    )
    connect_timeout: float = _setting(
        "LIENWORKER_CONNECT_TIMEOUT", 10.0, read_as.number(float, 0.1, 600), "Seconds to connect to a county site."
    )
    read_timeout: float = _setting(
        "LIENWORKER_READ_TIMEOUT", 30.0, read_as.number(float, 0.1, 600), "Seconds between two pieces of a page."
    )
    fetch_timeout: float = _setting(
        "LIENWORKER_FETCH_TIMEOUT", 60.0, read_as.number(float, 0.1, 3600), "Seconds for a page in all."
    )
    fetch_attempts: int = _setting(
        "LIENWORKER_FETCH_ATTEMPTS", 4, read_as.number(int, 1, 100), "Tries of one page before its task fails."
    )
    retry_delay: float = _setting(
        "LIENWORKER_RETRY_DELAY",
        5.0,
        read_as.number(float, 0, 3600),
        "Seconds before the second try of a page; four times as long for each further one, with jitter.",
    )
    max_page_mb: float = _setting(
        "LIENWORKER_MAX_PAGE_MB",
        16.0,
        read_as.number(float, 0.001, 1024),
        "Megabytes of a page after decompression; a larger one fails.",
    )
    processes: int = _setting(
        "LIENWORKER_PROCESSES", 0, read_as.number(int, 0, 256), "Worker processes; 0 means one a core."
    )
    threads: int = _setting(
        "LIENWORKER_THREADS",
        6,
        read_as.number(int, 5, 256),
        "Threads a worker process, four of which are kept free for relay, polling, heartbeat and uploads.",
    )
    batch: int = _setting(
        "LIENWORKER_BATCH", 16, read_as.number(int, 1, 1000), "Rows that one message may claim at a time."
    )
    disk_warn_mb: int = _setting(
        "LIENWORKER_DISK_WARN_MB",
        1000,
        read_as.number(int, 0, 10**9),
        "Free megabytes under which status and doctor warn.",
    )
    disk_stop_intake_mb: int = _setting(
        "LIENWORKER_DISK_STOP_INTAKE_MB",
        300,
        read_as.number(int, 0, 10**9),
        "Free megabytes under which no new work is accepted.",
    )
    disk_stop_fetch_mb: int = _setting(
        "LIENWORKER_DISK_STOP_FETCH_MB",
        100,
        read_as.number(int, 0, 10**9),
        "Free megabytes under which fetching stops until there is room.",
    )
    data_max_mb: int = _setting(
        "LIENWORKER_DATA_MAX_MB",
        0,
        read_as.number(int, 0, 10**9),
        "Megabytes that the data folder may take; from 80 % on it warns, from 90 % on no new work is accepted, at "
        "100 % fetching stops until there is room. 0: as large as the disk allows.",
    )
    keep_raw: float = _setting(
        "LIENWORKER_KEEP_RAW_DAYS",
        30.0,
        read_as.days,
        "Days after its fetch that a raw page is kept, and longer until its result is delivered; or `forever`.",
    )
    keep_steps: float = _setting(
        "LIENWORKER_KEEP_STEPS_DAYS",
        14.0,
        read_as.days,
        "Days that the finished steps of an ended task and their errors are kept.",
    )
    keep_tasks: float = _setting(
        "LIENWORKER_KEEP_TASKS_DAYS",
        90.0,
        read_as.days,
        "Days that an ended task is kept with its result, and longer until it is delivered.",
    )
    keep_archived: float = _setting(
        "LIENWORKER_KEEP_ARCHIVED_DAYS",
        math.inf,
        read_as.days,
        "Days that a result is kept that no Gateway has but that `results archive` has packed.",
    )
    keep_history: float = _setting(
        "LIENWORKER_KEEP_HISTORY_DAYS",
        365.0,
        read_as.days,
        "Days that the audit, the list of imports, their rejects and the counties' figures are kept.",
    )
    platforms_folder: Path | None = _setting(
        "LIENWORKER_PLATFORMS",
        None,
        read_as.folder,
        "A folder with your own platforms: Python files, TOML or YAML definitions.",
    )
    name: str | None = _setting(
        "LIENWORKER_NAME",
        None,
        read_as.worker_id,
        "What the monitor and `status` call this stack, where there are several.",
    )
    web_host: str = _setting("LIENWORKER_WEB_HOST", "127.0.0.1", read_as.host, "Where the monitor listens.")
    web_port: int = _setting(
        "LIENWORKER_WEB_PORT", 5555, read_as.number(int, 0, 65535), "The monitor's port; 0 turns it off in `up`."
    )
    web_token: str | None = _setting(
        "LIENWORKER_WEB_TOKEN",
        None,
        read_as.line,
        "Your own token for the monitor, besides the one in the data folder; 20 characters or more.",
        secret=True,
    )
    web_allow_hosts: tuple[str, ...] = _setting(
        "LIENWORKER_WEB_ALLOW_HOSTS",
        (),
        read_as.words,
        "Further host names of the monitor, separated by commas: those that a proxy in front of it uses.",
    )
    web_read_only: bool = _setting(
        "LIENWORKER_WEB_READ_ONLY", False, read_as.flag, "`true`: the monitor hides and refuses every action."
    )
    log_level: str = _setting("LIENWORKER_LOG_LEVEL", "info", read_as.choice(*read_as.LEVELS), "How much is logged.")
    log_levels: tuple[str, ...] = _setting(
        "LIENWORKER_LOG_LEVELS",
        (),
        read_as.levels,
        "Other levels for some loggers, with commas, such as `lienworker.hubs.gateway=debug,dramatiq=info`.",
    )
    log_format: str = _setting(
        "LIENWORKER_LOG_FORMAT",
        "auto",
        read_as.choice("auto", "text", "json"),
        "`auto`: readable lines on a terminal, JSON lines otherwise.",
    )

    @property
    def mode(self) -> str:
        """`standalone` or `ondemand`; with no Gateway configured the mode is standalone."""
        silent = self.standalone or self.gateway_sync == "disabled" or self.gateway_url is None
        return "standalone" if silent else "ondemand"

    @property
    def process_count(self) -> int:
        return self.processes or os.cpu_count() or 1

    @classmethod
    def from_mapping(cls, values: Mapping[str, str]) -> Settings:
        """Read what is set; an empty value counts as unset, a wrong one is one sentence that names it."""
        chosen: dict[str, Any] = {}
        for item in fields(cls):
            text = values.get(item.metadata["env"], "")
            if not text.strip():
                continue
            try:
                chosen[item.name] = item.metadata["parse"](text)
            except ValueError as problem:
                shown = (
                    "the given value" if item.metadata["secret"] else repr(text if len(text) < 100 else text[:99] + "…")
                )
                raise SettingsError(item.metadata["env"], f"{shown} cannot be used: {problem}.") from None
        chosen.setdefault("data_dir", read_as.folder("data"))
        return cls(**chosen)._checked()

    @classmethod
    def from_environment(cls) -> Settings:
        """Return the environment, over what `.env` in the current folder says."""
        return cls.from_mapping({**_settings_file(), **os.environ})

    def to_environment(self) -> dict[str, str]:
        """Return every setting as a variable, for child processes; an empty one keeps `.env` from filling it in."""
        return {item.metadata["env"]: _as_text(getattr(self, item.name)) for item in fields(self)}

    def _checked(self) -> Settings:
        if not self.disk_stop_fetch_mb <= self.disk_stop_intake_mb <= self.disk_warn_mb:
            raise SettingsError(
                "LIENWORKER_DISK_WARN_MB",
                "the three disk limits must decrease from warn to stop-intake to stop-fetch.",
            )
        if self.gateway_sync == "required" and not self.standalone and not self.gateway_url:
            raise SettingsError("GATEWAY_URL", "is not set, but GATEWAY_SYNC=required; set it, and GATEWAY_TOKEN.")
        if self.mode == "ondemand" and not self.gateway_token:
            raise SettingsError("GATEWAY_TOKEN", "is not set, but GATEWAY_URL is; set it, or set STANDALONE=true.")
        return self
