"""The most memory that a process had.

`ru_maxrss` begins at what the parent had when it forked, also after an `exec`, and a process of pytest may be large.
The kernel's high-water mark of the program itself begins at nothing.

    python -m tests.harness.memory FILE ARGUMENTS…      runs `lienworker ARGUMENTS…`, and writes the mark into FILE
"""

from __future__ import annotations

import atexit
import resource
import runpy
import sys
from pathlib import Path


def peak_kb() -> int:
    """Return the most memory that this program has had so far; as good as the system tells."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(status.partition("VmHWM:")[2].split()[0])


def main() -> None:
    file = Path(sys.argv.pop(1))
    atexit.register(lambda: file.write_text(str(peak_kb())))
    runpy.run_module("lienworker", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
