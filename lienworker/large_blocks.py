"""Return large blocks of memory to the system as soon as they are freed.

glibc maps a large block on its own until the first one is freed. From then on it takes blocks up to that size from its
heap, one heap per thread, and keeps what is freed there. After a few pages of 16 MB a worker keeps a hundred megabytes
that nothing uses.
"""

from __future__ import annotations

import ctypes

#: Blocks of at least this many bytes are mapped on their own; an ordinary page and what is made of it are smaller.
_LARGE = 1_000_000
#: Free bytes that a heap keeps at its end, for the next ordinary page.
_KEPT = 8_000_000
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def return_large_blocks() -> None:
    """Set this for the life of the process. Other C libraries have no such call, and need none."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE)
        mallopt(_M_TRIM_THRESHOLD, _KEPT)


def return_free_memory() -> None:
    """Return all that is free now, small blocks included. For a process that will wait; costs about a millisecond."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
