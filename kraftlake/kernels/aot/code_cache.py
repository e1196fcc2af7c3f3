"""The cache of compiled functions: object files of this machine's code, loaded by LLVM alone.

The files are executed, so only the user may write them, and a file is loaded only if its checksum is right. The cache
is the user's, or a folder under the temporary one if that can't be written. The folder of the files is named by a
digest of all that they depend on, so that outdated code is never loaded; a folder is removed after a month without use.
A process that finds no file compiles the function and puts the file in place atomically.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.runtime.user_cache import private_folder, temporary_cache, temporary_cache_path, user_cache

ENTRY: Final = "kraftlake_entry"
"""The name of the function in an object file: `int32 (int64 *)`, its arguments' numbers in, its results' out."""
RESULTS: Final = 4
"""How many results there may be: they take the place of the first numbers."""

KEPT_DAYS: Final = 30
"""How long unused code is kept."""

_DAY = 24 * 60 * 60
_SIZE_OF_ALL_CODE = 1 << 20
_MAGIC = b"KLCODE\x01"


class LoadedCode:
    """A compiled function in memory; called with the numbers that `flatten` made of its arguments.

    `results` has a letter for each result: n for a signed number, u for an unsigned one, b for a bool.
    """

    def __init__(self, engine: Any, results: str) -> None:
        self._engine = engine  # the code lives as long as it does
        self._entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(engine.get_function_address(ENTRY))
        self._results = results
        self._slots: Any = None

    def __call__(self, numbers: Sequence[int]) -> Any:
        """The result: None, a number, or a tuple of numbers."""
        if self._slots is None:
            self._slots = ctypes.c_int64 * max(RESULTS, len(numbers))
        slots = self._slots(*numbers)
        if self._entry(slots) != 0:
            raise RuntimeError("compiled code raised, which it must not")
        if not self._results:
            return None
        values = [_RESULT[letter](slots[place]) for place, letter in enumerate(self._results)]
        return values[0] if len(values) == 1 else tuple(values)


_RESULT: dict[str, Callable[[int], Any]] = {"n": int, "b": bool, "u": lambda number: number & (1 << 64) - 1}


def find_code(name: str, types: str, compile_: Callable[[], tuple[bytes, str]]) -> LoadedCode:
    """The code of a function for some types of arguments, from a cache or else from `compile_`.

    That gives an object file and the letters of its results. Raises EnvironmentFaultError where there is no code of any
    function, and no folder to keep it in: each process would compile all of it again.
    """
    file = f"{name.rpartition('.')[2]}-{_digest(f'{name} {types}'.encode())}.code"
    for folder in code_folders():
        kept = _read(folder / file)
        if kept is not None:
            return _load(*kept)
    place = folder_to_fill()
    if place is None and not _has_code():
        raise EnvironmentFaultError(
            "neither the user's cache folder nor the temporary one can hold compiled code: "
            "set KRAFTLAKE_CACHE to a folder of yours that can."
        )
    _say_once(place)
    compiled = compile_()
    if place is not None:
        with suppress(OSError):  # a disk that has become full is no reason to fail
            _write(place / file, *compiled)
            _remove_stale(place)
    return _load(*compiled)


@cache
def code_folders() -> tuple[Path, ...]:
    """The folders where this code may lie: in the user's cache, and in the temporary one if that was ever needed."""
    caches = [user_cache, temporary_cache] if temporary_cache_path().is_dir() else [user_cache]
    return tuple(folder for folder in map(_folder_in, caches) if folder is not None)


@cache
def folder_to_fill() -> Path | None:
    """Where new code is kept: in the user's cache, or else in the temporary one; None where neither takes it."""
    for cache_folder in (user_cache, temporary_cache):
        folder = _folder_in(cache_folder)
        if folder is not None and _takes_files(folder):
            return folder
    return None


