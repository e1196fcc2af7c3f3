"""Logs of small clusters: a healthy one, and what befalls it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from kraftlake.diagnosis.doctor.diagnosis import Diagnosis
from kraftlake.diagnosis.doctor.finding import Finding
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.runtime.errors import UnwritableMetadataError
from tests.cli.made_logs import TIME, TOPIC_ID, directory_of
from tests.replay.queries.test_quorum_report import elected

SECOND = 1_000
HOUR = 3_600 * SECOND


def broker(id_: int, *, fenced: bool = False) -> r.RegisterBrokerRecord:
    return r.RegisterBrokerRecord(broker_id=id_, broker_epoch=id_, fenced=fenced)


def partition(number: int, *replicas: int) -> r.PartitionRecord:
    return r.PartitionRecord(
        partition_id=number, topic_id=TOPIC_ID, replicas=replicas, isr=replicas, leader=replicas[0]
    )


def change(number: int, **fields: object) -> r.PartitionChangeRecord:
    return r.PartitionChangeRecord(partition_id=number, topic_id=TOPIC_ID, **fields)  # type: ignore[arg-type]


def config(name: str, value: str | None, *, type_: int = 2, resource: str = "foo") -> r.ConfigRecord:
    return r.ConfigRecord(resource_type=type_, resource_name=resource, name=name, value=value)


HEALTHY: tuple[Message, ...] = (
    r.FeatureLevelRecord(name="metadata.version", feature_level=19),
    broker(1),
    broker(2),
    broker(3),
    r.TopicRecord(name="foo", topic_id=TOPIC_ID),
    partition(0, 1, 2, 3),
    partition(1, 2, 3, 1),
)
BEGIN = len(HEALTHY) + 1
"""The offset of what befalls the cluster; offset 0 is the leader's."""


def time_of(offset: int, *, later: int = 0) -> int:
    """The time of an offset; `later` for what comes after the first two offsets that befall the cluster."""
    return TIME + offset * SECOND + (later if offset > BEGIN + 1 else 0)


def batches_of(*befalls: Message, later: int = 0) -> list[RecordBatch]:
    """A leader's epoch with a healthy cluster, and what befalls it, a batch a record."""
    made = [elected(0, 1, 1, dynamic=False)]
    for offset, message in enumerate((*HEALTHY, *befalls), start=1):
        made.append(_batch(offset, time_of(offset, later=later), message))
    return made


def _batch(offset: int, time: int, message: Message) -> RecordBatch:
    """A batch of one record, in the lowest version that has all of its fields."""
    newest = type(message).VERSIONS.high or 0
    for version in range(newest):
        with suppress(UnwritableMetadataError):
            return RecordBatch.of(offset, 1, time, [ApiMessageAndVersion(message, version)])
    return RecordBatch.of(offset, 1, time, [ApiMessageAndVersion(message, newest)])


def log_of(folder: Path, *befalls: Message, later: int = 0) -> Path:
    """The metadata directory of the one voter, node 1."""
    return directory_of(folder, batches_of(*befalls, later=later))


def by_check(diagnosis: Diagnosis) -> dict[str, Finding]:
    """The findings by their checks; of two of one check the worse."""
    return {finding.check: finding for finding in reversed(diagnosis.findings)}
