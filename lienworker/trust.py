"""Whose files we use: our own and root's, if nobody else can write them.

A `.env` names the folder whose Python we run, and a data folder says what was fetched from where and what is to be
sent. In a shared folder anybody may have put either. So what is not ours is refused, with the command that fixes it.
Only `stat` and `chmod` by path happen here: nothing may open the database but SQLite (a closed descriptor drops its
locks).
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import shlex
import stat
from pathlib import Path

from lienworker.errors import OperatorError

_OTHERS, _GROUP = 0o002, 0o020
_ROOT = 0


def distrust(path: Path) -> str | None:
    """Return why a file or folder is not used, and what to do about it; None where it is ours, or does not exist.

    The folders above it count, too: a user who may rename one of them can replace it.
    """
    try:
        target = path.resolve()
        return (
            distrust_owner(path, path.lstat())
            or distrust_stat(target, target.stat())
            or next(filter(None, (_distrust_parent(parent, path) for parent in target.parents)), None)
        )
    except FileNotFoundError:
        return None


def distrust_stat(path: Path, about: os.stat_result) -> str | None:
    """Return why an open file is not used, from its `stat`; the folders above it are not checked."""
    return distrust_owner(path, about) or _distrust_mode(path, about, "it")


def distrust_owner(path: Path, about: os.stat_result) -> str | None:
    if about.st_uid in (os.geteuid(), _ROOT):
        return None
    owner, me = _user_name(about.st_uid), _user_name(os.geteuid())
    option = "-hR" if stat.S_ISDIR(about.st_mode) else "-h"
    as_owner = f"Run this as its owner (sudo -u {owner} …), or if" if os.geteuid() == _ROOT else "If"
    return (
        f"{path} belongs to {owner}, and you are {me}: what another user wrote is not used. {as_owner} you trust what "
        f"is in it: {_as_root(_ROOT)}chown {option} {me} {shlex.quote(str(path))}"
    )


def refuse_untrusted(path: Path) -> None:
    """Raise OperatorError for a file or folder that must not be used."""
    words = distrust(path)
    if words:
        raise OperatorError(words)


def trust_data_folder(root: Path) -> None:
    """Refuse a data folder, or a database in it, that is not ours; remove the access of others to ours.

    The database holds the passwords of proxies. One that an early version or a copy left readable is closed here.
    """
    refuse_untrusted(root)
    for name in ("lienworker.db", "lienworker.db-wal", "lienworker.db-shm"):
        with contextlib.suppress(FileNotFoundError):
            _tighten(root / name)


def _tighten(path: Path) -> None:
    about = path.stat()
    words = distrust_owner(path, path.lstat()) or distrust_owner(path, about)
    if words:
        raise OperatorError(words)
    if about.st_uid == os.geteuid() and about.st_mode & 0o077:
        path.chmod(0o600)
    elif words := _distrust_mode(path, about, "it"):
        raise OperatorError(words)


def make_private_folder(place: Path) -> None:
    """Create a folder that only we can enter. Refuse a link, or a folder that another user made."""
    with contextlib.suppress(FileExistsError):  # even for a dangling link, which is refused below
        place.mkdir(mode=0o700, parents=True)
    refuse_foreign_folder(place)
    if stat.S_IMODE(place.lstat().st_mode) != 0o700:
        place.chmod(0o700)


def refuse_foreign_folder(place: Path) -> None:
    """Raise OperatorError unless this folder is ours: in /tmp anybody may have created something under its name."""
    about = place.lstat()  # not `stat`: another user's link may lead to a folder of ours
    if stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid():
        return
    kind = "belongs to another user" if stat.S_ISDIR(about.st_mode) else "is not a folder"
    raise OperatorError(
        f"{place} {kind}, and the private Redis has its socket there. Remove it ({_as_root(about.st_uid)}rm -r "
        f"{shlex.quote(str(place))}), or give the data folder a shorter path, or set REDIS_URL."
    )


def _distrust_parent(parent: Path, path: Path) -> str | None:
    """Return why a folder above is a danger: its owner can rename what is in it, whatever its mode.

    In one with the sticky bit, such as /tmp, nobody else can.
    """
    about = parent.stat()
    if about.st_uid not in (os.geteuid(), _ROOT):
        owner, me = _user_name(about.st_uid), _user_name(os.geteuid())
        return (
            f"{parent} belongs to {owner}, who can put something else in the place of {path}, and you are {me}, so it "
            f"is not used. Use your own folder, or if {owner} is to have no say here: "
            f"{_as_root(_ROOT)}chown {me} {shlex.quote(str(parent))}"
        )
    return None if about.st_mode & stat.S_ISVTX else _distrust_mode(parent, about, str(path))


def _distrust_mode(path: Path, about: os.stat_result, what: str) -> str | None:
    who = "everybody" if about.st_mode & _OTHERS else None
    if about.st_mode & _GROUP and not who and not is_private_group(about.st_gid):
        who = f"the group {_group_name(about.st_gid)}"
    if not who:
        return None
    drop = "".join(letter for letter, bit in (("g", _GROUP), ("o", _OTHERS)) if about.st_mode & bit)
    return (
        f"{path} can be written by {who}, so {what} may be another user's work, and is not used. Look at it, then: "
        f"{_as_root(about.st_uid)}chmod {drop}-w {shlex.quote(str(path))}"
    )


def is_private_group(gid: int) -> bool:
    """Return whether only we (and root) are in a group: the one of our own name, root's, or one without a name.

    The last is a container's: an id without a name that the volume was given for its one user (`fsGroup`). A group with
    another name is not considered private even if it looks empty: a directory service need not tell who is in it.
    """
    if gid == _ROOT:
        return True
    try:
        group = grp.getgrgid(gid)
    except KeyError:
        return True
    me = _user_name(os.geteuid())
    others = {user.pw_name for user in pwd.getpwall() if user.pw_gid == gid} | set(group.gr_mem)
    return group.gr_name == me and others <= {me}


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def _as_root(owner: int) -> str:
    """Return `sudo ` where only another user may do it."""
    return "" if os.geteuid() in (_ROOT, owner) else "sudo "
