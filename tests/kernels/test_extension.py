"""The extension module is made of the sources that are here, and the stubs for mypy say what it has."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from kraftlake.kernels import compiled
from kraftlake.runtime import __version__
from tests.wheel import REPOSITORY

PACKAGE = REPOSITORY / "kraftlake"
KERNELS = PACKAGE / "kernels"


def hash_of_the_sources() -> str:
    code = "import sys, pathlib, kernel_build; print(kernel_build.hash_of(pathlib.Path(sys.argv[1])))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(PACKAGE)],
        cwd=REPOSITORY / "build_backend", capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout.strip()


def names_defined(file: Path) -> set[str]:
    found: set[str] = set()
    for statement in ast.parse(file.read_text("utf-8")).body:
        if isinstance(statement, ast.FunctionDef):
            found.add(statement.name)
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            found.add(statement.targets[0].id)
    return {name for name in found if not name.startswith("_")}


FOR_PYTHON = {"compiled", "allocating"}


def files_of(stub: Path) -> set[Path]:
    """The files of kernels that `compiled.py` takes all names of."""
    imports = (node for node in ast.walk(ast.parse(stub.read_text("utf-8"))) if isinstance(node, ast.ImportFrom))
    return {
        PACKAGE.joinpath(*(node.module or "").split(".")[1:]).with_suffix(".py")
        for node in imports
        if (node.module or "").startswith("kraftlake.kernels.")
    }


def definitions_for_python() -> dict[Path, list[str]]:
    """What Python takes of the extension, by file: functions with a mark of FOR_PYTHON, and classes of buffers."""
    found: dict[Path, list[str]] = {}
    for file in KERNELS.rglob("*.py"):
        for node in ast.parse(file.read_text("utf-8")).body:
            marks = map(ast.unparse, node.decorator_list) if isinstance(node, ast.FunctionDef) else ()
            is_function = not FOR_PYTHON.isdisjoint(marks)
            if is_function or (isinstance(node, ast.ClassDef) and "NamedTuple" in map(ast.unparse, node.bases)):
                found.setdefault(file, []).append(node.name)
    return found


def test_it_is_made_of_these_sources() -> None:
    assert hash_of_the_sources() == compiled.SOURCES, "`make test` builds it; `setup.py build_ext --inplace` does, too"
    assert __version__ == compiled.KRAFTLAKE_VERSION


def test_the_stub_takes_the_names_of_each_file_with_something_for_python() -> None:
    assert files_of(KERNELS / "compiled.py") == set(definitions_for_python())


def test_all_that_python_takes_is_there() -> None:
    names = [name for of_file in definitions_for_python().values() for name in of_file]
    assert "walk_plain" in names
    assert [name for name in names if not callable(getattr(compiled, name, None))] == []


def test_mypy_knows_each_word_of_the_language() -> None:
    words = names_defined(KERNELS / "language.py")
    assert {"Int64", "Bytes", "compiled"} <= words
    assert names_defined(KERNELS / "language.pyi") == words
