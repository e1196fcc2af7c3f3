"""A log as controllers of Kafka 3.3 to 3.9 wrote them, which Kafka 4.4 goes on with: old configs, records and codes."""

from __future__ import annotations

from pathlib import Path

from kraftlake.kafka_files.writer import write_segment
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion
from tests.histories import uuid_of

ORDERS, BILLS = uuid_of(11), uuid_of(12)
FORMAT, DIFFERENCE = "message.format.version", "message.timestamp.difference.max.ms"


def _config(resource: str, name: str, value: str | None, type_: int = 2) -> r.ConfigRecord:
    return r.ConfigRecord(resource_type=type_, resource_name=resource, name=name, value=value)


def _broker(id_: int, version: int) -> ApiMessageAndVersion:
    point = r.BrokerEndpoint(name="PLAINTEXT", host="h", port=9092, security_protocol=0)
    feature = r.BrokerFeature(name="metadata.version", min_supported_version=1, max_supported_version=7)
    record = r.RegisterBrokerRecord(
        broker_id=id_, incarnation_id=uuid_of(20 + id_), broker_epoch=id_, end_points=(point,), features=(feature,),
        is_migrating_zk_broker=version >= 2,
    )  # fmt: skip
    return ApiMessageAndVersion(record, version)


def _partition(topic_id: object, leader: int = 1) -> r.PartitionRecord:
    return r.PartitionRecord(
        partition_id=0, topic_id=topic_id, replicas=(1, 2), isr=(1, 2), leader=leader, leader_epoch=0,
        partition_epoch=0,
    )  # fmt: skip


def _acl(id_: int, operation: int) -> r.AccessControlEntryRecord:
    return r.AccessControlEntryRecord(
        id=uuid_of(id_), resource_type=2, resource_name="orders", pattern_type=3, principal="User:a", host="*",
        operation=operation, permission_type=3,
    )  # fmt: skip


def _level(level: int) -> r.FeatureLevelRecord:
    return r.FeatureLevelRecord(name="metadata.version", feature_level=level)


def _scram(mechanism: int) -> r.UserScramCredentialRecord:
    return r.UserScramCredentialRecord(
        name="a", mechanism=mechanism, salt=b"s", stored_key=b"k", server_key=b"t", iterations=4096
    )


def _quota(type_: str, name: str | None, key: str, *, remove: bool = False) -> r.ClientQuotaRecord:
    return r.ClientQuotaRecord(
        entity=(r.EntityData(entity_type=type_, entity_name=name),), key=key, value=5.0, remove=remove
    )


BATCHES: list[list[ApiMessageAndVersion | Message]] = [
    [_level(7)],
    [_broker(1, 0), _broker(2, 1), r.UnfenceBrokerRecord(id=1, epoch=1), r.UnfenceBrokerRecord(id=2, epoch=2)],
    [r.TopicRecord(name="orders", topic_id=ORDERS), _config("orders", FORMAT, "2.8"), _partition(ORDERS)],
    [_config("orders", "retention.ms", "1"), _config("orders", DIFFERENCE, "9"), r.NoOpRecord()],
    [r.TopicRecord(name="bills", topic_id=BILLS), _config("bills", FORMAT, "3.0"), _partition(BILLS, 2)],
    [_config("", "log.message.format.version", "2.8", 4), _config("1", "no.such.config", "x", 4)],
    [_config("m", "metrics.push", "1", 16), _config("m", "interval.ms", "1000", 16), _config("1", "a.B", "INFO", 8)],
    [_config("g", "no.such.config", "1", 32), _config("g", "consumer.session.timeout.ms", "46000", 32)],
    [_acl(31, 3), _acl(32, 16), _acl(33, 99)],
    [_quota("ip", "10.0.0.1", "connection_creation_rate"), _quota("ip", None, "no_such_key"), _quota("x", "y", "z")],
    [r.ZkMigrationStateRecord(zk_migration_state=state) for state in (0, 1, 2)],
    [_level(12), _scram(2), _scram(3), _scram(99), r.FeatureLevelRecord(name="of.another.release", feature_level=3)],
    [_config("orders", FORMAT, None), _config("orders", "no.such.config", None), _broker(2, 2)],
    [r.PartitionChangeRecord(partition_id=0, topic_id=ORDERS, isr=(1,), leader=1)],
    [r.RemoveTopicRecord(topic_id=BILLS)],
    [_level(25), _quota("x", "y", "z", remove=True), r.RemoveUserScramCredentialRecord(name="a", mechanism=7)],
    [_config("orders", "segment.bytes", "1048576"), _config("orders", FORMAT, "3.0")],
]
"""The batches of the log; the last ones are of Kafka 4."""


def old_log(folder: Path) -> Path:
    """A metadata directory with that log."""
    directory = folder / "__cluster_metadata-0"
    directory.mkdir()
    offset, batches = 0, []
    for records in BATCHES:
        versioned = [one if isinstance(one, ApiMessageAndVersion) else ApiMessageAndVersion(one, 0) for one in records]
        batches.append(RecordBatch.of(offset, 1, 1_700_000_000_000 + offset, versioned))
        offset += len(records)
    write_segment(directory / f"{0:020d}.log", batches)
    return directory
