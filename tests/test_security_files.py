"""Files that somebody else may have put in our way: none of them is used, and the sentence says what to do."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from lienworker import trust
from lienworker.broker import redis_url
from lienworker.data_folder import DataFolder
from lienworker.db.database import open_store
from lienworker.errors import OperatorError, SettingsError
from lienworker.platforms import registry_with
from lienworker.settings import Settings
from lienworker.stack.redis_server import command
from lienworker.trust import distrust, make_private_folder
from tests.harness.node import Node, wait_until
from tests.web.monitor import Monitor, free_port

NOBODY = 65534
PLATFORM = "import pathlib\npathlib.Path(__file__).with_suffix('.ran').touch()\n"

only_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files to another user")


def follow(words: str) -> None:
    """Does what a sentence says at its end."""
    found = re.search(r": ((?:sudo )?ch(?:mod|own) .+)$", words)
    assert found, words
    subprocess.run(shlex.split(found[1].removeprefix("sudo ")), check=True)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def open_to_others(path: Path) -> None:
    path.chmod(stat.S_IMODE(path.stat().st_mode) | 0o002)


def give_away(path: Path) -> None:
    os.lchown(path, NOBODY, NOBODY)


FAULTS = [open_to_others, pytest.param(give_away, marks=only_root)]


@pytest.mark.parametrize("spoil", FAULTS)
def test_a_planted_env_file_is_not_read(here: Path, spoil) -> None:
    (here / ".env").write_text("LIENWORKER_HOST_DELAY=77\n")
    assert Settings.from_environment().host_delay == 77
    spoil(here / ".env")
    with pytest.raises(SettingsError, match=r"\.env") as caught:
        Settings.from_environment()
    follow(str(caught.value))
    assert Settings.from_environment().host_delay == 77


@only_root
def test_a_planted_link_to_a_file_of_ours_is_not_followed(here: Path) -> None:
    (here / "mine").write_text("LIENWORKER_HOST_DELAY=77\n")
    (here / ".env").symlink_to("mine")
    assert Settings.from_environment().host_delay == 77
    give_away(here / ".env")
    with pytest.raises(SettingsError, match="belongs to"):
        Settings.from_environment()


def test_an_env_file_in_a_folder_where_others_may_exchange_it_is_not_read(here: Path) -> None:
    (here / ".env").write_text("LIENWORKER_HOST_DELAY=77\n")
    here.chmod(0o777)
    with pytest.raises(SettingsError, match="can be written by everybody") as caught:
        Settings.from_environment()
    here.chmod(0o1777)  # as /tmp: what is ours there stays ours
    assert Settings.from_environment().host_delay == 77
    here.chmod(0o777)
    follow(str(caught.value))
    assert Settings.from_environment().host_delay == 77


def test_a_missing_env_file_is_no_fault_wherever_we_are(here: Path) -> None:
    here.chmod(0o777)
    assert Settings.from_environment().host_delay == 1.0


@pytest.mark.parametrize("spoil", FAULTS)
@pytest.mark.parametrize("what", ["folder", "module", "cache", "compiled", "definition"])
def test_no_platform_runs_that_others_can_write(tmp_path: Path, spoil, what: str) -> None:
    folder = tmp_path / "platforms"
    folder.mkdir()
    module, definition = folder / "county.py", folder / "other.toml"
    module.write_text(PLATFORM)
    definition.write_text("not = 'a definition'\n")
    cache = folder / "__pycache__"
    cache.mkdir()
    compiled = cache / f"county.{sys.implementation.cache_tag}.pyc"
    compiled.touch()
    place = {"folder": folder, "module": module, "cache": cache, "compiled": compiled, "definition": definition}[what]
    spoil(place)
    (words,) = [words for words in registry_with(folder).broken if f"{place} " in words and "not used" in words]
    assert (folder / "county.ran").exists() == (what == "definition")
    follow(words)
    registry_with(folder)
    assert (folder / "county.ran").exists()


@pytest.mark.parametrize("spoil", FAULTS)
def test_a_planted_data_folder_is_not_used(tmp_path: Path, spoil) -> None:
    root = tmp_path / "data"
    root.mkdir()
    spoil(root)
    with pytest.raises(OperatorError, match=re.escape(str(root))) as caught:
        open_store(root)
    assert list(root.iterdir()) == []
    follow(str(caught.value))
    open_store(root)


@only_root
@pytest.mark.parametrize("name", ["lienworker.db", "lienworker.db-wal", "lienworker.db-shm"])
def test_a_planted_database_is_not_used(tmp_path: Path, name: str) -> None:
    root = tmp_path / "data"
    root.mkdir(mode=0o700)
    (root / name).touch()
    give_away(root / name)
    with pytest.raises(OperatorError, match="belongs to"):
        open_store(root)


def test_a_data_folder_below_one_that_all_may_write_is_not_used(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    (shared / "data").mkdir(parents=True)
    shared.chmod(0o777)
    with pytest.raises(OperatorError, match=re.escape(f"{shared} can be written by everybody")):
        open_store(shared / "data")


@only_root
@pytest.mark.parametrize("mode", [0o755, 0o1777])
def test_a_data_folder_below_one_of_another_user_is_not_used(tmp_path: Path, mode: int) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)  # neither keeps its owner from putting another folder in the place of ours
    root = shared / "data"
    open_store(root)
    give_away(shared)
    with pytest.raises(OperatorError, match=re.escape(f"{shared} belongs to nobody")) as caught:
        open_store(root)
    follow(str(caught.value))
    shared.chmod(0o755)
    open_store(root)


@pytest.mark.parametrize("mode", [0o644, 0o664, 0o666])
def test_a_database_that_was_left_open_is_closed_by_its_path(tmp_path: Path, node: Node, mode: int) -> None:
    assert node.cli("init").returncode == 0
    node.data.chmod(0o755)
    database = node.data / "lienworker.db"
    database.chmod(mode)
    assert node.cli("status").returncode == 0
    assert stat.S_IMODE(database.stat().st_mode) == 0o600


def test_a_command_says_it_in_one_sentence(node: Node) -> None:
    node.data.mkdir()
    node.data.chmod(0o777)
    done = node.cli("init")
    assert done.returncode == 2
    assert "can be written by everybody" in done.stderr
    assert "chmod" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def private_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "is_private_group", lambda gid: True)


@pytest.mark.usefixtures("private_group")
def test_a_private_groups_0664_is_fine(here: Path) -> None:
    (here / ".env").write_text("LIENWORKER_HOST_DELAY=77\n")
    (here / ".env").chmod(0o664)
    here.chmod(0o775)
    assert Settings.from_environment().host_delay == 77


@only_root
def test_another_groups_0664_is_not(here: Path) -> None:
    (here / ".env").write_text("LIENWORKER_HOST_DELAY=77\n")
    os.chown(here / ".env", 0, 1)
    (here / ".env").chmod(0o664)
    with pytest.raises(SettingsError, match="can be written by the group") as caught:
        Settings.from_environment()
    follow(str(caught.value))
    assert Settings.from_environment().host_delay == 77


def test_a_group_is_private_if_it_is_ours_alone_or_nobody_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Group:
        def __init__(self, name: str, *members: str) -> None:
            self.gr_name, self.gr_mem = name, list(members)

    class User:
        def __init__(self, name: str, gid: int) -> None:
            self.pw_name, self.pw_gid = name, gid

    groups = {100: Group("me"), 101: Group("me", "you"), 102: Group("staff"), 103: Group("me")}
    monkeypatch.setattr(trust.grp, "getgrgid", lambda gid: groups[gid])
    monkeypatch.setattr(trust.pwd, "getpwall", lambda: [User("me", 100), User("you", 103)])
    monkeypatch.setattr(trust, "_user_name", lambda uid: "me")
    assert [gid for gid in (0, 100, 101, 102, 103, 10001) if trust.is_private_group(gid)] == [0, 100, 10001]


def test_no_module_in_the_folder_where_we_stand_is_run(node: Node) -> None:
    here = node.data.parent
    planted = "import pathlib\npathlib.Path(__file__).with_suffix('.ran').touch()\nraise ImportError\n"
    for name in ("aiohttp", "click", "dramatiq", "lienworker", "parsel", "peewee", "periodiq", "redis"):
        (here / f"{name}.py").write_text(planted)
    port = free_port()
    # As it is typed: a module that Python is told to run has the folder on its path, whatever we do.
    line = [Path(sys.executable).with_name("lienworker"), "up"]
    up = subprocess.Popen(
        line, env=node.environment(LIENWORKER_WEB_PORT=str(port)), cwd=here, stderr=subprocess.PIPE, text=True
    )
    try:
        wait_until(lambda: any(here.glob("*.ran")) or (node.is_up() and Monitor(port).is_there()), what="it to be up")
    finally:
        up.terminate()
        _, said = up.communicate(timeout=60)
    assert not list(here.glob("*.ran"))
    assert "Traceback" not in said


def long_folder(tmp_path: Path) -> DataFolder:
    folder = DataFolder(tmp_path / ("x" * 100) / "data")
    make_private_folder(folder.root.parent)
    return folder.create()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "t"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def test_the_sockets_folder_is_no_link(tmp_path: Path, temporary: Path) -> None:
    folder = long_folder(tmp_path)
    place = folder.redis_socket.parent
    assert place.parent == temporary
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place.symlink_to(elsewhere)
    with pytest.raises(OperatorError, match="is not a folder"):
        command(folder)
    with pytest.raises(OperatorError, match="is not a folder"):  # nor does a client go there
        redis_url(Settings(data_dir=folder.root))
    assert stat.S_IMODE(elsewhere.stat().st_mode) != 0o700


def test_a_dangling_link_makes_nothing_elsewhere(tmp_path: Path, temporary: Path) -> None:
    folder = long_folder(tmp_path)
    folder.redis_socket.parent.symlink_to(tmp_path / "nowhere")
    with pytest.raises(OperatorError, match="is not a folder"):
        command(folder)
    assert not (tmp_path / "nowhere").exists()


@only_root
def test_the_sockets_folder_is_not_another_users(tmp_path: Path, temporary: Path) -> None:
    folder = long_folder(tmp_path)
    folder.redis_socket.parent.mkdir(mode=0o700)
    give_away(folder.redis_socket.parent)
    with pytest.raises(OperatorError, match="belongs to another user"):
        command(folder)


def test_a_folder_of_ours_for_the_socket_is_closed_to_others(tmp_path: Path, temporary: Path) -> None:
    folder = long_folder(tmp_path)
    folder.redis_socket.parent.mkdir(mode=0o755)
    command(folder)
    assert stat.S_IMODE(folder.redis_socket.parent.stat().st_mode) == 0o700


def test_what_is_ours_is_trusted(tmp_path: Path) -> None:
    (tmp_path / "file").touch(mode=0o600)
    assert distrust(tmp_path / "file") is None
    assert distrust(tmp_path / "not there") is None