def _folder_in(cache_folder: Callable[[], Path]) -> Path | None:
    """The folder `kernels` of a cache, of mode 0700, and in it a folder for just this code; None where it can't be."""
    digest = _digest_of_code()
    try:
        folder = private_folder(cache_folder() / "kernels") / digest
        folder.mkdir(exist_ok=True, mode=0o700)
        if time.time() - folder.stat().st_mtime > _DAY:  # so that those in use are known from those that are not
            with suppress(OSError):
                os.utime(folder)
    except (OSError, EnvironmentFaultError):
        return None
    return folder


def _takes_files(folder: Path) -> bool:
    """Whether the folder takes as many bytes as all of the code has: it may be read-only, or its disk full."""
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(_SIZE_OF_ALL_CODE))
    except OSError:
        return False
    return True


@cache
def _remove_stale(folder: Path) -> None:
    """Remove the other folders of the cache that were not used for KEPT_DAYS: of other sources, versions, machines.

    Each is renamed first: a process that returns to it at that moment finds no folder, and compiles anew.
    """
    for other in folder.parent.iterdir():
        with suppress(OSError):
            found = other.lstat()
            if not stat.S_ISDIR(found.st_mode) or other == folder or time.time() - found.st_mtime < KEPT_DAYS * _DAY:
                continue
            doomed = other.with_name(f".{other.name.lstrip('.')[:32]}.{os.getpid()}")
            other.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)


def _has_code() -> bool:
    """Whether something was compiled for this machine before."""
    return any(True for folder in code_folders() for _ in folder.glob("*.code"))


@cache
def _digest_of_code() -> str:
    return _digest(_code_depends_on())


def _code_depends_on() -> bytes:
    """The sources, what compiles them, and the machine that they are compiled for."""
    room = Path(__file__).parents[1]
    sources = [path.read_bytes() for path in sorted(room.rglob("*.py"))] or _sources_in_a_zip()
    versions = [_version(name) for name in ("numba", "llvmlite", "numpy")]
    import llvmlite.binding as llvm

    machine = [llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()]
    return b"\0".join([*sources, *(text.encode() for text in [sys.version, *versions, *machine])])


def _sources_in_a_zip() -> list[bytes]:
    """The sources of a package that was sent to one of Spark's executors."""
    from importlib.resources import files

    room = files("kraftlake.kernels")
    folders = [room, *(room.joinpath(folder) for folder in ("aot", "batches", "columns", "replay"))]
    modules = [entry for folder in folders for entry in folder.iterdir() if entry.name.endswith(".py")]
    return [module.read_bytes() for module in sorted(modules, key=lambda module: module.name)]


def _version(package: str) -> str:
    """The installed version, by the name of its dist-info folder: importlib.metadata takes 20 ms to import."""
    spec = find_spec(package)
    if spec is not None and spec.origin is not None:
        left = [path.name for path in Path(spec.origin).parents[1].glob(f"{package}-*.dist-info")]
        if len(left) == 1:
            return left[0]
    from importlib.metadata import version

    return version(package)


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:32]


def _write(path: Path, code: bytes, results: str) -> None:
    import tempfile

    content = results.encode().ljust(RESULTS) + code
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + sha256(content).digest() + content)
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def _read(path: Path) -> tuple[bytes, str] | None:
    """None where there is no file, it is not whole, or another user could have written it."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            kept = file.read()
    except OSError:
        return None
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return None
    start = len(_MAGIC) + 32
    content = kept[start:]
    if kept[:start] != _MAGIC + sha256(content).digest():
        return None
    return content[RESULTS:], content[:RESULTS].decode().rstrip()


def _load(code: bytes, results: str) -> LoadedCode:
    import llvmlite.binding as llvm

    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target().create_target_machine(jit=True))
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return LoadedCode(engine, results)


@cache
def _target() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_triple(llvm.get_process_triple())


@cache
def _say_once(folder: Path | None) -> None:
    """Compiling takes seconds: who waits should know what for."""
    line = "kraftlake compiles its bulk replay for this machine, once; it takes some seconds."
    if folder is not None and folder != _folder_in(user_cache):
        line += (
            f" The user's cache folder can't be written, so the code is kept in {folder.parents[1]}: "
            "set KRAFTLAKE_CACHE to a folder of yours to keep it for good."
        )
    print(line, file=sys.stderr)  # noqa: T201
