"""Rules about the program's own text that no linter knows as sharply."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from lienworker.outbox.states import State, Topic
from lienworker.store.tasks import STATUSES

ROOT = Path(__file__).parent.parent
PROGRAM = sorted((ROOT / "lienworker").rglob("*.py"))
SQL = re.compile(r"\s*(?:SELECT|INSERT|UPDATE|DELETE|PRAGMA|CREATE|ALTER|DROP|REPLACE|WITH|REINDEX|VACUUM)\s")
CONSTANT = re.compile(r"_{0,2}[A-Z][A-Z0-9_]*")

#: Names that are put into SQL and are no constants, each with the reason why no stranger's word can be in them.
PUT_INTO_SQL = {
    "column": "a constant of its function",
    "columns": "a constant of its function",
    "self.columns": "given by the module's own constants",
    "self.table": "given by the module's own constants",
    "condition": "a text of this module with question marks",
    "conditions": "a text of this module with question marks",
    "inner": "a text of this module with question marks",
    "rest": "a text of this module with question marks",
    "ids": "a text of this module with question marks",
    "order": "one of two texts of this module",
    "marks": "question marks",
    "most": "a number, formatted as one",
    "table": "a name that this program's own schema gives",
    "cases": "made of numbers that are constants",
    "target": "one of two texts of this module",
    "name": "a key of a dataclass of ours or of a constant, never a visitor's",
    "where": "a text of this module with question marks",
    "self.condition": "made of the conditions of maintenance/sweeps.py",
    "verb": "SELECT count(*) or DELETE",
    "part": "one of two texts of this module",
}
#: Code that would run what somebody else wrote.
FOREIGN_CODE = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "xmlrpc"}
#: What we take of PyYAML: its other loaders make objects of any kind.
PLAIN_YAML = {"SafeLoader", "MarkedYAMLError", "YAMLError"}


def trees(folder: str = "") -> Iterator[tuple[str, ast.Module]]:
    for path in PROGRAM:
        name = str(path.relative_to(ROOT))
        if name.startswith(f"lienworker/{folder}"):
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def _only_narrows(test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp):
        return all(_only_narrows(part) for part in test.values)
    if isinstance(test, ast.Call):
        return isinstance(test.func, ast.Name) and test.func.id == "isinstance"
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot)


def test_an_assert_only_narrows_a_type() -> None:
    wrong = [
        f"{name}:{node.lineno}"
        for name, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert) and not _only_narrows(node.test)
    ]
    assert not wrong, "python -O takes asserts away: raise an error instead"


def _parts(node: ast.expr) -> list[ast.expr]:
    """A text that is put together with + or in an f-string, as its parts."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _parts(node.left) + _parts(node.right)
    if isinstance(node, ast.JoinedStr):
        return [part for value in node.values for part in _parts(value)]
    if isinstance(node, ast.FormattedValue):
        return [node.value]
    return [node]


def _is_harmless(part: ast.expr) -> bool:
    if isinstance(part, ast.Constant):
        return True
    if isinstance(part, ast.Name | ast.Attribute):
        return bool(CONSTANT.fullmatch(ast.unparse(part))) or ast.unparse(part) in PUT_INTO_SQL
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "join":
        joined = part.args[0]
        inside = joined.elt if isinstance(joined, ast.GeneratorExp) else joined
        names = {ast.unparse(node) for node in ast.walk(inside) if isinstance(node, ast.Name)}
        return all(name in PUT_INTO_SQL or name == "parts" or CONSTANT.fullmatch(name) for name in names)
    return isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult)


def _put_together(tree: ast.Module) -> Iterator[tuple[int, list[ast.expr]]]:
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.BinOp) for part in (node.left, node.right)}
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.JoinedStr) and id(node) not in inner:
            parts = _parts(node)
            first = next((part for part in parts if isinstance(part, ast.Constant)), None)
            if first is not None and isinstance(first.value, str) and SQL.match(first.value) and len(parts) > 1:
                yield node.lineno, parts


