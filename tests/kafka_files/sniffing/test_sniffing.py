from __future__ import annotations

import contextlib
import errno
import gzip
import os
import shutil
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from google_crc32c import value as crc32c
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.kafka_files.sniffing.sniffing import sniff
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records.batch import encode_batch
from kraftlake.records.batch_header import CRC_FROM
from kraftlake.runtime.errors import KraftlakeError, NotASourceError
from tests.kafka_files.sample_files import (
    CRASH_TORN,
    KAFKA_44,
    METADATA,
    NEWEST_44,
    SAMPLES,
    SEGMENTS_44,
    copy_of,
    no_ops,
)


def data_batch(
    values: bytes = b"\x0a\x00\x00\x00\x01\x04hi\x00", count: int = 1, producer: bytes = b"\xff" * 14
) -> bytes:
    """A batch as a producer writes it: by default one record without a key, whose value is "hi"."""
    records = bytes((len(values) * 2,)) + values if values else b""
    body = bytearray(encode_batch(no_ops(0, count))[:61] + records)
    body[8:12] = (len(body) - 12).to_bytes(4, "big")
    body[43:57] = producer
    body[17:21] = crc32c(bytes(body[CRC_FROM:])).to_bytes(4, "big")
    return bytes(body)


HI = data_batch(b"\x00\x00\x00\x01\x04hi\x00")
WITH_KEY = data_batch(b"\x00\x00\x00\x02k\x04hi\x00")
IDEMPOTENT = data_batch(b"\x00\x00\x00\x01\x04hi\x00", producer=(7).to_bytes(8, "big") + b"\x00\x00" + bytes(4))


def refusal(path: Path) -> str:
    with pytest.raises(NotASourceError) as caught:
        sniff(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message


@pytest.mark.parametrize("sample", ["kafka-4.4", "crash-torn", "legacy-33"])
def test_every_file_of_the_samples_is_recognised_by_its_content(sample: str, tmp_path: Path) -> None:
    folder = SAMPLES / sample / "log" / "__cluster_metadata-0"
    kinds = {".log": SourceKind.SEGMENT, ".checkpoint": SourceKind.SNAPSHOT}
    assert sniff(folder) is SourceKind.DIRECTORY
    assert sniff(folder.parent) is SourceKind.DIRECTORY
    for file in folder.iterdir():
        if file.suffix in kinds:
            shutil.copy(file, tmp_path / "renamed")
            assert sniff(tmp_path / "renamed") is kinds[file.suffix]
        else:
            refusal(file)


def test_a_folder_with_the_delta_table_log_is_a_lake(tmp_path: Path) -> None:
    (tmp_path / "log" / "_delta_log").mkdir(parents=True)

    assert sniff(tmp_path) is SourceKind.LAKE
    assert f"name the lake, {tmp_path}" in refusal(tmp_path / "log")
    assert "name the lake" in refusal(tmp_path / "log" / "_delta_log")
    assert sniff("s3://bucket/lake") is SourceKind.LAKE


def test_any_other_delta_table_is_no_lake(tmp_path: Path) -> None:
    (tmp_path / "sales" / "_delta_log").mkdir(parents=True)

    assert "is a Delta table, but no lake" in refusal(tmp_path / "sales")


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".zip"])
def test_an_archive_is_recognised_by_its_content(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "bundle"
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a", "b")
    else:
        with tarfile.open(path, "w:gz" if suffix.endswith("gz") else "w") as tar:
            tar.add(KAFKA_44)

    assert sniff(path) is SourceKind.ARCHIVE


def test_a_missing_path_and_an_empty_folder_are_named(tmp_path: Path) -> None:
    assert "does not exist" in refusal(tmp_path / "gone")
    assert "is an empty folder" in refusal(tmp_path)
    (tmp_path / "file").touch()
    assert "is an empty file" in refusal(tmp_path / "file")
    assert "folder without segments" in refusal(tmp_path)


def test_a_fifo_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")

    assert "neither a folder nor a regular file" in refusal(tmp_path / "fifo")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (HI, "not metadata records"),
        (WITH_KEY, ""),
        (data_batch(b"\x00\x00\x00\x01\x08\x01\xff\x7f\x00\x00"), "not metadata records"),
        (IDEMPOTENT, "producer"),
        (data_batch(b"", count=1), ""),
    ],
)
def test_a_data_topics_segment_is_named_alone_and_in_its_folder(tmp_path: Path, content: bytes, why: str) -> None:
    folder = tmp_path / "foo-0"
    folder.mkdir()
    path = folder / f"{0:020d}.log"
    path.write_bytes(content)

    message = refusal(path)
    assert "is a data topic's segment" in message
    assert why in message
    assert "data topic's partition" in refusal(folder)


