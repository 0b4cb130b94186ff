"""What a process has freed, others can use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_STORY = """
import threading
from pathlib import Path
from lienworker.large_blocks import return_large_blocks

def resident():
    return int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0])

def work():
    del [bytearray(16_000_000)][0]  # from now on the C library would take such blocks from its heap
    before = resident()
    held = [(bytearray(10_000_000), bytes(1000)) for _ in range(10)]
    small = [little for _, little in held]
    del held
    print(resident() - before)

{call}
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


def kept_kb(call: str) -> int:
    story = [sys.executable, "-c", _STORY.format(call=call)]
    return int(subprocess.run(story, capture_output=True, text=True, check=True, timeout=60).stdout)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell how much memory is in use")
def test_large_blocks_go_back_to_the_system_when_they_are_freed() -> None:
    assert kept_kb("return_large_blocks()") < 5_000
