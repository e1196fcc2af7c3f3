from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.kafka_files.directory import open_directory
from kraftlake.kafka_files.file_names import snapshot_name
from kraftlake.kafka_files.open_source import open_kafka_files
from kraftlake.kafka_files.writer import write_checkpoint, write_segment
from kraftlake.records.batch import encode_batch
from kraftlake.records.control_records import KRaftVersionRecord, Voter, VotersRecord
from kraftlake.records.metadata_records import NoOpRecord, UserScramCredentialRecord
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.runtime.errors import EnvironmentFaultError, OffsetError, UsageError
from tests.kafka_files.sample_files import CRASH_TORN, KAFKA_44, SAMPLES, SEGMENTS_44, no_ops

NO_OP = ApiMessageAndVersion(NoOpRecord(), 0)


@pytest.mark.parametrize("name", [f"kafka-4.4/log/__cluster_metadata-0/{name}" for name in SEGMENTS_44])
def test_a_segment_is_written_byte_for_byte_as_kafka_wrote_it(tmp_path: Path, name: str) -> None:
    source = SAMPLES / name

    size = write_segment(tmp_path / source.name, open_kafka_files(source).batches())

    assert (tmp_path / source.name).read_bytes() == source.read_bytes()
    assert size == source.stat().st_size


@pytest.mark.parametrize("folder", [KAFKA_44, CRASH_TORN])
def test_a_snapshot_of_kafka_is_written_again_byte_for_byte(tmp_path: Path, folder: Path) -> None:
    snapshots = open_directory(folder).snapshots
    for snapshot in snapshots:
        write_segment(tmp_path / snapshot.name, snapshot.batches())

        assert (tmp_path / snapshot.name).read_bytes() == (folder / snapshot.name).read_bytes()
    assert snapshots


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_compressed_segment_reads_back_equal(tmp_path: Path, compression: str) -> None:
    batches = list(open_directory(KAFKA_44).batches(0, 2026))
    path = tmp_path / SEGMENTS_44[0]

    path.write_bytes(b"".join(encode_batch(batch, compression) for batch in batches))

    assert list(open_kafka_files(path).batches()) == batches


def test_a_written_snapshot_has_the_records_in_the_shape_of_kafkas(tmp_path: Path) -> None:
    source = open_directory(KAFKA_44).snapshots[2]
    head, *data, _ = source.batches()
    version, voters = (m.message for m in head.messages()[1:])
    assert isinstance(version, KRaftVersionRecord)
    assert isinstance(voters, VotersRecord)
    path = tmp_path / source.name

    write_checkpoint(
        path,
        (message for batch in data for message in batch.messages()),
        epoch=source.epoch,
        timestamp=source.last_contained_log_timestamp,
        kraft_version=version.k_raft_version,
        voters=voters,
    )

    (written,) = open_kafka_files(path).snapshots
    assert (written.finished, written.end_offset, written.epoch) == (True, 4593, 2)
    assert written.last_contained_log_timestamp == source.last_contained_log_timestamp
    batches = list(written.batches())
    assert batches[0].values == head.values
    assert [m for b in batches if not b.control for m in b.messages()] == [m for b in data for m in b.messages()]
    assert max(batch.record_count for batch in batches) <= 1024
    assert {batch.epoch for batch in batches} == {2}


@pytest.mark.parametrize(("kraft_version", "voters", "types"), [
    (0, None, (3,)), (1, None, (3, 5)), (1, VotersRecord(voters=(Voter(voter_id=1),)), (3, 5, 6)),
])  # fmt: skip
def test_the_head_of_a_snapshot_depends_on_the_kraft_version(
    tmp_path: Path, kraft_version: int, voters: VotersRecord | None, types: tuple[int, ...]
) -> None:
    path = tmp_path / snapshot_name(10, 3)

    write_checkpoint(path, [NO_OP], epoch=3, timestamp=7, kraft_version=kraft_version, voters=voters)

    assert [b.control_types for b in open_kafka_files(path).snapshots[0].batches()] == [types, (), (4,)]


def test_voters_without_a_kraft_version_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"kraft\.version 0 has no voters"):
        write_checkpoint(tmp_path / "x.checkpoint", [], epoch=1, timestamp=0, voters=VotersRecord())
    assert list(tmp_path.iterdir()) == []


def test_large_records_make_batches_of_at_most_eight_mebibytes(tmp_path: Path) -> None:
    record = UserScramCredentialRecord(
        name="u", mechanism=1, salt=bytes(3_000_000), stored_key=b"", server_key=b"", iterations=4096
    )
    message = ApiMessageAndVersion(record, 0)
    path = tmp_path / snapshot_name(10, 3)

    write_checkpoint(path, [message] * 5, epoch=3, timestamp=7)

    assert [b.record_count for b in open_kafka_files(path).snapshots[0].batches()] == [1, 2, 2, 1, 1]


@given(
    count=st.sampled_from([0, 1, 1023, 1024, 1025, 2049]), epoch=st.integers(0, 2**31 - 1), time=st.integers(0, 2**41)
)
def test_a_snapshot_of_any_size_reads_back_equal(
    count: int, epoch: int, time: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("any") / snapshot_name(count, epoch)

    size = write_checkpoint(path, iter([NO_OP] * count), epoch=epoch, timestamp=time)

    (snapshot,) = open_kafka_files(path).snapshots
    batches = list(snapshot.batches())
    assert sum(batch.record_count for batch in batches) == count + 2
    assert [batch.record_count <= 1024 for batch in batches] == [True] * (2 + -(-count // 1024))
    assert (snapshot.finished, snapshot.size_in_bytes, snapshot.last_contained_log_timestamp) == (True, size, time)


def test_a_segment_with_a_hole_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(OffsetError, match="offset 2 is due, a batch starts at 3"):
        write_segment(tmp_path / f"{0:020d}.log", [no_ops(0, 2), no_ops(3)])
    with pytest.raises(OffsetError, match="offset 0 is due, a batch starts at 5"):
        write_segment(tmp_path / f"{0:020d}.log", [no_ops(5)])
    assert list(tmp_path.iterdir()) == []


def test_a_failure_in_the_middle_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / snapshot_name(10, 3)
    path.write_bytes(b"old")

    def messages() -> Iterator[ApiMessageAndVersion]:
        yield from [NO_OP] * 5000
        raise KeyError("the image is gone")

    with pytest.raises(KeyError):
        write_checkpoint(path, messages(), epoch=3, timestamp=7)

    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [(path.name, b"old")]


def test_only_the_owner_may_read_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / snapshot_name(10, 3)

    write_checkpoint(path, [NO_OP], epoch=3, timestamp=7)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_file_and_folder_are_synced_before_it_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[str, int]] = []
    fsync = os.fsync

    def record(descriptor: int) -> None:
        target = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append((target.suffix, len(list(tmp_path.glob("*.checkpoint")))))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", record)

    write_checkpoint(tmp_path / snapshot_name(10, 3), [NO_OP], epoch=3, timestamp=7)

    assert synced == [(".part", 0), ("", 1)]


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFaultError, match=r"x\.checkpoint can't be written: No such file"):
        write_checkpoint(tmp_path / "gone" / "x.checkpoint", [], epoch=1, timestamp=0)
    (tmp_path / "taken").mkdir()
    with pytest.raises(EnvironmentFaultError, match="taken can't be written: Is a directory"):
        write_checkpoint(tmp_path / "taken", [], epoch=1, timestamp=0)
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]
