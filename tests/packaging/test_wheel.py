"""The wheel in an empty environment and an empty folder: nothing of the repository is needed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lienworker import __version__
from lienworker.cli.manual import pages
from tests.packaging.conftest import ROOT, UV, Installed, call

pytestmark = pytest.mark.slow
EXAMPLE = ROOT / "examples" / "heron-county"


def tracked(*patterns: str) -> set[str]:
    return {str(path.relative_to(ROOT)) for pattern in patterns for path in ROOT.glob(pattern)}


def test_the_demo_works_and_the_doctor_is_content(installed: Installed, tmp_path: Path) -> None:
    done = installed.run(tmp_path, "lienworker", "demo", "--parcels", "20")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list(tmp_path.iterdir()), "the demo leaves nothing behind"
    doctor = installed.run(tmp_path, "lienworker", "doctor")
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    assert "BAD" not in doctor.stdout
    assert installed.run(tmp_path, "lienworker", "--version").stdout.strip().endswith(__version__)


def test_the_demo_works_with_the_lowest_versions_that_are_allowed(lowest: Installed, tmp_path: Path) -> None:
    click = lowest.run(tmp_path, "python", "-c", "from importlib.metadata import version; print(version('click'))")
    assert f"click>={click.stdout.strip()}," in (ROOT / "pyproject.toml").read_text(), "the lowest, really"
    done = lowest.run(tmp_path, "lienworker", "demo", "--parcels", "5")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_has_what_the_program_needs_and_no_more(installed: Installed) -> None:
    names = set(zipfile.ZipFile(installed.wheel).namelist())
    wanted = tracked(
        "lienworker/**/*.py", "lienworker/**/*.sql", "lienworker/web/[st]*/*.*", "lienworker/stack/templates/*"
    )
    assert wanted | {"lienworker/py.typed"} <= names
    shared = f"lienworker-{__version__}.data/data/share"
    assert {f"{shared}/man/man1/{name}.1" for name in pages()} <= names
    assert {f"{shared}/lienworker/grafana/{name}" for name in ("dashboard.json", "alerts.yml")} <= names
    assert f"{shared}/lienworker/examples/heron-county/heron_county.py" in names
    assert f"lienworker-{__version__}.dist-info/licenses/LICENSE" in names
    assert all(name.startswith(("lienworker/", f"lienworker-{__version__}.")) for name in names)
    assert not [name for name in names if "__pycache__" in name or "/tests/" in name]


def test_what_reaches_the_image_builder_builds_the_same_wheel(installed: Installed, tmp_path: Path) -> None:
    """The Dockerfile copies what .dockerignore lets through, and installs that."""
    for name in re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(), re.M):
        source, target = ROOT / name, tmp_path / "src" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    call(UV, "build", "--quiet", "--wheel", "--out-dir", tmp_path / "dist", tmp_path / "src")
    built = zipfile.ZipFile(next((tmp_path / "dist").glob("*.whl")))
    names = {name for name in built.namelist() if "__pycache__" not in name}
    assert names == set(zipfile.ZipFile(installed.wheel).namelist())


def test_the_archive_can_build_the_wheel_again(installed: Installed) -> None:
    with tarfile.open(installed.archive) as archive:
        names = archive.getnames()
    top = f"lienworker-{__version__}"
    for name in ("hatch_build.py", "LICENSE", "pyproject.toml", "docs/grafana/alerts.yml", "tests/conftest.py"):
        assert f"{top}/{name}" in names
    assert not [name for name in names if re.search(r"/(\.venv|data|\.env|build|dist)(/|$)", name)]


def test_the_version_is_semantic_and_in_one_place() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.-]+)?", __version__)
    assert __version__ not in (ROOT / "pyproject.toml").read_text()


def test_a_platform_in_a_package_of_its_own_is_found_by_its_entry_point(installed: Installed, tmp_path: Path) -> None:
    module = (EXAMPLE / "heron_county.py").read_text()
    assert len(module.splitlines()) < 60
    beside = tmp_path / "beside"  # not in the environment: that is everybody's
    installed.install("--no-deps", "--target", str(beside), str(EXAMPLE))
    settings = {"PYTHONPATH": str(beside)}

    listed = json.loads(installed.run(tmp_path, "lienworker", "platforms", "list", "--json", **settings).stdout)
    assert [row for row in listed if row["name"] == "heron"]
    shutil.copy(EXAMPLE / "heron.html", tmp_path)
    parsed = installed.run(tmp_path, "lienworker", "platforms", "parse", "heron.html", "--json", **settings)
    assert json.loads(parsed.stdout)["record"]["owner_name"] == "BITTERN ELSA", parsed.stdout + parsed.stderr

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=tmp_path)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/heron.html"
        (tmp_path / "parcels.csv").write_text(f"url,platform,state,county\n{url},heron,FL,Heron\n")
        settings |= {"LIENWORKER_ALLOW_PRIVATE_HOSTS": "127.0.0.1", "LIENWORKER_PROCESSES": "1"}
        done = installed.run(tmp_path, "lienworker", "run", "parcels.csv", **settings)
        server.shutdown()
    assert done.returncode == 0, done.stdout + done.stderr
    exported = installed.run(tmp_path, "lienworker", "results", "export", "--format", "jsonl")
    assert json.loads(exported.stdout)["parcel_id"] == "07-114-0032"


@pytest.mark.parametrize(("shell", "word"), [("bash", "complete -o nosort"), ("zsh", "compdef"), ("fish", "complete ")])
def test_completion_is_printed_for_each_shell(installed: Installed, tmp_path: Path, shell: str, word: str) -> None:
    done = installed.run(tmp_path, "lienworker", "completion", shell)
    assert done.returncode == 0
    assert word in done.stdout


def test_bash_really_completes(installed: Installed, tmp_path: Path) -> None:
    words = {"COMP_WORDS": "lienworker outbox re", "COMP_CWORD": "2", "_LIENWORKER_COMPLETE": "bash_complete"}
    done = installed.run(tmp_path, "lienworker", **words)
    assert done.stdout.split() == ["plain,release", "plain,replay"]


def test_pipx_installs_it(installed: Installed, tmp_path: Path) -> None:
    pipx = Path(sys.executable).with_name("pipx")
    places = {**os.environ, "PIPX_HOME": str(tmp_path / "home"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    places |= {"PIPX_MAN_DIR": str(tmp_path / "man"), "PATH": f"{pipx.parent}:/usr/bin:/bin"}
    places |= {"UV_NATIVE_TLS": "1", "UV_SYSTEM_CERTS": "1"}  # pipx may call uv; see conftest
    command = [pipx, "install", "--quiet", "--python", sys.executable]
    command += ["--pip-args", f"--constraint {ROOT / 'constraints.txt'}", str(installed.wheel)]
    done = subprocess.run(command, env=places, capture_output=True, text=True, cwd=tmp_path, timeout=170)
    assert done.returncode == 0, done.stdout + done.stderr
    demo = subprocess.run([tmp_path / "bin" / "lienworker", "demo", "--parcels", "3"], cwd=tmp_path, env=places)
    assert demo.returncode == 0
    assert (tmp_path / "man" / "man1" / "lienworker.1").exists()


def test_every_manual_page_is_understood_by_man(tmp_path: Path) -> None:
    from lienworker.cli.manual import write_pages

    for page in write_pages(tmp_path):
        assert ".SH SYNOPSIS" in page.read_text()
    if not shutil.which("man"):
        pytest.skip("there is no `man` here")
    for page in tmp_path.glob("*.1"):
        place = {"LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"}
        done = subprocess.run(["man", "--warnings", "-l", str(page)], capture_output=True, text=True, env=place)
        assert done.returncode == 0
        assert not done.stderr, done.stderr
