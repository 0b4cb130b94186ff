"""Everything that can go wrong, split where behaviour splits.

LienworkerError
├── OperatorError          the operator's fault: one sentence, exit code 2
│   ├── SettingsError      a wrong setting; names the variable
│   ├── InputError         a file, line or argument that cannot be used
│   ├── BusyError          another process holds the data folder; the same again later does it: exit code 75
│   └── RedisAwayError     no Redis answers where one should; the same: exit code 75
├── PageError              the row's fault: this page or this address; has a reason and says if a retry makes sense
│   └── HeavyPageError     too much to be parsed without limits; `too_complex` for whoever has none to offer
├── StoreError             the local storage's fault: full, not to be read or newer than this program; exit code 3
│   └── DamageError        the database is broken, and only a repair or a backup helps: exit code 4
├── ShortageError          nobody's fault: the machine lacks files or memory for now; also an OSError
└── RefusedError           nobody's fault: the disk takes no page for now; also an OSError
"""

from __future__ import annotations

import errno

#: What a disk says when it is full, read-only or failing.
STORAGE_FAULTS = {errno.EIO, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENXIO, errno.ESTALE}


class LienworkerError(Exception):
    """Base of all errors that lienworker raises on purpose."""


class OperatorError(LienworkerError):
    """Something that the person at the terminal can put right. Shown as one sentence, never as a trace."""


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
    """A page (or its address) that gives no result.

    `reason` is a stable word that people filter and retry by; `detail` is the sentence for them.
    """

    def __init__(self, reason: str, detail: str, *, retryable: bool = False) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.retryable = retryable


class HeavyPageError(PageError):
    """A page that may be all right, but has to be parsed where it can do no harm: in a process with limits."""

    def __init__(self, detail: str) -> None:
        super().__init__("too_complex", detail)


class StoreError(LienworkerError):
    """The local storage cannot be used as it is."""


class DamageError(StoreError):
    """The database itself is broken: trying again makes nothing better, and may harm what can still be saved."""


class ShortageError(OSError, LienworkerError):
    """The machine lacks something for the moment. Whatever was to be done is to be done later, as it is."""


class RefusedError(OSError, LienworkerError):
    """The disk did not take a page: nothing more is to be fetched until it would."""

    def __init__(self, number: int, words: str, place: str, size: int) -> None:
        super().__init__(number, words)
        self.place = place
        self.size = size

    @classmethod
    def because(cls, problem: OSError, place: str, size: int) -> RefusedError:
        """`place` as seen from the data folder, `size` of what was to be stored there."""
        return cls(problem.errno or 0, problem.strerror or str(problem), place, size)
