"""Count the lines of a source tree: `python -m benchmarks.lines [PATH]`, `lienworker` if none is given.

Logical lines are those with code on them: no blanks, no comments, no docstrings. Modules and functions are measured in
all their lines, as a reader scrolls them; a package's empty `__init__.py` counts as a module.
"""

from __future__ import annotations

import ast
import io
import statistics
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "lienworker")
    texts = [file.read_text(encoding="utf-8") for file in sorted(path.rglob("*.py"))]
    trees = [ast.parse(text) for text in texts]
    lines = [len(text.splitlines()) for text in texts]
    docstrings = [docstring_lines(tree) for tree in trees]
    logical = sum(len(code_lines(text) - found) for text, found in zip(texts, docstrings, strict=True))
    print(f"{path}: {len(texts)} modules, {sum(lines):,} lines, {logical:,} logical")
    print(f"module lines:   median {spread(lines)}")
    print(f"function lines: median {spread([n for tree in trees for n in function_lines(tree)])}")
    print(f"docstrings:     {sum(map(len, docstrings)) / sum(lines):.1%} of the lines")


def code_lines(text: str) -> set[int]:
    """Return the numbers of the lines on which there is a token that is neither a comment nor mere layout."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {n for token in tokens if token.type not in _NO_CODE for n in range(token.start[0], token.end[0] + 1)}


def docstring_lines(tree: ast.Module) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            found.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return found


def function_lines(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1


def spread(counts: list[int]) -> str:
    return f"{statistics.median(counts):g}, p90 {statistics.quantiles(counts, n=10)[-1]:g}"


if __name__ == "__main__":
    main()
