"""Logs of clusters whose brokers have addresses, features and log directories, record by record at given seconds."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kraftlake.diagnosis.doctor.finding import Finding
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid
from tests.cli.made_logs import TIME, TOPIC_ID, directory_of
from tests.cli.running import run
from tests.replay.queries.test_quorum_report import elected

Step = tuple[float, Message]
"""A record, and the second at which it is written."""


def uuid(text: str) -> Uuid:
    """The id that a word stands for."""
    return Uuid(text.encode().ljust(16, b"."))


def register(id_: int, epoch: int, *, process: str | None = None, host: str | None = None, **fields: Any) -> Message:
    """The registration of a broker, fenced as every one is at first; `process` names the incarnation."""
    endpoint = r.BrokerEndpoint(name="PLAINTEXT", host=host or f"b{id_}.example", port=9092, security_protocol=0)
    made = {
        "incarnation_id": uuid(process or f"p{id_}-{epoch}"),
        "end_points": (endpoint,),
        "log_dirs": (uuid(f"a{id_}"), uuid(f"b{id_}")),
    }
    return r.RegisterBrokerRecord(broker_id=id_, broker_epoch=epoch, **made | fields)


def change(id_: int, epoch: int, **fields: Any) -> Message:
    return r.BrokerRegistrationChangeRecord(broker_id=id_, broker_epoch=epoch, **fields)


def unfence(id_: int, epoch: int) -> Message:
    return change(id_, epoch, fenced=-1)


def fence(id_: int, epoch: int) -> Message:
    return change(id_, epoch, fenced=1)


def partition(number: int, *replicas: int, directories: Sequence[str]) -> Message:
    return r.PartitionRecord(
        partition_id=number, topic_id=TOPIC_ID, replicas=replicas, isr=replicas, leader=replicas[0], leader_epoch=0,
        partition_epoch=0, directories=tuple(map(uuid, directories)),
    )  # fmt: skip


def isr(number: int, *members: int, **fields: Any) -> Message:
    return r.PartitionChangeRecord(partition_id=number, topic_id=TOPIC_ID, isr=members, **fields)


def cluster(*brokers: int, level: int = 33) -> list[Step]:
    """Brokers that are registered and unfenced at second 0, each with the epoch of its id, and a topic `foo`."""
    messages: list[Message] = [r.FeatureLevelRecord(name="metadata.version", feature_level=level)]
    for id_ in brokers:
        messages += [register(id_, id_), unfence(id_, id_)]
    messages.append(r.TopicRecord(name="foo", topic_id=TOPIC_ID))
    return [(0, message) for message in messages]


def log_of(folder: Path, steps: Sequence[Step], voters: Sequence[int] = (1,)) -> Path:
    """The metadata directory with an election at offset 0, and a batch for each record, from offset 1 on."""
    batches = [elected(0, 1, *voters, dynamic=False)]
    for offset, (second, message) in enumerate(steps, start=1):
        some = [ApiMessageAndVersion(message, type(message).VERSIONS.high)]
        batches.append(RecordBatch.of(offset, 1, TIME + round(second * 1000), some))
    return directory_of(folder, batches)


def output_of(finding: Finding) -> str:
    """What the command of a finding prints."""
    return run(*shlex.split(finding.command)[1:]).stdout
