"""The data folder: safe names, its worker's name, its locks."""

from __future__ import annotations

import os
import shutil
import stat
import string
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lienworker.data_folder import DataFolder, one_at_a_time, safe_part, try_lock
from lienworker.errors import StoreError
from lienworker.repair.quarantine import put_into_quarantine
from tests.harness.store_rows import race

_RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}
_SPELLINGS = [str.upper, str.lower, str.title]
#: Texts that are alike in all that a careless file name loses: case, separators, blanks, length.
_alike = st.text(alphabet="aAbB ._-/\\~1é\0", max_size=6)
_any_text = st.one_of(
    st.text(max_size=400),
    st.text(alphabet=string.printable, max_size=100),
    _alike,
    st.sampled_from([name + tail for name in _RESERVED for tail in ("", ".txt", ".", " ")]).map(str.upper),
    st.text(st.characters(categories=["Cs", "Lu"]), max_size=5),
)


@given(_any_text, st.sampled_from(_SPELLINGS))
@example("../../etc/passwd", str.upper)
@example("A" * 300, str.upper)
@example("", str.lower)
@example("..", str.upper)
@example("CON", str.upper)
@example("aux.b", str.lower)
def test_any_text_becomes_a_harmless_file_name(text: str, spelling: object) -> None:
    name = safe_part(text, spelling)  # type: ignore[arg-type]

    assert 0 < len(name) <= 80
    assert name.isascii()
    assert name.isprintable()
    assert not set(name) & set('/\\:*?"<>|')
    assert name[0] not in ".- "
    assert name[-1] not in ". "
    assert name.split(".")[0].strip().lower() not in _RESERVED


@given(st.one_of(st.tuples(_alike, _alike), st.tuples(_any_text, _any_text)), st.sampled_from(_SPELLINGS))
@example(("abc", "ABC"), str.upper)
@example(("Abc", "aBC"), str.title)
@example(("a/b", "a_b"), str.lower)
@example(("a b", "a  b"), str.lower)
@example(("A" * 299, "A" * 300), str.upper)
def test_different_texts_get_different_names_also_where_case_does_not_count(
    texts: tuple[str, str], spelling: object
) -> None:
    one, other = texts
    names = [safe_part(text, spelling).casefold() for text in texts]  # type: ignore[arg-type]

    assert (names[0] == names[1]) == (one == other)


@given(_any_text, st.sampled_from(_SPELLINGS))
def test_a_made_name_cannot_be_the_name_of_another_text(text: str, spelling: object) -> None:
    name = safe_part(text, spelling)  # type: ignore[arg-type]
    if name != text:
        assert safe_part(name, spelling).casefold() != name.casefold()  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "spelling"), [("12-34-56.001", str.upper), ("p-0a1b", str.lower), ("Lee", str.title)])
def test_a_plain_text_stays_as_people_know_it(text: str, spelling: object) -> None:
    assert safe_part(text, spelling) == text  # type: ignore[arg-type]


def test_the_folder_is_private_to_its_owner(folder: DataFolder) -> None:
    places = [folder.root, folder.raw, folder.pending, folder.archive, folder.holders, folder.redis]
    assert {stat.S_IMODE(place.stat().st_mode) for place in places} == {0o700}


def test_a_folder_that_cannot_be_made_is_a_store_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"The data folder .*file/data cannot be made"):
        DataFolder(tmp_path / "file" / "data").create()


def test_a_long_folder_gets_a_short_socket_path_of_its_own(tmp_path: Path) -> None:
    near, far = DataFolder(Path("/d")), DataFolder(tmp_path / ("x" * 100))
    other = DataFolder(tmp_path / ("y" * 100))

    assert near.redis_socket == Path("/d/redis/redis.sock")
    assert len(os.fsencode(far.redis_socket)) <= 100
    assert far.redis_socket.parent != other.redis_socket.parent


def test_the_worker_is_named_once(folder: DataFolder) -> None:
    name = folder.worker_id()

    assert name
    assert DataFolder(folder.root).worker_id() == name
    assert sorted(path.name for path in folder.root.glob("worker_id*")) == ["worker_id"]


def test_processes_that_name_the_worker_at_once_agree(tmp_path: Path) -> None:
    places = [DataFolder(tmp_path / str(k)).create() for k in range(20)]
    answers = race(
        5,
        tmp_path,
        "from lienworker.data_folder import DataFolder",
        "[at(k * 0.02, lambda: DataFolder(root / str(k)).worker_id()) for k in range(20)]",
    )

    assert answers == [[place.worker_id() for place in places]] * 5
    assert {path.name for path in tmp_path.glob("*/worker_id*")} == {"worker_id"}


def test_threads_that_name_the_worker_at_once_agree(folder: DataFolder) -> None:
    names: list[object] = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            (folder.root / "worker_id").unlink(missing_ok=True)
            barrier = threading.Barrier(6)

            def name(barrier: threading.Barrier = barrier) -> None:
                barrier.wait(60)
                try:
                    names.append(folder.worker_id())
                except OSError as problem:
                    names.append(problem)

            threads = [threading.Thread(target=name) for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            assert len(set(map(str, names))) == 1, names
            names.clear()
    finally:
        sys.setswitchinterval(interval)


def test_an_empty_name_left_by_a_power_loss_is_made_again(folder: DataFolder) -> None:
    (folder.root / "worker_id").write_text("")

    assert folder.worker_id() != ""


def test_a_lock_is_its_owners_only_so_that_nobody_else_can_hold_it(folder: DataFolder) -> None:
    """Who may read a file may lock it."""
    older = folder.root / "open.lock"
    older.touch(mode=0o644)
    lock = try_lock(folder.lock)
    assert lock is not None
    lock.close()
    with one_at_a_time(older):
        assert [stat.S_IMODE(path.stat().st_mode) for path in (folder.lock, older)] == [0o600, 0o600]


def test_folders_are_private_from_the_top_down(folder: DataFolder) -> None:
    folder.raw.joinpath("x").write_text("x")
    place = put_into_quarantine(folder, folder.raw / "x", "20261116")
    places = [parent for parent in place.parents if folder.root in parent.parents]
    assert [stat.S_IMODE(each.stat().st_mode) for each in places] == [0o700] * 3


def test_what_lies_on_another_file_system_is_copied_into_quarantine_and_then_goes(folder: DataFolder) -> None:
    elsewhere = Path(tempfile.mkdtemp(dir="/dev/shm")) if Path("/dev/shm").is_dir() else folder.root
    if elsewhere.stat().st_dev == folder.root.stat().st_dev:
        pytest.skip("there is no second file system here")
    try:
        (elsewhere / "page.html.gz").write_bytes(b"page")
        shutil.rmtree(folder.raw)
        folder.raw.symlink_to(elsewhere)
        place = put_into_quarantine(folder, folder.raw / "page.html.gz", "20261116")
        assert place == folder.quarantine / "20261116" / "raw" / "page.html.gz"
        assert place.read_bytes() == b"page"
        assert [path.name for path in place.parent.iterdir()] == ["page.html.gz"], "nothing is left aside"
        assert list(elsewhere.iterdir()) == []
    finally:
        shutil.rmtree(elsewhere)


def test_a_lock_is_held_by_one_and_free_when_that_one_lets_go(folder: DataFolder) -> None:
    first = try_lock(folder.lock)
    assert first is not None
    assert try_lock(folder.lock) is None
    first.close()
    second = try_lock(folder.lock)
    assert second is not None
    second.close()
