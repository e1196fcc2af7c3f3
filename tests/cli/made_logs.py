"""Logs that no sample holds: strings that attack a terminal, records that can't be replayed, a data topic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

from kraftlake.kafka_files.writer import write_segment
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid

TIME = 1_700_000_000_000
HOSTILE = "\x1b[31mred\x1b]0;title\x07\r\n\t[bold]markup[/bold] [link=http://x]:boom: \u202egnp.exe\x9b2J\u2028end"
TOPIC_ID = Uuid(bytes(range(1, 17)))


def batch_of(offset: int, *messages: Message) -> RecordBatch:
    return RecordBatch.of(offset, 1, TIME + offset, [ApiMessageAndVersion(message, 0) for message in messages])


def directory_of(folder: Path, batches: Sequence[RecordBatch], cluster_id: str | None = "made") -> Path:
    """A metadata directory with one segment, and meta.properties beside it."""
    directory = folder / "__cluster_metadata-0"
    directory.mkdir(parents=True)
    write_segment(directory / f"{batches[0].base_offset:020d}.log", batches)
    if cluster_id is not None:
        (folder / "meta.properties").write_text(f"version=1\ncluster.id={cluster_id}\nnode.id=1\n")
    return directory


def hostile_log(folder: Path) -> Path:
    """A log in which every string attacks."""
    return directory_of(
        folder,
        [
            batch_of(0, r.FeatureLevelRecord(name="metadata.version", feature_level=19)),
            batch_of(1, r.TopicRecord(name=HOSTILE, topic_id=TOPIC_ID)),
            batch_of(
                2,
                r.PartitionRecord(
                    partition_id=0, topic_id=TOPIC_ID, replicas=(1, 2), isr=(1,), leader=1, leader_epoch=0,
                    partition_epoch=0,
                ),
            ),
            batch_of(3, r.ConfigRecord(resource_type=4, resource_name=HOSTILE, name=HOSTILE, value=HOSTILE)),
            batch_of(
                4,
                r.ClientQuotaRecord(
                    entity=(r.EntityData(entity_type="user", entity_name=HOSTILE),), key=HOSTILE, value=1.5
                ),
            ),
            batch_of(
                5,
                r.AccessControlEntryRecord(
                    id=TOPIC_ID, resource_type=2, resource_name=HOSTILE, pattern_type=3, principal=HOSTILE,
                    host=HOSTILE, operation=3, permission_type=3,
                ),
            ),
            batch_of(
                6,
                r.RegisterBrokerRecord(
                    broker_id=1, broker_epoch=6, rack=HOSTILE,
                    end_points=(r.BrokerEndpoint(name=HOSTILE, host=HOSTILE, port=9, security_protocol=0),),
                ),
            ),
            batch_of(7, r.UserScramCredentialRecord(name=HOSTILE, mechanism=1, salt=b"s", iterations=4096)),
            batch_of(8, r.NoOpRecord()),
        ],
        cluster_id=None,
    )  # fmt: skip


def unreplayable_log(folder: Path) -> Path:
    """A log whose record at offset 2 changes a partition that does not exist."""
    return directory_of(
        folder,
        [
            batch_of(0, r.FeatureLevelRecord(name="metadata.version", feature_level=19)),
            batch_of(1, r.TopicRecord(name="foo", topic_id=TOPIC_ID)),
            batch_of(2, r.PartitionChangeRecord(partition_id=7, topic_id=TOPIC_ID, leader=1)),
            batch_of(3, r.NoOpRecord()),
        ],
    )


def data_topic_segment(folder: Path) -> Path:
    """The segment of a topic, whose values are no metadata records."""
    path = folder / "00000000000000000000.log"
    path.write_bytes(encode_batch(attrs.evolve(batch_of(0, r.NoOpRecord()), values=(b"hello",))))
    return path
