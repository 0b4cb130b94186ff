"""Every point at which the world can stop, read from the source: what is not named here does not exist.

A point is named where it lies: by `failpoint` itself, or by one of the few functions that reach several for their
callers
(a transaction, a rename, a request, a message). The names must be plain text in the code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import lienworker

PACKAGE = Path(lienworker.__file__).parent

#: Functions that name points for their callers: which argument is the name, and which moments it has.
_NAMING = {
    "failpoint": (0, ()),
    "write": (0, ("before_commit", "after_commit")),
    "rename": (2, ("before_rename", "after_rename")),
    "_send": (0, ("before_request", "after_reply")),
    "_call": (0, ("before_request", "after_reply")),
}
_OF_AN_ACTOR = ("before_send", "after_send")
#: Where these functions themselves are written, and so pass on a name that is not theirs.
_MAKERS = {("db/database.py", "failpoint"), ("data_folder.py", "failpoint"), ("broker.py", "failpoint")}
_MAKERS |= {("hubs/gateway/client.py", "failpoint"), ("hubs/gateway/client.py", "_send")}
#: What only the functions above may call, so that no rename and no transaction goes without its points.
_RESERVED = {
    "rename": "data_folder.py",
    "replace": "data_folder.py",
    "renames": "",
    "move": "",
    "atomic": "db/database.py",
    "commit": "",
}
#: The doctor's one view of the data: it reads only.
_READS_ONLY = {("repair/doctor.py", "atomic")}


@dataclass(frozen=True)
class Found:
    """A point, and where it was found."""

    name: str
    module: str
    line: int


def all_points() -> list[str]:
    """The names, in the order of the code."""
    return list(dict.fromkeys(point.name for path in _modules() for point in _points_of(path)))


def _modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if "testing" not in path.parts]


def _points_of(path: Path) -> Iterator[Found]:
    module = str(path.relative_to(PACKAGE))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield from _named_by(node, module)
        elif isinstance(node, ast.FunctionDef) and any(_is_actor(mark) for mark in node.decorator_list):
            yield from (Found(f"{node.name}.{moment}", module, node.lineno) for moment in _OF_AN_ACTOR)


def _named_by(call: ast.Call, module: str) -> Iterator[Found]:
    function = _name_of(call)
    position, moments = _NAMING.get(function, (None, ()))
    if position is None or len(call.args) <= position or _is_another(call, function):
        return
    name = call.args[position]
    if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
        assert (module, function) in _MAKERS, f"{module}:{call.lineno}: the name of a point must be plain text"
        return
    yield from (Found(f"{name.value}.{moment}", module, call.lineno) for moment in moments or ())
    if not moments:
        yield Found(name.value, module, call.lineno)


def _name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _is_another(call: ast.Call, function: str) -> bool:
    """`out.write(text)` is not our `write`; only the Gateway's client has a `self._send` and a `self._call`."""
    of_self = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "self"
    return not of_self if function in {"_send", "_call"} else isinstance(call.func, ast.Attribute)


def _is_actor(mark: ast.expr) -> bool:
    return isinstance(mark, ast.Call) and _name_of(mark) == "actor"


def unguarded_calls() -> list[str]:
    """Renames and transactions that go past the functions with points."""
    found = []
    for path in _modules():
        module = str(path.relative_to(PACKAGE))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _goes_past(node, module):
                found.append(f"{module}:{node.lineno} {ast.unparse(node)}")
    return found


def _goes_past(call: ast.Call, module: str) -> bool:
    assert isinstance(call.func, ast.Attribute)
    name = call.func.attr
    if name not in _RESERVED or _RESERVED[name] == module or (module, name) in _READS_ONLY:
        return False
    if name == "replace":  # one argument: a path's; two: a text's. `os.replace` has two, and is named.
        of_os = isinstance(call.func.value, ast.Name) and call.func.value.id == "os"
        return of_os or (len(call.args) == 1 and not call.keywords)
    return True
