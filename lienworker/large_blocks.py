"""Large blocks of memory go back to the system as soon as they are freed.

The C library takes them from the system one by one until the first one is freed. From then on it takes blocks up to
that size from its heap, one heap for each thread, and keeps what is freed there. After a few pages of 16 MB a worker
keeps a hundred megabytes that nobody uses.
"""

from __future__ import annotations

import ctypes

#: From so many bytes on a block is the system's; an ordinary page and all that is made of it are smaller.
_LARGE = 1_000_000
#: What a heap keeps at its end, bytes: the next ordinary page is made of it.
_KEPT = 8_000_000
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def return_large_blocks() -> None:
    """For the life of this process. Only glibc can be asked, and only glibc needs to be."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE)
        mallopt(_M_TRIM_THRESHOLD, _KEPT)
