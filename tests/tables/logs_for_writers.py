"""What tests of writers of derived tables share: logs, and how they are cut into pieces."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from kraftlake.generate.episodes import EPISODES
from kraftlake.generate.plan import Plan
from kraftlake.kafka_files.directory import open_directory
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import to_rows
from kraftlake.records.schema import Message
from kraftlake.replay.log.delta_chunk import LogBegin
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.runtime.errors import UnknownRecordError
from kraftlake.tables.changes_writer import ChangesWriter
from tests.generate.made_up import MadeUp
from tests.replay.made_logs import begin, data, end, partition, topic, uuid_of
from tests.tables.sample_log import SAMPLES

MakeRows = Callable[[list[Sequence[RecordBatch]]], pa.Table]
"""What makes rows of a log, by batches taken so many at a time."""

REAL_LOGS = ("kafka-4.4", "crash-torn")
HISTORIES_OF_REAL_LOGS = [
    pytest.param(
        "kafka-4.4",
        marks=pytest.mark.skipif(
            os.environ.get("KRAFTLAKE_TESTS") != "long",
            reason="KRAFTLAKE_TESTS=long: the quick run has its histories in tests/tables/history/test_writers.py",
        ),
    ),
    "crash-torn",
]


def cut(batches: Sequence[RecordBatch], cuts: Iterable[int]) -> list[Sequence[RecordBatch]]:
    """The batches in pieces that end in front of those numbered `cuts`; the last may be empty."""
    ends = sorted({min(at, len(batches)) for at in cuts})
    return [batches[start:stop] for start, stop in zip([0, *ends], [*ends, len(batches)], strict=True)]


def real_log(sample: str) -> list[RecordBatch]:
    """The batches of one of REAL_LOGS."""
    return [*open_directory(SAMPLES / sample / "log" / "__cluster_metadata-0").batches()]


def generated_log(factor: int) -> list[RecordBatch]:
    """One in which everything happens that can, of partitions with so many replicas."""
    made = MadeUp(Plan(topics=7, partitions=5, replication_factor=factor, seed=3))
    for episode in EPISODES.values():
        made.play(episode)
    return made.batches


def begun(writer: ChangesWriter) -> LogReplay:
    """The replay of a log from its beginning that a writer takes the deltas of."""
    replay = LogReplay()
    writer.open(replay, LogBegin())
    return replay


def take_into(writer: ChangesWriter, replay: LogReplay, piece: Sequence[RecordBatch]) -> None:
    """Let a writer take the deltas of batches."""
    for chunk in replay.take(to_rows(piece)) if piece else ():
        writer.take_deltas(chunk)


def taken(writer: ChangesWriter, pieces: Iterable[Sequence[RecordBatch]], schema: pa.Schema) -> pa.Table:
    """What a writer makes of the log's rows, by batches taken so many at a time."""
    replay = begun(writer)
    for piece in pieces:
        take_into(writer, replay, piece)
    return writer.drain().cast(schema)


NEWER = [
    pytest.param(record, id=type(record).__name__)
    for record in (r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(1), leader=2), begin(), end())
]
"""Records that some Kafka to come may write in another version."""


def check_refused_in_a_newer_version(
    record: Message, by_loader: Callable[[list[RecordBatch]], Any], by_writer: Callable[[list[RecordBatch]], Any]
) -> None:
    """A record in a version that this release lacks is refused with its offset, in the words of a loader."""
    (value,) = data(0, record).values
    after = r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(1), leader=2)
    log = [data(0, topic(1), partition(1)), data(2, value[:2] + b"\x09" + value[3:]), data(3, after)]
    faults = []
    for read in (by_loader, by_writer):
        with pytest.raises(UnknownRecordError, match="in version 9 is not known to this release") as fault:
            read(log)
        faults.append((str(fault.value), fault.value.offset))
    assert faults[0] == faults[1]
    assert faults[0][1] == 2


def table_of(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """Rows that were made one by one."""
    columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


def check_real_log(batches: list[RecordBatch], make_rows: MakeRows, expected: pa.Table) -> None:
    """Whole and in many pieces it gives the expected rows."""
    assert expected.num_rows > 10
    assert make_rows([batches]).equals(expected)
    assert make_rows(cut(batches, range(0, len(batches), 97))).equals(expected)
