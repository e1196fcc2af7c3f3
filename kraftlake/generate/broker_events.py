"""Events of brokers and the controller's records for them: shutdown, fencing, return, catch-up, leader balancing.

Each function changes the cluster and writes the records; it yields full tables. Source:
org.apache.kafka.controller.ReplicationControlManager. Imports numpy.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from kraftlake.generate.cluster import NO_LEADER, first_of
from kraftlake.generate.partition_records import changes
from kraftlake.generate.rows import Records
from kraftlake.generate.writer import ClusterLogWriter, chunks, messages_as_records
from kraftlake.records.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
)
from kraftlake.records.metadata_version import LATEST_PRODUCTION, MINIMUM_OF_KAFKA_4

FENCE, UNFENCE, SHUTTING_DOWN = 1, -1, 1
MAX_ELECTIONS = 1_000
"""Number of elections in one pass of the leader balancer (Kafka's MAX_ELECTIONS_PER_IMBALANCE)."""

_CHANGE = LATEST_PRODUCTION.broker_registration_change_record_version


def register(writer: ClusterLogWriter, broker: int) -> Iterator[pa.Table]:
    """Register a starting broker, which is fenced until it has caught up with the metadata."""
    cluster = writer.cluster
    cluster.epoch[broker] = writer.offset
    record = RegisterBrokerRecord(
        broker_id=broker,
        incarnation_id=cluster.uuid(cluster.uuids(1), 0),
        broker_epoch=writer.offset,
        end_points=(BrokerEndpoint(name="PLAINTEXT", host=f"broker-{broker}.example", port=9092, security_protocol=0),),
        features=(
            BrokerFeature(
                name="metadata.version",
                min_supported_version=MINIMUM_OF_KAFKA_4.level,
                max_supported_version=LATEST_PRODUCTION.level,
            ),
        ),
        rack=rack_name(int(cluster.rack[broker])),
        log_dirs=(cluster.uuid(cluster.directory, broker),),
    )
    yield from writer.messages((record, LATEST_PRODUCTION.register_broker_record_version))


def unfence(writer: ClusterLogWriter, broker: int) -> Iterator[pa.Table]:
    """Unfence a broker that has caught up: it leads the partitions without a leader that have it in the ISR."""
    cluster = writer.cluster
    cluster.alive[broker] = True
    hosted = cluster.hosted_by(broker) & cluster.in_sync & (cluster.leader == NO_LEADER)[:, None]
    rows = np.flatnonzero(hosted.any(1))
    leader = np.full(len(rows), broker, np.int32)
    parts = changes(cluster, rows, leader=leader)
    cluster.leader[rows] = leader
    yield from writer.batch(_registration_change(writer, broker, fenced=UNFENCE), *parts)


def fence(writer: ClusterLogWriter, broker: int) -> Iterator[pa.Table]:
    """Fence a broker whose session has expired."""
    writer.cluster.alive[broker] = False
    yield from _leave(writer, broker, _registration_change(writer, broker, fenced=FENCE))


def shut_down(writer: ClusterLogWriter, broker: int) -> Iterator[pa.Table]:
    """Shut a broker down: it leaves ISRs and leadership where another replica can take over."""
    writer.cluster.alive[broker] = False
    yield from _leave(writer, broker, _registration_change(writer, broker, in_controlled_shutdown=SHUTTING_DOWN))


def _leave(writer: ClusterLogWriter, broker: int, record: Records) -> Iterator[pa.Table]:
    cluster = writer.cluster
    hosted = cluster.hosted_by(broker) & cluster.in_sync
    rows = np.flatnonzero(hosted.any(1))
    rows = rows[(cluster.leader[rows] != NO_LEADER) | (cluster.in_sync[rows].sum(1) > 1)]
    in_sync = cluster.in_sync[rows] & ~hosted[rows]
    # The last member stays in the ISR: no other replica has all acknowledged records.
    in_sync = np.where(in_sync.any(1)[:, None], in_sync, cluster.in_sync[rows])
    replicas = cluster.replicas[rows]
    leader = cluster.leader[rows].copy()
    led = leader == broker
    leader[led] = first_of(replicas[led], (in_sync & cluster.alive[replicas])[led])
    parts = changes(cluster, rows, isr=in_sync, leader=leader)
    cluster.in_sync[rows], cluster.leader[rows] = in_sync, leader
    yield from writer.batch(*parts, record)


def catch_up(writer: ClusterLogWriter, broker: int) -> Iterator[pa.Table]:
    """Add a broker that has caught up as follower to the ISRs of its partitions, by their leaders."""
    cluster = writer.cluster
    behind = cluster.hosted_by(broker) & ~cluster.in_sync & (cluster.leader != NO_LEADER)[:, None]
    rows = np.flatnonzero(behind.any(1))
    for leader in np.unique(cluster.leader[rows]).tolist():
        of_leader = rows[cluster.leader[rows] == leader]
        in_sync = cluster.in_sync[of_leader] | behind[of_leader]
        parts = changes(cluster, of_leader, isr=in_sync)
        cluster.in_sync[of_leader] = in_sync
        yield from writer.batch(*parts)


def balance(writer: ClusterLogWriter) -> Iterator[pa.Table]:
    """Elect preferred leaders that are alive and in sync, MAX_ELECTIONS partitions at a time."""
    cluster = writer.cluster
    preferred = cluster.replicas[:, 0]
    rows = np.flatnonzero((cluster.leader != preferred) & cluster.in_sync[:, 0] & cluster.alive[preferred])
    for some in chunks(rows, MAX_ELECTIONS):
        parts = changes(cluster, some, leader=preferred[some])
        cluster.leader[some] = preferred[some]
        yield from writer.batch(*parts)


def come_back(writer: ClusterLogWriter, broker: int) -> Iterator[pa.Table]:
    """Restart a broker after some seconds, and let it catch up."""
    writer.now_ms += int(writer.cluster.random.integers(3_000, 10_000))
    yield from register(writer, broker)
    writer.now_ms += int(writer.cluster.random.integers(500, 2_000))
    yield from unfence(writer, broker)
    writer.now_ms += int(writer.cluster.random.integers(1_000, 5_000))
    yield from catch_up(writer, broker)


def rack_name(rack: int) -> str:
    """zone-a, zone-b, …"""
    return f"zone-{chr(ord('a') + rack)}" if rack < 26 else f"zone-{rack}"


def _registration_change(
    writer: ClusterLogWriter, broker: int, *, fenced: int = 0, in_controlled_shutdown: int = 0
) -> Records:
    record = BrokerRegistrationChangeRecord(
        broker_id=broker,
        broker_epoch=int(writer.cluster.epoch[broker]),
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
    )
    return messages_as_records([(record, _CHANGE)])
