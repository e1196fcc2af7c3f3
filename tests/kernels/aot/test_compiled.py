"""Compiled functions give what the Python functions that they were made of give, from the cache as when just made."""

from __future__ import annotations

import os
import resource
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from kraftlake.kernels.aot import code_cache
from kraftlake.kernels.aot.arguments import Flattened
from kraftlake.kernels.aot.compiled import compiled, inlined

from kraftlake.runtime.errors import EnvironmentFaultError


class Pair(NamedTuple):
    numbers: Any
    bytes: Any


@inlined
def _last(array: Any) -> Any:
    return array[len(array) - 1]


@compiled
def several_results(pair: Any, table: Any, factor: int) -> Any:
    total = np.int64(0)
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            total += table[row, column] * factor
    pair.numbers[0] = total
    return total, len(pair.bytes) == 3, np.uint64(0xFFFFFFFFFFFFFFFF), _last(pair.bytes)


@compiled
def no_result(numbers: Any) -> None:
    for place in range(len(numbers)):
        numbers[place] -= 1


@compiled
def allocates(count: int) -> Any:
    return np.zeros(count, np.int32)[0]


def forget(kernel: Any) -> None:
    """Its code, as far as this process has it."""
    kernel._codes.clear()


def look_again() -> None:
    """For the folders of code."""
    for function in (code_cache.code_folders, code_cache.folder_to_fill, code_cache._digest_of_code):
        function.cache_clear()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache that is empty, for kernels that this process has not called."""
    monkeypatch.setenv("KRAFTLAKE_CACHE", str(tmp_path / "kraftlake"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "no folder"))
    look_again()
    forget(several_results)
    forget(no_result)
    (folder,) = code_cache.code_folders()
    yield folder
    look_again()


def test_arrays_named_tuples_and_numbers_go_in_and_numbers_come_out(cache: Path) -> None:
    pair = Pair(np.zeros(2, np.int64), np.frombuffer(b"abc", np.uint8))
    table = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert several_results(pair, table, -2) == (-30, True, 2**64 - 1, ord("c"))
    assert pair.numbers[0] == -30
    numbers = np.arange(4, dtype=np.int32)
    assert no_result(numbers) is None
    assert numbers.tolist() == [-1, 0, 1, 2]


def test_what_was_flattened_once_is_the_same_as_what_it_was_made_of(cache: Path) -> None:
    pair = Pair(np.zeros(2, np.int64), np.frombuffer(b"abc", np.uint8))
    table = np.arange(6, dtype=np.int32).reshape(2, 3)
    flattened = Flattened(pair)
    for factor in (-2, 3):
        assert several_results(flattened, table, factor) == (15 * factor, True, 2**64 - 1, ord("c"))
        assert pair.numbers[0] == 15 * factor
    assert several_results(pair, table, 1)[0] == 15
    assert len([*cache.glob("several_results-*.code")]) == 1, "one code for both"


def test_code_is_found_again_and_not_compiled(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_result(np.zeros(1, np.int32))
    forget(no_result)
    monkeypatch.setattr("kraftlake.kernels.aot.compiler.compile_kernel", None)
    numbers = np.zeros(1, np.int32)
    no_result(numbers)
    assert numbers[0] == -1


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied"])
def test_a_torn_or_damaged_file_is_never_run(cache: Path, damage: str) -> None:
    no_result(np.zeros(1, np.int32))
    (file,) = cache.glob("no_result-*.code")
    whole = file.read_bytes()
    torn = {"cut": whole[:-1], "flipped": whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:], "emptied": b""}[damage]
    file.write_bytes(torn)
    assert code_cache._read(file) is None
    forget(no_result)
    numbers = np.zeros(1, np.int32)
    no_result(numbers)
    assert numbers[0] == -1
    assert code_cache._read(file) is not None, "it was made again"


def test_only_its_user_may_touch_the_cache(cache: Path) -> None:
    assert cache.stat().st_mode & 0o777 == 0o700
    assert cache.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_code_that_others_could_have_written_is_not_run(cache: Path, mode: int) -> None:
    no_result(np.zeros(1, np.int32))
    (file,) = cache.glob("no_result-*.code")
    file.chmod(mode)
    assert code_cache._read(file) is None


def test_a_cache_that_others_can_replace_is_not_used(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    shutil.rmtree(cache.parent)
    cache.parent.symlink_to(tmp_path / "elsewhere")
    look_again()
    assert code_cache.code_folders() == ()


def test_other_sources_or_another_machine_have_another_folder(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    depends_on = code_cache._code_depends_on()
    monkeypatch.setattr(code_cache, "_code_depends_on", lambda: depends_on + b"x")
    look_again()
    (other,) = code_cache.code_folders()
    assert other != cache


def test_code_that_nobody_has_used_for_a_month_is_removed_when_new_code_is_kept(cache: Path) -> None:
    month = 31 * 24 * 60 * 60
    for name, age in {"stale": month, ".half-removed.7": month, "used": 60, "elsewhere": month}.items():
        folder = cache.parent / name
        folder.mkdir()
        (folder / "replay-0.code").write_bytes(b"code")
        os.utime(folder, (time.time() - age,) * 2)
    outside = cache.parent.parent / "outside"
    (cache.parent / "elsewhere").rename(outside)
    (cache.parent / "link").symlink_to(outside)
    no_result(np.zeros(1, np.int32))
    assert {path.name for path in cache.parent.iterdir()} == {cache.name, "used", "link"}
    assert (outside / "replay-0.code").exists()


def test_a_folder_in_use_does_not_grow_old(cache: Path) -> None:
    long_ago = time.time() - 29 * 24 * 60 * 60
    os.utime(cache, (long_ago, long_ago))
    look_again()
    assert code_cache.code_folders() == (cache,)
    assert cache.stat().st_mtime > time.time() - 60


@pytest.mark.parametrize(
    "wrong",
    [np.zeros(2, np.float64), np.zeros(2, ">i4"), np.zeros((2, 2), np.int32)[:, 0], [1], "text", True],
    ids=["floats", "byte order", "strides", "list", "text", "bool"],
)
def test_what_compiled_code_does_not_know_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="compiled code takes no"):
        no_result(wrong)


def test_a_function_that_allocates_is_refused_and_not_run() -> None:
    with pytest.raises(EnvironmentFaultError, match="can't compile allocates") as raised:
        allocates(3)
    assert isinstance(raised.value.__cause__, numba.TypingError)


def test_threads_that_are_first_together_get_the_same(cache: Path) -> None:
    arrays = [np.zeros(1000, np.int32) for _ in range(4)]
    threads = [threading.Thread(target=no_result, args=(array,)) for array in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((array == -1).all() for array in arrays)


FIRST_RUN = """
import numpy as np, sys
from kraftlake.kernels.replay.indexes import index_ids, move_fresh
index = np.zeros(4, np.int32)
index_ids(np.ones((1, 2), np.uint64), 1, index)
print(sorted(index.tolist()), "numba" in sys.modules)
"""


def first_run(limit: int | None = None, **environment: str) -> tuple[str, str]:
    """What FIRST_RUN prints and says, where no file can be longer than `limit` bytes, as on a disk that is full."""

    def limited() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        [sys.executable, "-c", FIRST_RUN],
        env=os.environ | environment,
        preexec_fn=limited,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr


def test_where_the_cache_cannot_be_written_code_is_kept_in_a_private_temporary_folder_and_compiled_once(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    environment = {"KRAFTLAKE_CACHE": str(tmp_path / "file" / "cache"), "TMPDIR": str(tmp_path)}
    printed, said = first_run(**environment)
    assert printed.startswith("[0, 0, 0, 1] True")
    assert said.count("\n") == 1
    assert f"so the code is kept in {tmp_path}/kraftlake-{os.getuid()}: set KRAFTLAKE_CACHE" in said
    (folder,) = tmp_path.glob("kraftlake-*")
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_dir()} == {0o700}
    assert first_run(**environment) == ("[0, 0, 0, 1] False\n", "")


AVAILABLE = """
from kraftlake import kernels
print(kernels.available(), kernels.available())
"""


def test_where_no_folder_takes_code_nothing_is_compiled_and_one_note_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "FIRST_RUN", AVAILABLE)
    environment = {"KRAFTLAKE_CACHE": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}
    printed, said = first_run(limit=100_000, **environment)
    assert printed == "False False\n"
    assert said.count("\n") == 1
    assert "slower: neither the user's cache folder nor the temporary one can hold compiled code" in said
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_processes_that_are_first_together_both_compile_say_so_and_the_next_one_needs_no_numba(tmp_path: Path) -> None:
    def start() -> subprocess.Popen[str]:
        environment = os.environ | {"KRAFTLAKE_CACHE": str(tmp_path)}
        pipe = subprocess.PIPE
        return subprocess.Popen([sys.executable, "-c", FIRST_RUN], env=environment, stdout=pipe, stderr=pipe, text=True)

    for process in [start(), start()]:
        printed, said = process.communicate()
        assert printed.startswith("[0, 0, 0, 1]"), said
        assert said.count("once") == ("True" in printed)
    assert start().communicate() == ("[0, 0, 0, 1] False\n", "")
    assert not list(tmp_path.rglob("*.tmp"))
