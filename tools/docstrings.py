"""Print the first sentence of each docstring, for reading: `python tools/docstrings.py [FOLDER …] [--words]`."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """The line and the text of each docstring of a file, those of attributes too."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        body = getattr(node, "body", [])
        for place, statement in enumerate(body if isinstance(body, list) else []):
            is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            of_value = place > 0 and isinstance(body[place - 1], ast.AnnAssign | ast.Assign)
            if is_text and (of_value or isinstance(node, _DOCUMENTED)) and isinstance(statement.value.value, str):
                yield statement.lineno, statement.value.value


def main(arguments: list[str]) -> None:
    """Print the first lines, or with `--words` how often each first word stands."""
    folders = [a for a in arguments if not a.startswith("-")] or ["kraftlake"]
    words: Counter[str] = Counter()
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for line, text in docstrings(path):
                first = text.strip().split("\n\n")[0].replace("\n", " ")
                words[first.split()[0] if first else ""] += 1
                if "--words" not in arguments:
                    print(f"{path.relative_to(ROOT)}:{line}: {' '.join(first.split())}")
    for word, count in words.most_common() if "--words" in arguments else ():
        print(f"{count:5} {word}")


if __name__ == "__main__":
    main(sys.argv[1:])