def test_a_folder_of_a_data_topic_is_named_even_when_its_segments_are_empty(tmp_path: Path) -> None:
    for name in ("foo-0", "bar"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{0:020d}.log").touch()

    assert "the folder of the partition foo-0" in refusal(tmp_path / "foo-0")
    assert "holds only empty segments" in refusal(tmp_path / "bar")


def test_a_fresh_metadata_directory_may_be_empty_but_for_a_segment(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    (folder / f"{0:020d}.log").touch()

    assert sniff(folder) is SourceKind.DIRECTORY


def test_a_log_directory_without_metadata_is_named(tmp_path: Path) -> None:
    shutil.copy(KAFKA_44.parent / "meta.properties", tmp_path)
    (tmp_path / "foo-0").mkdir()

    assert "log directory of a Kafka node without a metadata log" in refusal(tmp_path)


def test_a_folder_above_a_log_directory_is_a_directory_too(tmp_path: Path) -> None:
    shutil.copytree(KAFKA_44, tmp_path / "node" / "data" / "__cluster_metadata-0")

    assert sniff(tmp_path) is SourceKind.DIRECTORY


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("x.snapshot", bytes.fromhex("000148674bc700000000"), "is a producer snapshot"),
        ("renamed", bytes.fromhex("000148674bc700000000"), "is a producer snapshot"),
        ("0.index", bytes(100), "is an index of a segment"),
        ("0.timeindex", b"\0\0\1\2" * 9, "is an index of a segment"),
        ("x.parquet", b"PAR1" + bytes(100) + b"PAR1", "is a Parquet file"),
        ("quorum-state", b'{"leaderId":1}', "name the directory that it lies in"),
        ("meta.properties", b"version=1", "name the __cluster_metadata-0 directory"),
        ("zeros", bytes(5000), "nothing but zeros"),
        ("x.txt", b"hello, this is a text that is long enough to hold a batch header, is it not?", "starts with"),
        (f"{0:020d}.log", b"hello, this is a text that is long enough to hold a batch header, is it not?", "does not"),
        ("short", b"hello", "5 bytes"),
        (f"{0:020d}.log", bytes(8) + b"\0\0\0\x40" + bytes(4) + b"\1" + bytes(80), "before Kafka 0.11"),
    ],
)
def test_what_a_file_is_instead_is_named_with_a_way_out(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    (tmp_path / name).write_bytes(content)

    assert why in refusal(tmp_path / name)


def test_a_segment_whose_first_batch_is_damaged_is_still_a_segment(tmp_path: Path) -> None:
    content = bytearray((KAFKA_44 / SEGMENTS_44[0]).read_bytes())
    content[70] ^= 1
    (tmp_path / "x.log").write_bytes(content)

    assert sniff(tmp_path / "x.log") is SourceKind.SEGMENT


def test_a_directory_with_damaged_files_is_still_a_directory(tmp_path: Path) -> None:
    folder = copy_of(CRASH_TORN, tmp_path)
    for file in folder.iterdir():
        file.write_bytes(b"garbage" * 20)

    assert sniff(folder) is SourceKind.DIRECTORY


def test_a_folder_of_renamed_files_is_refused_by_their_name(tmp_path: Path) -> None:
    shutil.copy(KAFKA_44 / NEWEST_44, tmp_path / "copy.checkpoint")

    assert "copy.checkpoint" in refusal(tmp_path)


def test_what_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(b"x")

    def refuse(path: str, flags: int) -> int:  # root, who may run the tests, may read everything
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "open", refuse)

    assert "may not be read" in refusal(tmp_path / "x")


def test_what_only_root_may_read_at_the_top_of_a_file_system_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(KAFKA_44, tmp_path / "logs" / METADATA)
    (tmp_path / "lost+found").mkdir()
    scandir = os.scandir

    def refuse(path: str) -> Any:
        if Path(path).name in ("lost+found", "private"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)

    assert sniff(tmp_path) is SourceKind.DIRECTORY
    (tmp_path / "private").mkdir()
    assert f"{tmp_path / 'private'} may not be read" in refusal(tmp_path)


def test_a_path_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(NotASourceError):
        sniff("a\0b")
    with pytest.raises(NotASourceError):
        sniff("x" * 5000)


def test_control_characters_of_a_name_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[31m.log").touch()

    assert "\x1b" not in refusal(tmp_path)


@given(
    content=st.one_of(
        st.binary(max_size=300),
        st.binary(max_size=300).map(lambda b: HI[:61] + b),
        st.binary(max_size=200).map(gzip.compress),
    )
)
def test_arbitrary_bytes_are_something_or_refused(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("any") / "x"
    path.write_bytes(content)
    with contextlib.suppress(KraftlakeError):  # may assert nothing: any other error fails
        assert isinstance(sniff(path), SourceKind)
