"""The checksum: the known values, every kind of buffer, and a package without its compiled code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import google_crc32c
import pyarrow as pa
import pytest
from google_crc32c import python as loops
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records.crc32c import _PIECE, crc32c
from tests.cli.running import DIRECTORY, ROOT

SENTENCE = (
    "error: The package google-crc32c, which computes checksums, is not installed with its compiled code: "
    "`pip install --force-reinstall --only-binary :all: google-crc32c` installs it so.\n"
)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"123456789", 0xE3069283),
        (b"", 0),
        # RFC 3720, B.4
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
    ids=["digits", "nothing", "zeros", "ones", "ascending"],
)
def test_the_values_are_those_of_the_standard(data: bytes, expected: int) -> None:
    assert crc32c(data) == crc32c(memoryview(data)) == expected


@given(st.binary(), st.binary())
def test_it_goes_on_from_the_bytes_before(head: bytes, rest: bytes) -> None:
    assert crc32c(rest, crc32c(memoryview(head))) == loops.value(head + rest)


@pytest.mark.parametrize("size", [_PIECE - 1, _PIECE, _PIECE + 1, 3 * _PIECE + 7])
def test_every_kind_of_buffer_has_the_same_checksum(size: int) -> None:
    data = (bytes(range(251)) * (size // 251 + 2))[: size + 9]
    expected = crc32c(data[9:], 7)
    for view in (memoryview(data)[9:], memoryview(bytearray(data))[9:]):
        assert crc32c(view, 7) == crc32c(pa.py_buffer(view), 7) == expected
    assert crc32c(pa.py_buffer(data).slice(9), 7) == expected


def command(*words: object, path: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process that looks for packages in `path` first."""
    return subprocess.run(
        [sys.executable, "-m", "kraftlake", *map(str, words)],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": f"{path}{os.pathsep}{ROOT}"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def without_compiled_code(folder: Path) -> Path:
    """A folder with the package as it is where only its loops of Python were installed."""
    ignored = shutil.ignore_patterns("_crc32c.*", "__pycache__")
    shutil.copytree(Path(google_crc32c.__file__).parent, folder / "google_crc32c", ignore=ignored)
    return folder


@pytest.mark.parametrize("words", [("image", DIRECTORY), ("import", DIRECTORY, "{new}")], ids=["image", "import"])
def test_a_package_without_compiled_code_is_one_sentence(tmp_path: Path, words: tuple[object, ...]) -> None:
    new = tmp_path / "lake"
    done = command(*(str(word).format(new=new) for word in words), path=without_compiled_code(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (1, "", SENTENCE)
    assert not new.exists()


def test_a_missing_package_is_the_same_sentence(tmp_path: Path) -> None:
    (tmp_path / "google_crc32c.py").write_text("raise ModuleNotFoundError(name=__name__)\n", "utf-8")
    done = command("verify", DIRECTORY, path=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", SENTENCE)


def test_help_needs_no_checksum(tmp_path: Path) -> None:
    assert command("image", "--help", path=without_compiled_code(tmp_path)).returncode == 0