@pytest.mark.parametrize("folder", ["db", "maintenance", "operator", "outbox", "queries", "repair", "steps", "store"])
def test_sql_is_put_together_from_our_own_words_only(folder: str) -> None:
    found = [
        f"{name}:{line} {ast.unparse(part)}"
        for name, tree in trees(folder)
        for line, parts in _put_together(tree)
        for part in parts
        if not _is_harmless(part)
    ]
    assert not found, "give it as a parameter; or, if it is ours, name it in PUT_INTO_SQL with its reason"


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every text of a module, those that are put together as one, with what is put in left out."""
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            parts = (part.value for part in node.values if isinstance(part, ast.Constant))
            yield node.lineno, " ".join(str(part) for part in parts)


def test_one_module_writes_to_the_outbox() -> None:
    writes = re.compile(
        r"\b(?:UPDATE\s+(?:OR\s+\w+\s+)?|(?:INSERT|REPLACE)\b[^(]*\bINTO\s+|DELETE\s+FROM\s+)outbox\b", re.I
    )
    found = {name for name, tree in trees() for _, text in _texts(tree) if writes.search(text)}
    assert found == {"lienworker/outbox/transitions.py"}


def test_a_query_names_only_states_and_topics_that_exist() -> None:
    words = {*State, *Topic, *STATUSES}
    compares = re.compile(r"\b(?:state|topic)\s*(?:=|<>|IS NOT|IN \()\s*'([a-z_]+)'((?:,\s*'[a-z_]+')*)")
    wrong = [
        f"{name}:{line} {word}"
        for name, tree in trees()
        for line, text in _texts(tree)
        for first, others in compares.findall(text)
        for word in [first, *re.findall(r"[a-z_]+", others)]
        if word not in words
    ]
    assert not wrong


def test_nothing_runs_what_somebody_else_wrote() -> None:
    found = []
    for name, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                words = {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                words = {(node.module or "").partition(".")[0]}
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                words = {node.func.id} & {"eval", "exec", "compile", "__import__"}
            elif isinstance(node, ast.keyword) and node.arg == "shell":
                words = {"shell="}
            else:
                continue
            found += [f"{name}:{node.lineno} {word}" for word in words & {*FOREIGN_CODE, "eval", "exec", "shell="}]
    assert not found


def test_no_process_of_ours_takes_modules_from_the_folder_where_we_stand() -> None:
    found = [
        f"{name}:{node.lineno}"
        for name, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.List | ast.Tuple | ast.Call)
        for words in [node.args if isinstance(node, ast.Call) else node.elts]
        for before, word in pairwise(words)
        if isinstance(word, ast.Constant) and word.value == "-m" and ast.unparse(before) != "'-P'"
    ]
    assert not found, "say -P before -m"


def test_yaml_is_read_as_plain_data_only() -> None:
    used = {
        node.attr
        for _, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "yaml"
    }
    taken = {
        alias.name
        for _, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "yaml"
        for alias in node.names
    }
    assert (used, taken) == (PLAIN_YAML, {"Node"})


#: How a file is opened, copied, hashed or flushed; the last line is what our own code has for it.
OPENING = {
    "open", "read_bytes", "read_text", "write_bytes", "write_text", "touch", "copy", "copy2", "copyfile", "copyfileobj",
    "file_digest", "mmap", "truncate", "move", "copytree",
    "open_lock", "try_lock", "write_durably", "users_file", "open_blocks", "tar_members", "check_page_file",
}  # fmt: skip
#: What the database and the files beside it are called in our code.
DATABASE_FILES = re.compile(
    r"lienworker\.db(?!\.)|-wal|-shm|\.database\b|\bsalvaged\b|\bpart_of\(|\bfiles_of\(|\bbroken\b"
)
#: Commands that open files by themselves, each with what it opens. One that a person names goes through `users_file` or
#: `open_blocks`, which refuse the database.
OPENED_BY_COMMANDS = {
    "lienworker/cli/demonstration.py": "the demo's own list, in a folder of its own",
    "lienworker/cli/looking.py": "run.log and stack.log",
    "lienworker/cli/manual.py": "the manual pages that it makes",
    "lienworker/cli/running.py": "run.log and stack.log",
    "lienworker/cli/setting_up.py": "a new .env, which must not be there yet",
}


def _openings(tree: ast.AST) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) in OPENING
    ]


def _bindings(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What gets a name, and the expression that it gets it from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets)
        elif isinstance(node, ast.For | ast.comprehension):
            yield node.target, node.iter
        elif isinstance(node, ast.NamedExpr | ast.AnnAssign) and node.value:
            yield node.target, node.value


def _opens_the_database(tree: ast.Module) -> set[str]:
    """Openings that speak of the database, also by another name that the same function has given it."""
    found = {node for node in _openings(tree) if DATABASE_FILES.search(ast.unparse(node))}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and (openings := _openings(function)):
            given = [target for target, value in _bindings(function) if DATABASE_FILES.search(ast.unparse(value))]
            names = {node.id for target in given for node in ast.walk(target) if isinstance(node, ast.Name)}
            found |= {
                node for node in openings if names & {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
            }
    return {f"{node.lineno} {ast.unparse(node)}" for node in found}


def test_nothing_but_sqlite_opens_the_database() -> None:
    """POSIX drops all locks of a process on a file when any descriptor of that file is closed."""
    found = [f"{name}:{opening}" for name, tree in trees() for opening in _opens_the_database(tree)]
    assert not found, "see db/usage.py: `stat` and `chmod` by path are harmless, a descriptor is not"


@pytest.mark.parametrize(
    "line",
    [
        "os.close(os.open(self.database, os.O_RDWR))",
        "for path in files_of(folder.database): path.read_bytes()",
        "place = folder.database; hashlib.file_digest(open(place, 'rb'), 'sha256')",
        "[file.open() for file in files_of(path)]",
        "shutil.copyfile(part_of(folder), place)",
        "write_durably(folder.salvaged, text)",
    ],
)
def test_the_rule_sees_what_it_is_there_for(line: str) -> None:
    assert _opens_the_database(ast.parse(f"def f():\n    {line}"))
    assert not _opens_the_database(ast.parse("def f():\n    folder.database.chmod(0o600)\n    open(folder.log)"))


def test_a_command_opens_no_file_that_a_person_names() -> None:
    """It could be the database; `analyze --html` once wrote its page over it."""
    opens = {name for name, tree in trees("cli/") for node in _openings(tree) if "users_file" not in ast.unparse(node)}
    assert opens == set(OPENED_BY_COMMANDS), "use users_file or open_blocks; or name it with what it opens"


def test_there_is_one_sqlite_library_in_a_process() -> None:
    """Two copies of it would not know of each other's locks: Peewee's is the one."""
    found = []
    for name, tree in trees():
        for_types = {id(n) for node in ast.walk(tree) if _is_for_types(node) for n in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in for_types:
                modules = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                found += [f"{name}:{node.lineno}"] if modules & {"sqlite3", "pysqlite3", "apsw"} else []
    assert not found, "use connection_to() of db/database.py"


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def test_messages_in_redis_are_json() -> None:
    """Whoever can write to Redis can send us a message; it must not be a program."""
    from dramatiq import JSONEncoder, get_encoder

    import lienworker.broker  # noqa: F401  if anything of ours chose another, it has by now

    assert type(get_encoder()) is JSONEncoder


def _audit(tmp_path: Path, says: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    service = tmp_path / "pip-audit"
    service.write_text(f"#!{sys.executable}\nimport sys\nprint({says!r})\nsys.exit({code})\n")
    service.chmod(0o755)
    command = [sys.executable, str(ROOT / ".ci" / "audit")]
    return subprocess.run(command, capture_output=True, text=True, env={"PIP_AUDIT": str(service)})


def test_the_audit_fails_on_a_finding(tmp_path: Path) -> None:
    bad = {"name": "x", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}
    done = _audit(tmp_path, json.dumps({"dependencies": [bad]}), 1)
    assert done.returncode == 1
    assert "x 1: PYSEC-1; mended in 2" in done.stdout


def test_the_audit_says_aloud_what_it_could_not_ask_about(tmp_path: Path) -> None:
    unknown = {"name": "y", "skip_reason": "not found"}
    good = {"name": "x", "version": "1", "vulns": []}
    done = _audit(tmp_path, json.dumps({"dependencies": [good, unknown]}))
    assert (done.returncode, "NOT AUDITED" in done.stdout.splitlines()[-1]) == (3, True)
    assert "1 packages audited, 0 findings" in done.stdout
    for broken in (_audit(tmp_path, "Traceback: no such host", 1), _audit(tmp_path, json.dumps({"dependencies": []}))):
        assert (broken.returncode, "NOT AUDITED" in broken.stdout.splitlines()[-1]) == (3, True)
    assert _audit(tmp_path, json.dumps({"dependencies": [good]})).returncode == 0


@pytest.mark.parametrize(("audited", "code"), [(0, 0), (1, 1), (3, 0), (2, 2)])
def test_the_build_says_last_of_all_that_nothing_was_audited(tmp_path: Path, audited: int, code: int) -> None:
    """The build's own script, with everything that it calls replaced."""
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "run").write_bytes((ROOT / ".ci" / "run").read_bytes())
    for place, ends in (
        ("bin/make", 0),
        ("bin/chromium", 0),
        ("bin/systemd-analyze", 0),
        (".venv/bin/python", audited),
    ):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(f"#!/bin/sh\nexit {ends}\n")
        (tmp_path / place).chmod(0o755)
    done = subprocess.run(
        ["bash", str(tmp_path / ".ci" / "run")],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
    )
    assert done.returncode == code
    said = done.stdout.splitlines()
    assert bool(said and said[-1].startswith("PASSED, BUT NOT AUDITED")) == (audited == 3)


