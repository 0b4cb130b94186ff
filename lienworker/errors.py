"""Everything that can go wrong, split where behavior splits.

LienworkerError
├── OperatorError          the operator's fault: one sentence, exit code 2
│   ├── SettingsError      a wrong setting; names the variable
│   ├── InputError         a file, line or argument that cannot be used
│   ├── BusyError          another process holds the data folder; the same again later does it: exit code 75
│   └── RedisAwayError     no Redis answers where one should; the same: exit code 75
├── PageError              the row's fault: this page or this address; has a reason and says if a retry makes sense
│   └── HeavyPageError     too much to parse without limits; `too_complex` where there is no process with limits
├── StoreError             the local storage's fault: full, unreadable or newer than this program; exit code 3
│   └── DamageError        the database is broken, and only a repair or a backup helps: exit code 4
├── ShortageError          nobody's fault: the machine lacks files or memory for now; also an OSError
└── RefusedError           nobody's fault: the disk refuses pages for now; also an OSError
"""

from __future__ import annotations

import errno
from typing import TypeVar

E = TypeVar("E", bound=BaseException)
#: The errors of a disk that is full, read-only or failing.
STORAGE_FAULTS = {errno.EIO, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENXIO, errno.ESTALE}


class LienworkerError(Exception):
    """Base of all errors that lienworker raises on purpose."""


class OperatorError(LienworkerError):
    """Something that the person at the terminal can fix. Shown as one sentence, never as a stack trace."""


class SettingsError(OperatorError):
    """A setting with a value that cannot be used."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name = name


class InputError(OperatorError):
    """Input that cannot be used at all (a single bad row is a reject, not an error)."""


class BusyError(OperatorError):
    """Another process holds what we need."""


class RedisAwayError(OperatorError):
    """No Redis answers at its address, or it refuses us."""


class PageError(LienworkerError):
    """A page (or its address) that yields no result.

    `reason` is a stable keyword that people filter and retry by; `detail` is the sentence for them.
    """

    def __init__(self, reason: str, detail: str, *, retryable: bool = False) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.retryable = retryable


class HeavyPageError(PageError):
    """A page that may be fine, but has to be parsed where it can do no harm: in a process with limits."""

    def __init__(self, detail: str) -> None:
        super().__init__("too_complex", detail)


class StoreError(LienworkerError):
    """The local storage cannot be used as it is."""


class DamageError(StoreError):
    """The database itself is broken: trying again does not help, and may harm what can still be saved."""


class ShortageError(OSError, LienworkerError):
    """The machine lacks something for the moment. What was to be done is done later, unchanged."""


class RefusedError(OSError, LienworkerError):
    """The disk refused a page: nothing more is fetched until it accepts one."""

    def __init__(self, number: int, words: str, place: str, size: int) -> None:
        super().__init__(number, words)
        self.place = place
        self.size = size

    @classmethod
    def because(cls, problem: OSError, place: str, size: int) -> RefusedError:
        """Make the error; `place` is relative to the data folder, `size` is that of what was to be stored there."""
        return cls(problem.errno or 0, problem.strerror or str(problem), place, size)


def as_value(error: E) -> E:
    """Return the error without the frames that it passed through, which hold whole pages; for an error to be kept.

    A frame that keeps such an error is also part of a cycle, and the garbage collector may take minutes to find it.
    """
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error
