"""The imports of the package's modules, read from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import attrs

import kraftlake

PACKAGE = Path(kraftlake.__file__).parent


@attrs.frozen
class Import:
    """One imported name, or with `name` None a whole module: `from module import name`, `import module`."""

    importer: str
    module: str
    name: str | None
    typing_only: bool


@cache
def modules() -> dict[str, Path]:
    """The file of each module of the package, by dotted name."""
    return {dotted_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def dotted_name(path: Path) -> str:
    """The name by which a file of the package is imported."""
    parts = ("kraftlake", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    """The name of a module's room; of the package itself, and of the modules beside the rooms, their own."""
    return ".".join(module.split(".")[:2])


def is_package(module: str) -> bool:
    """Whether a module of the package is a folder."""
    return modules()[module].name == "__init__.py"


@cache
def module_imports(module: str) -> list[Import]:
    """The imports of a module of the package."""
    return list(imports_of(module, modules()[module].read_text("utf-8")))


def imports_of(importer: str, source: str) -> Iterator[Import]:
    """The imports of the package's own modules in `source`, those within functions and by LazyModule too."""
    yield from _imports(importer, ast.parse(source).body, typing_only=False)


def _imports(importer: str, nodes: list[ast.stmt], *, typing_only: bool) -> Iterator[Import]:
    for node in nodes:
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            yield from _imports(importer, node.body, typing_only=True)
            yield from _imports(importer, node.orelse, typing_only=typing_only)
            continue
        bodies = [getattr(node, field, []) for field in ("body", "orelse", "handlers", "finalbody", "cases")]
        if any(bodies):
            for body in bodies:
                yield from _imports(importer, body, typing_only=typing_only)
        for module, name in _imported_by(node) if not any(bodies) else ():
            yield Import(importer=importer, module=module, name=name, typing_only=typing_only)


def _imported_by(node: ast.stmt) -> Iterator[tuple[str, str | None]]:
    if isinstance(node, ast.ImportFrom):
        if node.module is not None and room_of(node.module).startswith("kraftlake"):
            for alias in node.names:
                yield node.module, alias.name
    elif isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.split(".")[0] == "kraftlake":
                yield alias.name, None
    else:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "LazyModule":
                target = inner.args[0]
                if isinstance(target, ast.Constant):
                    yield str(target.value), None