#: What only Linux has. Each is used behind a question (`sys.platform`, `hasattr`, `getattr` with a default) or, where
#: it is a file, may be missing; the places, and what is done without it.
ONLY_LINUX = re.compile(
    r"/proc/|prctl|RLIMIT_AS|mallopt|malloc_trim|fadvise|fallocate|fdatasync|epoll|inotify|pidfd|memfd|sched_|pipe2"
    r"|O_TMPFILE|\bO_PATH|O_NOATIME|SO_REUSEPORT|SO_PEERCRED|SOCK_CLOEXEC|SOCK_NONBLOCK|TCP_USER_TIMEOUT|TCP_KEEPIDLE"
    r"|CLOCK_BOOTTIME|sigtimedwait|F_OFD|MSG_ERRQUEUE"
)
GUARDED = {
    "lienworker/large_blocks.py": "getattr(ctypes.CDLL(None)",
    "lienworker/limited_child.py": 'sys.platform != "linux"',
    "lienworker/outbox/clock_jumps.py": "except OSError",
    "lienworker/stack/supervisor.py": 'sys.platform == "linux"',
    "lienworker/store/raw_files.py": 'hasattr(os, "posix_fadvise")',
    "lienworker/web/sanitizer.py": 'sys.platform == "linux"',
}


def test_nothing_needs_linux_without_a_guard() -> None:
    """macOS is where people develop: what only Linux has is asked for first, and named here."""
    found = {str(path.relative_to(ROOT)) for path in PROGRAM if ONLY_LINUX.search(path.read_text(encoding="utf-8"))}
    assert found == set(GUARDED)
    for name, guard in GUARDED.items():
        assert guard in (ROOT / name).read_text(encoding="utf-8"), name


def test_nothing_imports_what_only_linux_has() -> None:
    """By the names of modules: those of the standard library that macOS lacks."""
    lacking = {"spwd", "ossaudiodev", "nis", "msvcrt", "winreg", "systemd", "sdnotify", "pyinotify"}
    for name, tree in trees():
        for node in ast.walk(tree):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not {one.partition(".")[0] for one in names} & lacking, name
