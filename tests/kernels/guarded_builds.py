"""Builds of the kernels that find what they do wrong: each index checked, or sanitizers, also with a fuzzer's guide."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import attrs
import pytest

from tests.wheel import REPOSITORY, copy_sources, made_once


@attrs.frozen
class GuardedBuild:
    """A copy of the sources and tests with such kernels, and the environment that they need."""

    folder: Path
    environment: dict[str, str]

    def run(self, *words: object, timeout: float = 3000) -> subprocess.CompletedProcess[str]:
        """Run Python on the copy."""
        return subprocess.run(
            [sys.executable, *map(str, words)],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(self.folder), "KRAFTLAKE_TESTS": "quick"} | self.environment,
            capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip


def sanitizer() -> list[Path]:
    """The libraries that have to be loaded before Python, empty without a C compiler that has an address sanitizer.

    They are the sanitizer's and C++'s: it has to know how C++ throws before pyarrow does so.
    """
    for name in ("gcc", "cc"):
        if shutil.which(name):
            paths = [_library(name, library) for library in ("libasan.so", "libstdc++.so.6")]
            return [path.resolve() for path in paths] if all(path.is_absolute() for path in paths) else []
    return []


def _library(compiler: str, name: str) -> Path:
    """The path of a library of the compiler's; its name alone if there is none."""
    command = [compiler, f"-print-file-name={name}"]
    return Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


def _build(kind: str, folder: Path) -> None:
    copy_sources(folder, "tests", "simulator")
    for name in ("samples", "docs"):
        (folder / name).symlink_to(REPOSITORY / name)
    _copy_bytecode(folder)
    made = GuardedBuild(folder, {"KRAFTLAKE_KERNELS": kind})
    done = made.run("setup.py", "-q", "build_ext", "--inplace")
    assert done.returncode == 0, done.stderr


def _copy_bytecode(folder: Path) -> None:
    """Copy what is already compiled of the same Python sources: a sanitized Python takes ten seconds for it."""
    for name in ("kraftlake", "tests"):
        for compiled in (REPOSITORY / name).rglob("__pycache__/*.pyc"):
            place = folder / compiled.relative_to(REPOSITORY)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(compiled, place)


@pytest.fixture(scope="session")
def checked_build(tmp_path_factory: pytest.TempPathFactory) -> GuardedBuild:
    """Kernels that raise IndexError where an index is outside of its buffer."""
    return GuardedBuild(made_once(tmp_path_factory, "checked", partial(_build, "checked")), {})


@pytest.fixture(scope="session")
def sanitized_build(tmp_path_factory: pytest.TempPathFactory) -> GuardedBuild:
    """Kernels that end the process where they read or write outside of memory, or do what C leaves undefined."""
    libraries = sanitizer()
    if not libraries:
        reason = "the C compiler has no address sanitizer: Debian's gcc has one"
        (pytest.fail if os.environ.get("KRAFTLAKE_TESTS") == "long" else pytest.skip)(reason)
    folder = made_once(tmp_path_factory, "sanitized", partial(_build, "sanitized"))
    return GuardedBuild(folder, _environment(*map(str, libraries)))


def build_guided(folder: Path) -> GuardedBuild:
    """Kernels as of `sanitized_build`, whose branches guide a fuzzer too; made in a folder unless they are there."""
    if not folder.exists():
        _build("guided", folder)
    return GuardedBuild(folder, fuzzer_environment())


def fuzzer_environment() -> dict[str, str]:
    """The environment of a fuzzer of code that zig has compiled with sanitizers and counters of branches.

    atheris has a library with libFuzzer and clang's sanitizers, and takes the fuzzer in it where it is loaded.
    """
    atheris = find_spec("atheris")
    assert atheris is not None, "atheris is not installed, which has wheels for x86-64 alone"
    assert atheris.origin is not None
    return _environment(str(Path(atheris.origin).parents[1] / "asan_with_fuzzer.so"), "libstdc++.so.6")


def _environment(*libraries: str) -> dict[str, str]:
    return {
        "LD_PRELOAD": " ".join(libraries),
        # Python and its libraries keep memory until their end. What is freed is kept apart up to 16 MB, not 256: a
        # fuzzer measures memory.
        "ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=16",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # so that each bytes object has guarded memory of its own
    }
