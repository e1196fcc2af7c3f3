"""The episodes of a generated history: each changes the cluster, writes the records and describes itself.

Imports numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from kraftlake.generate import broker_events as events
from kraftlake.generate.cluster import NO_LEADER
from kraftlake.generate.partition_records import changes, completions, creations, reassignments
from kraftlake.generate.plan import MAX_RECORDS_PER_BATCH
from kraftlake.generate.writer import ClusterLogWriter, chunks
from kraftlake.records.metadata_records import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    RemoveTopicRecord,
)
from kraftlake.records.metadata_version import LATEST_PRODUCTION
from kraftlake.records.schema import Message

TOPIC = 2
"""ConfigResource.Type.TOPIC"""
TOPICS_AT_ONCE = 20_000
MOVES_AT_ONCE = 1_000

EpisodeTables: TypeAlias = Generator[pa.Table, None, str]
"""A generator that yields full tables and returns a short description."""


def set_up(writer: ClusterLogWriter) -> EpisodeTables:
    """Write the first records of a cluster: features, brokers and topics."""
    cluster, plan = writer.cluster, writer.cluster.plan
    features = {
        "metadata.version": LATEST_PRODUCTION.level,
        "group.version": 1,
        "transaction.version": 2,
    }
    levels: list[tuple[Message, int]] = [
        (FeatureLevelRecord(name=name, feature_level=level), 0) for name, level in features.items()
    ]
    begin = BeginTransactionRecord(name="Bootstrap records")
    yield from writer.messages((begin, 0), *levels, (EndTransactionRecord(), 0))
    for broker in cluster.brokers:
        yield from events.register(writer, broker)
    for broker in cluster.brokers:
        yield from events.unfence(writer, broker)
    for topics in chunks(np.arange(plan.topics), max(1, TOPICS_AT_ONCE // plan.partitions)):
        cluster.place(topics)
        yield from writer.topics(creations(cluster, topics), plan.partitions + 1)
    return f"{plan.brokers} brokers in {plan.racks} racks, {plan.topics} topics of {plan.partitions} partitions"


def rolling_restart(writer: ClusterLogWriter) -> EpisodeTables:
    """Shut down and restart each broker in turn; then elect the preferred leaders."""
    for broker in writer.cluster.brokers:
        yield from events.shut_down(writer, broker)
        writer.now_ms += int(writer.cluster.random.integers(1_000, 5_000))
        yield from events.fence(writer, broker)
        yield from events.come_back(writer, broker)
        if writer.is_long_enough:
            return f"brokers 1 to {broker}, one after the other"
    yield from events.balance(writer)
    return f"brokers 1 to {writer.cluster.plan.brokers}, one after the other"


def zone_outage(writer: ClusterLogWriter) -> EpisodeTables:
    """Write an outage of a rack: all its brokers are fenced within a few seconds, and return later."""
    cluster = writer.cluster
    rack = int(cluster.random.integers(cluster.plan.racks))
    dark = [broker for broker in cluster.brokers if cluster.rack[broker] == rack]
    for broker in dark:
        yield from events.fence(writer, broker)
        writer.now_ms += int(cluster.random.integers(10, 1_500))
    yield from writer.quiet(int(cluster.random.integers(10_000, 60_000)))
    for broker in dark:
        yield from events.come_back(writer, broker)
    yield from events.balance(writer)
    return f"{events.rack_name(rack)} with brokers {', '.join(map(str, dark))}"


def isr_flaps(writer: ClusterLogWriter) -> EpisodeTables:
    """Remove slow followers from some ISRs and add them soon afterwards, several times."""
    cluster = writer.cluster
    count = max(1, len(cluster.leader) // 200)
    total = 0
    for _ in range(5):
        rows = np.unique(cluster.random.integers(0, len(cluster.leader), count))
        followers = cluster.in_sync[rows] & (cluster.replicas[rows] != cluster.leader[rows][:, None])
        rows, followers = rows[followers.any(1)], followers[followers.any(1)]
        # The last follower of each partition; any follower would do.
        slow = np.zeros_like(followers)
        slow[np.arange(len(rows)), followers.shape[1] - 1 - followers[:, ::-1].argmax(1)] = True
        for in_sync in (cluster.in_sync[rows] & ~slow, cluster.in_sync[rows] | slow):
            for leader in np.unique(cluster.leader[rows]).tolist():
                chosen = cluster.leader[rows] == leader
                yield from writer.batch(*changes(cluster, rows[chosen], isr=in_sync[chosen]))
                cluster.in_sync[rows[chosen]] = in_sync[chosen]
            writer.now_ms += int(cluster.random.integers(1_000, 30_000))
        total += len(rows)
    return f"{total} times a follower fell out of an ISR and came back"


def reassignment_storm(writer: ClusterLogWriter) -> EpisodeTables:
    """Move one replica of each of many partitions to another broker."""
    cluster = writer.cluster
    count = max(1, len(cluster.leader) // 20)
    rows = np.unique(cluster.random.integers(0, len(cluster.leader), count))
    rows = rows[cluster.in_sync[rows].all(1) & (cluster.leader[rows] != NO_LEADER)]
    joining = cluster.random.integers(1, cluster.plan.brokers + 1, len(rows)).astype(np.int32)
    fresh = (cluster.replicas[rows] != joining[:, None]).all(1) & cluster.alive[joining]
    rows, joining = rows[fresh], joining[fresh]
    places = cluster.random.integers(0, cluster.plan.replication_factor, len(rows))
    for some in chunks(np.arange(len(rows)), MOVES_AT_ONCE):
        yield from _move(writer, rows[some], joining[some], places[some])
    return f"{len(rows)} replicas moved"


def _move(writer: ClusterLogWriter, rows: Any, joining: Any, places: Any) -> EpisodeTables:
    cluster, every = writer.cluster, np.arange(len(rows))
    leaving = cluster.replicas[rows, places]
    targets = cluster.replicas[rows].copy()
    targets[every, places] = joining
    yield from writer.batch(reassignments(cluster, rows, targets, leaving=leaving, joining=joining))
    writer.now_ms += int(cluster.random.integers(1_000, 60_000))
    leaders = np.where(cluster.leader[rows] == leaving, targets[:, 0], cluster.leader[rows]).astype(np.int32)
    yield from writer.batch(*completions(cluster, rows, targets, leaders))
    cluster.replicas[rows], cluster.leader[rows] = targets, leaders
    return ""


def topic_churn(writer: ClusterLogWriter) -> EpisodeTables:
    """Delete some topics and create them again under the same names, with other ids and replicas."""
    cluster, plan = writer.cluster, writer.cluster.plan
    count = min(plan.topics, max(1, plan.topics // 20), 1_000)
    topics = np.sort(cluster.random.choice(plan.topics, count, replace=False))
    for topic in topics.tolist():
        yield from writer.messages((RemoveTopicRecord(topic_id=cluster.uuid(cluster.topic_ids, topic)), 0))
    writer.now_ms += int(cluster.random.integers(1_000, 30_000))
    cluster.topic_ids[topics] = cluster.uuids(count)
    cluster.place(topics)
    yield from writer.topics(creations(cluster, topics), plan.partitions + 1)
    return f"{count} topics deleted and created again"


def config_changes(writer: ClusterLogWriter) -> EpisodeTables:
    """Set `retention.ms` of some topics, and remove it again from some of them."""
    cluster, plan = writer.cluster, writer.cluster.plan
    topics = cluster.random.integers(0, plan.topics, min(plan.topics, 20)).tolist()
    values = ("604800000", "86400000", None)
    for topic in topics:
        record = ConfigRecord(
            resource_type=TOPIC,
            resource_name=cluster.topic_name(topic),
            name="retention.ms",
            value=values[int(cluster.random.integers(len(values)))],
        )
        yield from writer.messages((record, 0))
        writer.now_ms += int(cluster.random.integers(10, 3_000))
    return f"retention.ms of {len(set(topics))} topics"


EPISODES: dict[str, Callable[[ClusterLogWriter], EpisodeTables]] = {
    "rolling-restart": rolling_restart,
    "zone-outage": zone_outage,
    "isr-flaps": isr_flaps,
    "reassignment-storm": reassignment_storm,
    "topic-churn": topic_churn,
    "config-changes": config_changes,
}
assert MOVES_AT_ONCE <= MAX_RECORDS_PER_BATCH
