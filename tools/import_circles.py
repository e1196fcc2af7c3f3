"""Prints the circles of imports between files of the package: each as its files in order, none where all is well.

`python tools/import_circles.py` looks at every import, also those for types alone and those inside functions. A name
that a room's `__init__.py` passes on is taken as imported from the file that has it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Print each circle; the exit code is 1 where there is one."""
    found = list(circles(imports_of(ROOT / "kraftlake")))
    for circle in found:
        print(" → ".join(circle))
    return 1 if found else 0


def imports_of(package: Path) -> dict[str, set[str]]:
    """The modules that each module of a package imports, without those of others."""
    nodes: dict[str, list[ast.Import | ast.ImportFrom]] = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found = ast.walk(ast.parse(path.read_text("utf-8")))
        nodes[name] = [node for node in found if isinstance(node, ast.Import | ast.ImportFrom)]
    homes = {
        (name, alias.asname or alias.name): (node.module or "", alias.name)
        for name, of_module in nodes.items()
        for node in of_module
        if isinstance(node, ast.ImportFrom) and node.module in nodes and node.module != name
        for alias in node.names
    }
    return {name: set(_imports(name, nodes, homes)) for name in nodes}


def circles(imports: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """A circle for each group of modules that import each other; one import of each is left out for the next."""
    left = {name: set(imported) for name, imported in imports.items()}
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            circle: list[str] = error.args[1][::-1]
            yield circle
            left[circle[0]].discard(circle[1])
        else:
            return


def _imports(
    name: str, nodes: Mapping[str, list[ast.Import | ast.ImportFrom]], homes: Mapping[tuple[str, str], tuple[str, str]]
) -> Iterator[str]:
    for node in nodes[name]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in nodes)
        elif node.module in nodes:
            for alias in node.names:
                at = (node.module or "", alias.name)
                while ".".join(at) not in nodes and at in homes:
                    at = homes[at]
                home = ".".join(at) if ".".join(at) in nodes else at[0]
                if home != name:
                    yield home


if __name__ == "__main__":
    sys.exit(main())
