"""Branches of compiled code guide the fuzzer, by the flags that the kernels are built with."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernels.guarded_builds import fuzzer_environment
from tests.wheel import REPOSITORY

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="atheris has wheels for x86-64 alone")

BEHIND_BRANCHES = """
int read_bytes(const unsigned char *data, long size) {
    if (size > 3 && data[0] == 'k') if (data[1] == 'a') if (data[2] == 'f') if (data[3] == 'k') return data[size];
    return 0;
}
"""
"""Four bytes that nothing random has, and then a read beyond the buffer."""
FUZZ = """
import ctypes, sys, atheris
library = ctypes.CDLL(sys.argv.pop(1))
def one(data):
    library.read_bytes((ctypes.c_ubyte * len(data)).from_buffer_copy(data), len(data))
atheris.Setup(sys.argv, one)
atheris.Fuzz()
"""


def library(flags: list[str], folder: Path) -> Path:
    source, made = folder / "read.c", folder / f"read-{len(flags)}.so"
    source.write_text(BEHIND_BRANCHES)
    caches = dict.fromkeys(("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"), str(folder / "zig"))
    compiler = (sys.executable, "-m", "ziglang", "cc", *flags, "-shared", str(source), "-o", str(made))
    subprocess.run(compiler, env=os.environ | caches, check=True, timeout=300)
    return made


def fuzz(library: Path, folder: Path) -> tuple[str, list[bytes]]:
    """What the fuzzer says after some runs, and the beginnings of the inputs with which it found a fault."""
    folder.mkdir()
    words = (str(library), "-seed=1", "-runs=100000", f"-artifact_prefix={folder}/")
    done = subprocess.run(
        [sys.executable, "-c", FUZZ, *words],
        env=os.environ | fuzzer_environment(), capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    return done.stderr, [path.read_bytes()[:4] for path in folder.iterdir()]


def test_a_read_beyond_a_buffer_is_found_behind_branches_by_counting_them_and_not_without(tmp_path: Path) -> None:
    sys.path.insert(0, str(REPOSITORY / "build_backend"))
    try:
        from kernel_build import GUIDED
    finally:
        sys.path.pop(0)
    said, found = fuzz(library(GUIDED, tmp_path), tmp_path / "guided")
    assert found == [b"kafk"], said
    assert "heap-buffer-overflow" in said
    blind = [flag for flag in GUIDED if not flag.startswith("-fsanitize-coverage")]
    said, found = fuzz(library(blind, tmp_path), tmp_path / "blind")
    assert found == [], said
    assert "Done 100000 runs" in said
