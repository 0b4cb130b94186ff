"""outbox: what is on its way to the Gateway, and doing something about it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from lienworker.cli.common import (
    json_option,
    list_options,
    load_settings,
    named_task,
    open_folder,
    print_rows,
    print_total,
    shown,
    since_option,
    with_options,
)
from lienworker.cli.output import confirm, echo, print_json
from lienworker.cli.progress import Progress
from lienworker.text_safety import plural, redacted

if TYPE_CHECKING:
    from lienworker.data_folder import DataFolder
    from lienworker.operator.rows import RowFilter

_STATES = ["waiting", "leased", "held", "delivered", "superseded", "parked", "discarded"]
_TOPICS = ["upload_raw", "upload_result", "report_failure"]
_COLUMNS = ("id", "topic", "state", "reason", "county", "parcel_id", "task_id", "created_at")

_filters = with_options(
    click.option("--id", "ids", multiple=True, type=int, help="Only this row; may be given several times."),
    click.option("--topic", type=click.Choice(_TOPICS), help="Only rows of this kind."),
    click.option("--reason", help="Only rows with this reason."),
    click.option("--county", help="Only rows of this county."),
    click.option("--fingerprint", help="Only rows with this error, as `outbox status` names it."),
    since_option("rows"),
)


def _filter_of(options: dict[str, Any], state: str | None = None) -> RowFilter:
    from lienworker.operator.rows import RowFilter

    return RowFilter(**{**options, "ids": tuple(options["ids"])}, state=state)


@click.group(epilog="Example: lienworker outbox status")
def outbox() -> None:
    """What is on its way to the Gateway: look, replay, hold, release, discard."""


@outbox.command(epilog="Example: lienworker outbox status --json")
@json_option
def status(as_json: bool) -> None:
    """What waits, is parked or held and why, how old it is, how to send it, and what the Gateway says."""
    from lienworker.operator.rows import lanes_in_figures
    from lienworker.outbox.breaker import breakers
    from lienworker.outbox.pauses import pauses
    from lienworker.queries.failures import groups_of_failures

    open_folder(load_settings())
    facts = {
        "lanes": lanes_in_figures(),
        "failures": groups_of_failures(),
        "breakers": breakers(),
        "pauses": [
            {"cause": cause, "since": at, "words": words} for lane, cause, at, words in pauses() if lane == "upload"
        ],
    }
    if as_json:
        print_json(facts)
        return
    for line in (*_lane_lines(facts["lanes"]), *_pause_lines(facts["pauses"]), *_breaker_lines(facts["breakers"])):
        echo(line)
    for group in facts["failures"]:
        echo("\n" + "\n".join(_group_lines(group)))


def _lane_lines(lanes: list[dict[str, Any]]) -> Iterator[str]:
    from lienworker.queries.formatting import seconds

    for lane in lanes:
        states = "  ".join(f"{state} {n:,}" for state, n in sorted(lane["states"].items())) or "nothing"
        waits = lane["oldest_seconds"]
        age = "" if waits is None else f"  (oldest waits {seconds(waits) if waits >= 60 else 'less than a minute'})"
        yield f"{lane['topic']:>15}  {states}{age}"


def _pause_lines(pauses: list[dict[str, Any]]) -> list[str]:
    return [
        f"Uploads are paused since {row['since']} ({row['words']}); `lienworker resume --upload` goes on."
        for row in pauses
    ]


def _group_lines(group: dict[str, Any]) -> Iterator[str]:
    """One group: how many of what and why, since when, when they are tried again, and how to send them now."""
    from lienworker.queries.formatting import cut, in_our_words

    yield f"{plural(group['n'], 'row')} {group['state']}: {group['topic']}, {group['reason'] or 'no reason'}"
    if group["sample"]:
        yield f"  error     {shown(cut(in_our_words(group['sample']), 300), 300)}"
    yield f"  seen      {group['first_at']} to {group['last_at']}"
    if group["next_try"]:
        yield f"  next try  {group['next_try']}"
    if group["command"]:
        yield f"  send now  {group['command']}"


def _breaker_lines(breakers: list[dict[str, Any]]) -> list[str]:
    from lienworker.queries.formatting import in_our_words

    now = int(datetime.now(UTC).timestamp() * 1000)
    return [
        f"The Gateway's {row['endpoint']}: {in_our_words(row['words'] or '')} (since {row['since']}); "
        f"next try in {max(0, row['retry_at'] - now) // 1000} s; nothing is lost."
        for row in breakers
        if row["is_open"]
    ]


@outbox.command("list", epilog="Example: lienworker outbox list --status parked --reason gateway_refused")
@click.option("--status", "state", type=click.Choice(_STATES), help="Only rows with this status.")
@_filters
@list_options
@json_option
def list_(state: str | None, limit: int, reverse: bool, as_json: bool, **options: Any) -> None:
    """List rows, newest first."""
    from lienworker.db.clock import rfc3339
    from lienworker.operator.rows import count_rows, find_rows

    open_folder(load_settings())
    wanted = _filter_of(options, state)
    rows = [{**row, "created_at": rfc3339(row["created_at"])} for row in find_rows(wanted, limit, oldest_first=reverse)]
    print_rows(rows, _COLUMNS, as_json=as_json, nothing="No such rows.")
    if not as_json:
        print_total(len(rows), limit, "row", lambda: count_rows(wanted))


@outbox.command(epilog="Example: lienworker outbox show 1234")
@click.argument("name", metavar="ROW_OR_TASK")
@json_option
def show(name: str, as_json: bool) -> None:
    """Everything about one row: whose it is, its raw file, what it would send, attempts, each error.

    By its number, or all rows of a task by the task's id or its beginning, a parcel id or an address.
    """
    folder = open_folder(load_settings())
    stories = [_story(folder, row_id) for row_id in _rows_called(name)]
    if as_json:
        print_json(stories[0] if len(stories) == 1 else stories)
        return
    for story in stories:
        _print_story(story)


def _rows_called(name: str) -> list[int]:
    from lienworker.outbox.rows import is_row, steps_of
    from lienworker.queries.lists import tasks_called

    if name.isascii() and name.isdigit() and len(name) < 19 and (is_row(int(name)) or not tasks_called(name)):
        return [int(name)]
    rows = [step["id"] for step in steps_of(named_task(name)) if step["topic"] in _TOPICS]
    if not rows:
        raise click.ClickException(f"Nothing of task {name} is for a Gateway: `lienworker tasks show {name}`.")
    return rows


def _story(folder: DataFolder, row_id: int) -> dict[str, Any]:
    from lienworker.queries.row import row_story

    story = row_story(row_id)
    if story is None:
        raise click.ClickException(f"There is no row {row_id}. `lienworker outbox list` shows what there is.")
    if story["raw_file"]:
        story["raw_file"] = str(folder.root / story["raw_file"])
    return story


def _print_story(story: dict[str, Any]) -> None:
    for name, value in story.items():
        if name != "errors" and value is not None:
            echo(f"{name:>14}  {_whole(value)}")
    for error in story["errors"]:
        echo(f"  {error['at']}  {error['reason']}: {_whole(error['error'])}")


def _whole(value: Any) -> str:
    """Nothing is cut here; what is nested is JSON, which has no control characters."""
    return json.dumps(redacted(value), indent=2) if isinstance(value, dict | list) else shown(value, sys.maxsize)


@outbox.command(epilog="Example: lienworker outbox replay --dry-run")
@_filters
@click.option("--include-held", is_flag=True, help="Also what an operator or the drift guard held.")
@click.option("--dry-run", is_flag=True, help="Say how many rows that would be, and touch nothing.")
def replay(include_held: bool, dry_run: bool, **options: Any) -> None:
    """Send everything that waits, is parked or was held by standalone mode, now.

    Works with no stack running, and beside one. It is the one command that calls the Gateway under STANDALONE.
    Exit 0 only if all of it was delivered.
    """
    from lienworker.operator.replay import replay as send
    from lienworker.operator.replay import rows_to_replay
    from lienworker.outbox.leases import reap_dead_workers

    settings = load_settings()
    folder = open_folder(settings)
    wanted = _filter_of(options)
    if not dry_run:
        reap_dead_workers(folder)  # what a replay that was killed had in hand is meant, too
    meant = rows_to_replay(wanted, include_held=include_held)
    ids = meant.ids
    is_short = _say_what_cannot_go(wanted, ids)
    if meant.along:
        echo(f"{plural(meant.along, 'raw file')} that they wait for included: a result goes after its page.", err=True)
    if dry_run or not ids:
        echo(f"{plural(len(ids), 'row')} to replay ({wanted.in_words()})." if ids else "Nothing to replay.")
        if not (ids or wanted.ids):
            _say_what_is_held(wanted)
        sys.exit(1 if is_short else 0)
    progress = Progress("rows")
    done = send(settings, ids, wanted, lambda ended, total: progress.show(ended, total, 0))
    progress.close()
    echo(f"{done.delivered:,} of {plural(done.total, 'row')} delivered.")
    if not done.is_complete:
        left = ", ".join(
            f"{n:,} {state}" for state, n in sorted(done.states.items()) if state not in {"delivered", "superseded"}
        )
        echo(f"Left: {left}. `lienworker outbox status` says why; nothing is lost.", err=True)
    sys.exit(0 if done.is_complete and not is_short else 1)


def _say_what_cannot_go(wanted: RowFilter, ids: list[int]) -> bool:
    """Rows that were named and will not be delivered; True where there are any."""
    from lienworker.operator.rows import why_not_sent

    troubles = [words for row_id in wanted.ids if row_id not in ids and (words := why_not_sent(row_id))]
    for words in troubles:
        echo(words, err=True)
    return bool(troubles)


def _say_what_is_held(wanted: RowFilter) -> None:
    from lienworker.operator.rows import find_ids

    for reason in ("operator", "drift", "restored"):
        if n := len(find_ids(wanted, ("held",), (reason,))):
            held, them = ("row is", "it") if n == 1 else ("rows are", "them")
            echo(f"{n:,} {held} held ({reason}); `--include-held` sends {them}.")


def _act(verb: str, yes: bool, options: dict[str, Any]) -> None:
    """Says how many rows are meant, asks, does it, says how many it was."""
    from lienworker.operator import rows as rows_by_hand

    wanted = _filter_of(options)
    if wanted.is_empty:
        raise click.UsageError(
            f"Say which rows to {verb}: by --id, --reason, --topic, --county, --fingerprint or --since."
        )
    settings = load_settings()
    open_folder(settings)
    ids = rows_by_hand.ids_for(verb, wanted)
    if not ids:
        echo("No such rows.")
    if verb == "release" and settings.mode != "ondemand":
        echo("This is standalone: what is released stays held until `lienworker outbox replay`.", err=True)
    if not ids:
        return
    if not yes:
        confirm(f"{verb.capitalize()} {plural(len(ids), 'row')} ({wanted.in_words()})?")
    actions = {
        "hold": rows_by_hand.hold_rows,
        "release": rows_by_hand.release_rows,
        "discard": rows_by_hand.discard_rows,
    }
    echo(f"{verb.capitalize()}: {plural(actions[verb](ids, wanted.in_words()), 'row')}.")


_yes = click.option("--yes", is_flag=True, help="Do not ask.")


@outbox.command(epilog="Example: lienworker outbox hold --county Dixie")
@_filters
@_yes
def hold(yes: bool, **options: Any) -> None:
    """Keep waiting rows from being sent until they are released."""
    _act("hold", yes, options)


@outbox.command(epilog="Example: lienworker outbox release --reason standalone")
@_filters
@_yes
def release(yes: bool, **options: Any) -> None:
    """Let held rows go."""
    _act("release", yes, options)


@outbox.command(epilog="Example: lienworker outbox discard --id 1234")
@_filters
@_yes
def discard(yes: bool, **options: Any) -> None:
    """Give rows up: they will not be sent. The results themselves stay."""
    _act("discard", yes, options)
