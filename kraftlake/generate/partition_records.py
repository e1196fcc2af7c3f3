"""Records of partitions of a generated cluster, many at a time: creations and changes. Imports numpy."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from kraftlake.generate.cluster import Cluster
from kraftlake.generate.rows import Records
from kraftlake.generate.template import Gap, RecordTemplate, big_endian
from kraftlake.records.metadata_records import PartitionChangeRecord, PartitionRecord, TopicRecord
from kraftlake.records.metadata_version import LATEST_PRODUCTION

_VERSION = LATEST_PRODUCTION.partition_record_version
_KEY: dict[str, Gap] = {"partition_id": ("int32", 0), "topic_id": ("uuid", 0)}


def creations(cluster: Cluster, topics: Any) -> Records:
    """The TopicRecord of each new topic, followed by its PartitionRecords."""
    rows, partitions = cluster.rows_of(topics), cluster.plan.partitions
    topic = _topic_template(len(cluster.topic_name(0)))
    partition = _partition_template(cluster.plan.replication_factor)
    names = np.array([cluster.topic_name(number) for number in topics.tolist()], "S").view(np.uint8)
    columns = {"name": names.reshape(len(topics), -1), "topic_id": cluster.topic_ids[topics]}
    data = np.empty((len(topics), topic.size + partitions * partition.size), np.uint8)
    data[:, : topic.size] = topic.fill(len(topics), columns)
    replicas = big_endian(cluster.replicas[rows])
    columns = _which(cluster, rows) | {
        "replicas": replicas,
        "isr": replicas,
        "leader": big_endian(cluster.leader[rows]),
        "directories": cluster.directory[cluster.replicas[rows]].reshape(len(rows), -1),
    }
    data[:, topic.size :] = partition.fill(len(rows), columns).reshape(len(topics), -1)
    return Records(
        data=data.reshape(-1),
        sizes=np.tile([topic.size, *[partition.size] * partitions], len(topics)),
        kinds=np.tile(np.array([0, *[1] * partitions], np.int16), len(topics)),
        names=(topic.kind, partition.kind),
    )


def changes(cluster: Cluster, rows: Any, *, isr: Any = None, leader: Any = None) -> list[Records]:
    """A change record for each changed row, grouped by shape.

    `isr` bool[n, R] has the replicas in the new ISR, `leader` int32[n] the new leaders; None means unchanged. Records
    of rows with an unchanged leader have no leader.
    """
    new_leader = np.zeros(len(rows), bool) if leader is None else leader != cluster.leader[rows]
    sizes = np.zeros(len(rows), np.int64)
    if isr is not None:
        sizes = np.where((isr != cluster.in_sync[rows]).any(1), isr.sum(1), 0)
    shapes = sizes * 2 + new_leader
    out: list[Records] = []
    for shape in np.unique(shapes).tolist():
        if not shape:
            continue
        chosen = np.flatnonzero(shapes == shape)
        at = rows[chosen]
        columns = _which(cluster, at)
        size, with_leader = shape >> 1, shape & 1
        if size:
            columns["isr"] = big_endian(cluster.replicas[at][isr[chosen]].reshape(len(at), size))
        if with_leader:
            columns["leader"] = big_endian(leader[chosen])
        template = _change_template(size, bool(with_leader))
        out.append(Records.of_matrix(template.kind, template.fill(len(at), columns)))
    return out


def reassignments(cluster: Cluster, rows: Any, targets: Any, *, leaving: Any, joining: Any) -> Records:
    """The records that start to move one replica: `targets` int32[n, R], `leaving` and `joining` int32[n]."""
    replicas = np.concatenate([targets, leaving[:, None]], axis=1).astype(np.int32)
    template = _begin_template(replicas.shape[1])
    columns = _which(cluster, rows) | {
        "replicas": big_endian(replicas),
        "removing_replicas": big_endian(leaving.astype(np.int32)),
        "adding_replicas": big_endian(joining.astype(np.int32)),
        "directories": cluster.directory[replicas].reshape(len(rows), -1),
    }
    return Records.of_matrix(template.kind, template.fill(len(rows), columns))


def completions(cluster: Cluster, rows: Any, targets: Any, leaders: Any) -> list[Records]:
    """The records that complete it: replicas and ISR are the targets; the leader if it has changed."""
    out: list[Records] = []
    moved = leaders != cluster.leader[rows]
    for with_leader in (False, True):
        chosen = np.flatnonzero(moved == with_leader)
        if not len(chosen):
            continue
        template = _end_template(targets.shape[1], with_leader)
        columns = _which(cluster, rows[chosen]) | {
            "isr": big_endian(targets[chosen]),
            "replicas": big_endian(targets[chosen]),
            "directories": cluster.directory[targets[chosen]].reshape(len(chosen), -1),
        }
        if with_leader:
            columns["leader"] = big_endian(leaders[chosen])
        out.append(Records.of_matrix(template.kind, template.fill(len(chosen), columns)))
    return out


def _which(cluster: Cluster, rows: Any) -> dict[str, Any]:
    return {
        "partition_id": big_endian(cluster.number[rows]),
        "topic_id": cluster.topic_ids[cluster.topic[rows]],
    }


@cache
def _topic_template(name_length: int) -> RecordTemplate:
    return RecordTemplate(TopicRecord, 0, {"name": ("text", name_length), "topic_id": ("uuid", 0)})


@cache
def _partition_template(replicas: int) -> RecordTemplate:
    gaps: dict[str, Gap] = _KEY | {
        "replicas": ("int32", replicas),
        "isr": ("int32", replicas),
        "leader": ("int32", 0),
        "directories": ("uuid", replicas),
    }
    return RecordTemplate(PartitionRecord, _VERSION, gaps, {"leader_epoch": 0, "partition_epoch": 0})


@cache
def _change_template(isr: int, leader: bool) -> RecordTemplate:
    gaps = dict(_KEY)
    if isr:
        gaps["isr"] = ("int32", isr)
    if leader:
        gaps["leader"] = ("int32", 0)
    return RecordTemplate(PartitionChangeRecord, _VERSION, gaps)


@cache
def _begin_template(replicas: int) -> RecordTemplate:
    lists: dict[str, Gap] = {
        "replicas": ("int32", replicas),
        "removing_replicas": ("int32", 1),
        "adding_replicas": ("int32", 1),
        "directories": ("uuid", replicas),
    }
    return RecordTemplate(PartitionChangeRecord, _VERSION, _KEY | lists)


@cache
def _end_template(replicas: int, leader: bool) -> RecordTemplate:
    gaps: dict[str, Gap] = _KEY | {
        "isr": ("int32", replicas),
        "replicas": ("int32", replicas),
        "directories": ("uuid", replicas),
    }
    if leader:
        gaps["leader"] = ("int32", 0)
    return RecordTemplate(PartitionChangeRecord, _VERSION, gaps, {"removing_replicas": (), "adding_replicas": ()})
