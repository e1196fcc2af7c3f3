from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kraftlake.kafka_files.directory import open_directory
from kraftlake.kafka_files.faults import BrokenFileError
from kraftlake.kafka_files.snapshots.snapshot import Snapshot, read_snapshot
from kraftlake.kafka_files.stored_file import DiskFile
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.control_records import CONTROL_NAMES, SnapshotFooterRecord, SnapshotHeaderRecord
from tests.kafka_files.sample_files import CRASH_TORN, KAFKA_44, NEWEST_44, expected, no_ops


def snapshot_of(tmp_path: Path, content: bytes, name: str = NEWEST_44) -> Snapshot:
    (tmp_path / name).write_bytes(content)
    return read_snapshot(DiskFile.at(tmp_path / name))


def header(offset: int = 0) -> bytes:
    return encode_batch(RecordBatch.control_of(offset, 2, 5, [SnapshotHeaderRecord(last_contained_log_timestamp=4)]))


def footer(offset: int) -> bytes:
    return encode_batch(RecordBatch.control_of(offset, 2, 5, [SnapshotFooterRecord()]))


@pytest.mark.parametrize(("sample", "folder"), [("kafka-4.4", KAFKA_44), ("crash-torn", CRASH_TORN)])
def test_the_batches_of_snapshots_are_those_that_kafka_counts(sample: str, folder: Path) -> None:
    snapshots = open_directory(folder).snapshots
    listed = expected(sample, "snapshots")
    assert len(snapshots) == len(listed) > 0

    for snapshot, row in zip(snapshots, listed, strict=True):
        found = [
            [b.base_offset, b.last_offset, b.epoch, b.timestamp, b.record_count, b.control] for b in snapshot.batches()
        ]
        assert found == [batch[:6] for batch in row["batches"]]
        names = [[CONTROL_NAMES[t] for t in batch.control_types] for batch in snapshot.batches()]
        assert names == [[text.split()[0] for text in batch[6]] for batch in row["batches"]]
        assert (snapshot.name, snapshot.end_offset, snapshot.epoch) == (row["file"], row["endOffset"], row["epoch"])
        assert snapshot.size_in_bytes == row["bytes"]
        assert f"lastContainedLogTimestamp={snapshot.last_contained_log_timestamp})" in row["batches"][0][6][0]


def test_the_snapshot_of_offset_zero_is_for_bootstrap() -> None:
    assert [snapshot.bootstrap for snapshot in open_directory(KAFKA_44).snapshots] == [True, False, False]


@pytest.mark.parametrize("cut", [1, 63, 64, 1000, 60000, 60853])
def test_a_snapshot_without_its_footer_is_unfinished(tmp_path: Path, cut: int) -> None:
    (tmp_path / NEWEST_44).write_bytes((KAFKA_44 / NEWEST_44).read_bytes())
    os.truncate(tmp_path / NEWEST_44, 60853 - cut)

    (snapshot,) = open_directory(tmp_path).snapshots

    assert not snapshot.finished
    assert snapshot.end_offset == 4593


def test_a_snapshot_with_bytes_after_its_footer_is_unfinished(tmp_path: Path) -> None:
    content = (KAFKA_44 / NEWEST_44).read_bytes()

    assert snapshot_of(tmp_path, content).finished
    assert not snapshot_of(tmp_path, content + b"x").finished


def test_an_unfinished_snapshot_gives_its_whole_batches_and_then_says_where_it_ends(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, header() + encode_batch(no_ops(1, 3, epoch=2)) + footer(4)[:-1])
    batches = snapshot.batches()

    assert [next(batches).last_offset, next(batches).last_offset] == [0, 3]
    with pytest.raises(BrokenFileError, match="offset 4: a batch of 75 bytes, only 74 of which are there"):
        next(batches)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (footer(0), "does not start with a snapshot header"),
        (encode_batch(no_ops(0)) + footer(1), "does not start with a snapshot header"),
        (header() + footer(1) + encode_batch(no_ops(2, epoch=2)), "a batch after the snapshot's footer"),
        (header() + footer(2), "offsets 1 to 1 are missing"),
        (header(7), "offsets 0 to 6 are missing"),
    ],
)
def test_a_snapshot_of_another_shape_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(BrokenFileError, match=message):
        list(snapshot_of(tmp_path, content).batches())


@pytest.mark.parametrize("content", [b"", bytes(100), b"\xff" * 100, b"hello"])
def test_garbage_is_an_unfinished_snapshot_of_unknown_time(tmp_path: Path, content: bytes) -> None:
    snapshot = snapshot_of(tmp_path, content)

    assert (snapshot.finished, snapshot.last_contained_log_timestamp) == (False, -1)


def test_a_snapshot_of_another_name_does_not_know_its_offset(tmp_path: Path) -> None:
    content = (KAFKA_44 / NEWEST_44).read_bytes()

    renamed = snapshot_of(tmp_path, content, "copy.checkpoint")
    bootstrap = snapshot_of(tmp_path, content, "bootstrap.checkpoint")

    assert (renamed.named, renamed.bootstrap, renamed.end_offset, renamed.finished) == (False, False, 0, True)
    assert (bootstrap.named, bootstrap.bootstrap, bootstrap.end_offset) == (True, True, 0)


@given(at=st.integers(16, 60852), bit=st.integers(0, 7))
def test_a_flipped_bit_of_a_snapshot_is_found_but_in_an_epoch(
    at: int, bit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    original = (KAFKA_44 / NEWEST_44).read_bytes()
    positions = [batch.position for batch in read_snapshot(DiskFile.at(KAFKA_44 / NEWEST_44)).batches()]
    assume(not any(position + 12 <= at < position + 16 for position in positions))  # no CRC covers a batch's epoch
    content = bytearray(original)
    content[at] ^= 1 << bit
    snapshot = snapshot_of(tmp_path_factory.mktemp("flip"), bytes(content))

    with pytest.raises(BrokenFileError):
        list(snapshot.batches())


def test_damage_names_the_first_invalid_byte_and_is_none_of_a_sound_snapshot(tmp_path: Path) -> None:
    content = bytearray((KAFKA_44 / NEWEST_44).read_bytes())
    assert snapshot_of(tmp_path, bytes(content)).damage() is None
    content[len(content) // 2] ^= 1
    damage = snapshot_of(tmp_path, bytes(content)).damage()
    assert damage is not None
    assert damage.endswith("a batch whose CRC does not match its bytes")
