"""What a Kafka node refuses to start with, `verify` calls unsound: Kafka's own classes open the same directories."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

import kraftlake
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import KRaftVersionRecord, SnapshotFooterRecord
from kraftlake.records.schema import Message
from tests.interop.kafka_classes import KafkaClasses
from tests.replay.made_logs import (
    MadeSnapshot,
    no_op,
    reference_image,
    small_log,
    snapshot_of,
    trimmed,
    write_directory,
)

pytestmark = pytest.mark.spark

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
STARTS = Path(__file__).with_name("KafkaStarts.java")
METADATA_TOPIC = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.fixture(scope="module")
def node() -> Iterator[KafkaClasses]:
    classes = KafkaClasses(STARTS)
    yield classes
    classes.close()


def control(offset: int, *records: tuple[int, Message]) -> RecordBatch:
    batch = RecordBatch.control_of(offset, 3, 1_700_000_000_000, [message for _, message in records])
    return attrs.evolve(batch, control_types=tuple(type_ for type_, _ in records))


def version(level: int) -> tuple[int, Message]:
    return 5, KRaftVersionRecord(version=0, k_raft_version=level)


def plain(folder: Path) -> Path:
    return write_directory(folder, small_log(), cuts=[9], snapshots=[snapshot_of(reference_image(small_log(), 14))])


def named(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (plain(folder) / name).touch()
        return folder / "__cluster_metadata-0"

    return make


def holding(name: str, content: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (plain(folder) / name).write_bytes(content)
        return folder / "__cluster_metadata-0"

    return make


def ending(*batches: RecordBatch) -> Callable[[Path], Path]:
    return lambda folder: write_directory(folder, [*small_log(), *batches])


def starting_at_nine(*ends: int) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        log = trimmed(small_log(), 9, *ends)
        return write_directory(folder, log.records, snapshots=log.snapshots)

    return make


def with_kraft_version(*levels: int) -> Callable[[Path], Path]:
    """A snapshot whose header batch states these levels."""

    def make(folder: Path) -> Path:
        sound = snapshot_of(reference_image(small_log(), 14))
        header, *rest = sound.records
        assert header.control
        said = attrs.evolve(
            header,
            values=(header.values[0], *(control(0, version(level)).values[0] for level in levels)),
            control_types=(header.control_types[0], *(5 for _ in levels)),
            timestamps=(header.timestamp,) * (1 + len(levels)),
        )
        return write_directory(folder, small_log(), snapshots=[_renumbered(sound, [said, *rest])])

    return make


def _renumbered(snapshot: MadeSnapshot, batches: list[RecordBatch]) -> MadeSnapshot:
    offset, numbered = 0, []
    for batch in batches:
        numbered.append(attrs.evolve(batch, base_offset=offset))
        offset = numbered[-1].last_offset + 1
    return attrs.evolve(snapshot, records=tuple(numbered))


def own_timestamps() -> RecordBatch:
    batch = no_op(18, epoch=3)
    twice = attrs.evolve(batch, values=batch.values * 2, timestamps=(batch.timestamp - 1, batch.timestamp))
    assert twice.record_count == 2
    return twice


MADE: dict[str, Callable[[Path], Path]] = {
    "plain": plain,
    "start covered": starting_at_nine(9),
    "start covered further on": starting_at_nine(15),
    "start not covered": starting_at_nine(),
    "start covered too early": starting_at_nine(5),
    "unknown control type": ending(control(18, (0, SnapshotFooterRecord(version=0)))),
    "kraft.version 1": ending(control(18, version(1))),
    "kraft.version 2": ending(control(18, version(2))),
    "timestamps of their own": ending(own_timestamps()),
    "kraft.version in a snapshot": with_kraft_version(1),
    "kraft.version twice in a snapshot": with_kraft_version(1, 1),
    **{
        name: named(name)
        for name in (
            "copy.log", "00000000000000000000 (1).log", "99999999999999999999.log", "x.index", "a.snapshot",
            "newest.checkpoint", "bootstrap.checkpoint", "x.checkpoint.part", "00000000000000000007-x.checkpoint",
            "notes.txt", "00000000000000000007-0000000001.checkpoint.deleted",
        )
    },
    **{
        f"{name} {content!r}": holding(name, content)
        for name, content in (
            ("leader-epoch-checkpoint", b""), ("leader-epoch-checkpoint", b"0\n1\n1 0\n"),
            ("leader-epoch-checkpoint", b"1\n0\n"), ("leader-epoch-checkpoint", b"0\n2\n1 0\n"),
            ("leader-epoch-checkpoint", b"0\n1\n1 x\n"), ("leader-epoch-checkpoint", b"0\n1\n-1 0\n"),
            ("leader-epoch-checkpoint", b"\xff\xfe"),
            ("partition.metadata", METADATA_TOPIC), ("partition.metadata", b""),
            ("partition.metadata", b"version: 0\n"), ("partition.metadata", METADATA_TOPIC.replace(b"AQ", b"AA")),
            ("partition.metadata", METADATA_TOPIC.replace(b"AAAA", b"BAAA", 1)),
            ("quorum-state", b""), ("quorum-state", b'{"leaderId":1,"leaderEpoch":1,"votedId":-1}'),
            ("quorum-state", b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
                             b'"data_version":1}'),
            ("quorum-state", b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"data_version":2}'),
        )
    },
}  # fmt: skip

FEW = (
    "plain", "start covered", "start not covered", "unknown control type", "timestamps of their own",
    "kraft.version twice in a snapshot", "copy.log", "newest.checkpoint",
)  # fmt: skip


@pytest.mark.parametrize("name", MADE if LONG else FEW)
def test_verify_calls_sound_what_kafka_starts_with(name: str, node: KafkaClasses, tmp_path: Path) -> None:
    directory = MADE[name](tmp_path)
    report = kraftlake.open(directory).verify()
    answer = node.ask(directory)  # Kafka changes the directory
    assert report.sound == ("refused" not in answer), (answer, report.problems)


def test_verify_is_stricter_about_segments_that_are_missing(node: KafkaClasses, tmp_path: Path) -> None:
    directory = write_directory(tmp_path, small_log(), cuts=[6, 9])
    (directory / f"{6:020d}.log").unlink()
    assert not kraftlake.open(directory).verify().sound
    assert node.ask(directory) == {"start": 0, "end": 18}
