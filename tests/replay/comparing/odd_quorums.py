"""Directories of odd quorums: a second quorum beside the first, and what a split of one log leaves behind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from kraftlake.kafka_files.writer import write_segment
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from tests.replay.made_logs import TIME, data, metadata_version, no_op, partition, topic, uuid_of
from tests.replay.queries.test_quorum_report import elected, node_at

HOUR = 3_600_000


def quorum_log(
    *voters: int,
    brokers: Iterable[int] = (),
    topics: int = 0,
    epochs: int = 3,
    no_ops: int = 5,
    begins: int = TIME,
    dynamic: bool = False,
) -> list[RecordBatch]:
    """The log of a quorum from its first election on: registrations and topics in epoch 1, no-ops in each epoch."""
    batches: list[RecordBatch] = []

    def end() -> int:
        return batches[-1].last_offset + 1 if batches else 0

    for epoch in range(1, epochs + 1):
        batches.append(at(elected(end(), epoch, *voters, dynamic=dynamic and epoch == 1), begins + end()))
        if epoch == 1:
            batches.append(data(end(), metadata_version(), epoch=1, time=begins + end()))
            for id_ in brokers:
                registration = r.RegisterBrokerRecord(
                    broker_id=id_, broker_epoch=end(), incarnation_id=uuid_of(id_), fenced=False
                )
                batches.append(data(end(), registration, epoch=1, time=begins + end()))
            for number in range(topics):
                both = (topic(number), partition(number))
                batches.append(data(end(), *both, epoch=1, time=begins + end()))
        first = end()
        batches += [no_op(offset, epoch=epoch, time=begins + offset) for offset in range(first, first + no_ops)]
    return batches


def at(batch: RecordBatch, time: int) -> RecordBatch:
    """A control batch at another time."""
    return RecordBatch.control_of(batch.base_offset, batch.epoch, time, [one.message for one in batch.messages()])


def split_brain(folder: Path) -> list[str]:
    """Controller 1 with the log of the brokers, and 2 and 3, which were formatted anew and elected one of them."""
    good = quorum_log(1, 2, 3, brokers=(4, 5, 6), topics=8, epochs=3)
    second = quorum_log(2, 1, 3, epochs=5, no_ops=8, begins=TIME + HOUR)
    return [node_at(folder, 1, good), node_at(folder, 2, second), node_at(folder, 3, second[:-2])]


def trimmed_node(folder: Path, node: int, batches: Sequence[RecordBatch]) -> str:
    """The directory of a node whose log starts with the first of these batches."""
    path = node_at(folder, node, [])
    log = Path(path) / "__cluster_metadata-0"
    (log / f"{0:020d}.log").unlink()
    write_segment(log / f"{batches[0].base_offset:020d}.log", batches)
    return path
