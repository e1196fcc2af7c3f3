"""Text files, plain, compressed, and in archives."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kraftlake.kafka_files.archives.text_files import text_files
from kraftlake.runtime.errors import CorruptDataError
from tests.kafka_files.archives.test_archive import PACKERS, Packer

TEXT = b"some lines\n" * 1000


def contents(path: Path) -> dict[str, bytes]:
    found = text_files(str(path), lambda name: name.endswith(".txt"))
    return {one.name: one.file.open().read_at(0, one.file.size) for one in found}


@PACKERS
def test_the_wanted_members_of_an_archive_are_read(pack: Packer, tmp_path: Path) -> None:
    content = {"a/b/one.txt": TEXT, "two.txt.gz": gzip.compress(TEXT), "a/other.log": TEXT}
    packed = pack(tmp_path / "packed", content)
    assert contents(packed) == {f"{packed}/a/b/one.txt": TEXT, f"{packed}/two.txt": TEXT}


def test_a_file_alone_is_read_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(TEXT)
    (tmp_path / "packed").write_bytes(gzip.compress(TEXT))
    (tmp_path / "empty").touch()
    for name, data in {"plain": TEXT, "packed": TEXT, "empty": b""}.items():
        assert contents(tmp_path / name) == {str(tmp_path / name): data}


def test_a_file_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    (tmp_path / "packed.gz").write_bytes(gzip.compress(TEXT)[:-9])
    with pytest.raises(CorruptDataError, match="is cut short"):
        contents(tmp_path / "packed.gz")
