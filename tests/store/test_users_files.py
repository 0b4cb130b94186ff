"""Files that the user names: whole or not at all; what is no file is written to, and stays what it is."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from lienworker.store.stale_files import users_file


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text("before")
    with pytest.raises(TypeError), users_file(path) as out:
        out.writelines([b"half", None])
    assert path.read_text() == "before"
    with users_file(path) as out:
        out.write(b"whole")
        assert path.read_text() == "before"
    assert path.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [path]


def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    """Root's `--output /dev/null` would have put a file in the place of the device."""
    pipe, heard = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text()))
    reader.start()
    with users_file(pipe) as out:
        out.write(b"straight through")
    reader.join(60)
    assert heard == ["straight through"]
    assert pipe.is_fifo()


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    link.symlink_to(real)
    with users_file(link) as out:
        out.write(b"x")
    assert link.is_symlink()
    assert real.read_text() == "x"
