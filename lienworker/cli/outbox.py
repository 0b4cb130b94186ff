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
    load_settings,
    open_folder,
    plural,
    print_rows,
    shown,
    since_option,
    with_options,
)
from lienworker.cli.output import confirm, echo, print_json
from lienworker.cli.progress import Progress
from lienworker.text_safety import redacted

if TYPE_CHECKING:
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
        age = f"  (oldest waits {seconds(lane['oldest_seconds'])})" if lane["oldest_seconds"] is not None else ""
        yield f"{lane['topic']:>15}  {states}{age}"


def _pause_lines(pauses: list[dict[str, Any]]) -> list[str]:
    return [
        f"Uploads are paused since {row['since']} ({row['words']}); `lienworker resume --upload` goes on."
        for row in pauses
    ]


def _group_lines(group: dict[str, Any]) -> Iterator[str]:
    """One group: how many of what and why, since when, when they are tried again, and how to send them now."""
    yield f"{plural(group['n'], 'row')} {group['state']}: {group['topic']}, {group['reason'] or 'no reason'}"
    if group["sample"]:
        yield f"  error     {shown(group['sample'], 300)}"
    yield f"  seen      {group['first_at']} to {group['last_at']}"
    if group["next_try"]:
        yield f"  next try  {group['next_try']}"
    if group["command"]:
        yield f"  send now  {group['command']}"


def _breaker_lines(breakers: list[dict[str, Any]]) -> list[str]:
    now = int(datetime.now(UTC).timestamp() * 1000)
    return [
        f"The Gateway's {row['endpoint']}: {row['words']} (since {row['since']}); "
        f"next try in {max(0, row['retry_at'] - now) // 1000} s; nothing is lost."
        for row in breakers
        if row["is_open"]
    ]


@outbox.command("list", epilog="Example: lienworker outbox list --state parked --reason gateway_refused")
@click.option("--state", type=click.Choice(_STATES), help="Only rows in this state.")
@_filters
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1), help="How many at most.")
@json_option
def list_(state: str | None, limit: int, as_json: bool, **options: Any) -> None:
    """List rows, oldest first."""
    from lienworker.db.clock import rfc3339
    from lienworker.operator.rows import find_rows

    open_folder(load_settings())
    found = find_rows(_filter_of(options, state), limit + 1)
    rows = [{**row, "created_at": rfc3339(row["created_at"])} for row in found[:limit]]
    print_rows(rows, _COLUMNS, as_json=as_json, nothing="No such rows.")
    if len(found) > limit:
        echo(f"The oldest {plural(limit, 'row')}; there are more: --limit shows them.", err=True)


@outbox.command(epilog="Example: lienworker outbox show 1234")
@click.argument("row_id", type=int, metavar="ID")
@json_option
def show(row_id: int, as_json: bool) -> None:
    """Everything about one row: whose it is, its raw file, what it would send, attempts, each error."""
    from lienworker.queries.row import row_story

    folder = open_folder(load_settings())
    story = row_story(row_id)
    if story is None:
        raise click.ClickException(f"There is no row {row_id}. `lienworker outbox list` shows what there is.")
    if story["raw_file"]:
        story["raw_file"] = str(folder.root / story["raw_file"])
    if as_json:
        print_json(story)
        return
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
