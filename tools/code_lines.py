"""Prints the code lines of each room of the package and their sum: lines without docstrings, comments and blanks.

`python tools/code_lines.py` counts `kraftlake`; another package's folder may be named, such as `simulator`.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def main() -> int:
    """Print a line for each room: its name, its number of files, its code lines."""
    package = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "kraftlake"
    files: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for path in package.rglob("*.py"):
        room = path.relative_to(package).parts[0]
        files[room] += 1
        lines[room] += code_lines(path.read_text("utf-8"))
    for room in sorted(lines):
        print(f"{room:20}{files[room]:5}{lines[room]:8,}")
    print(f"{'sum':20}{files.total():5}{lines.total():8,}")
    return 0


def code_lines(source: str) -> int:
    """The number of lines of Python source that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - _docstring_lines(ast.parse(source)))


def _docstring_lines(tree: ast.Module) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                lines.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


if __name__ == "__main__":
    sys.exit(main())
