"""Records of partitions of a generated cluster, many at a time: creations and changes. Imports numpy."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from kraftlake.generate.cluster import GeneratedCluster
from kraftlake.generate.rows import Records
from kraftlake.generate.template import Gap, RecordTemplate, big_endian
from kraftlake.records.metadata_records import PartitionChangeRecord, PartitionRecord, TopicRecord
from kraftlake.records.metadata_version import LATEST_PRODUCTION

_VERSION = LATEST_PRODUCTION.partition_record_version
_SINGLE = {"partition_id", "topic_id", "leader"}
"""Fields that are not lists."""
_KINDS = {"name": ("text", 1), "topic_id": ("uuid", 16), "directories": ("uuid", 16)}
"""Type and bytes of one element of the fields that are not int32."""


def creations(cluster: GeneratedCluster, topics: Any) -> Records:
    """The TopicRecord of each new topic, followed by its PartitionRecords."""
    rows, partitions = cluster.rows_of(topics), cluster.plan.partitions
    names = np.array([cluster.topic_name(number) for number in topics.tolist()], "S").view(np.uint8)
    of_topics = {"name": names.reshape(len(topics), -1), "topic_id": cluster.topic_ids[topics]}
    replicas = big_endian(cluster.replicas[rows])
    of_partitions = _which(cluster, rows) | {
        "replicas": replicas,
        "isr": replicas,
        "leader": big_endian(cluster.leader[rows]),
        "directories": cluster.directory[cluster.replicas[rows]].reshape(len(rows), -1),
    }
    topic = _template_of(TopicRecord, of_topics)
    partition = _template_of(PartitionRecord, of_partitions, leader_epoch=0, partition_epoch=0)
    data = np.empty((len(topics), topic.size + partitions * partition.size), np.uint8)
    data[:, : topic.size] = topic.fill(len(topics), of_topics)
    data[:, topic.size :] = partition.fill(len(rows), of_partitions).reshape(len(topics), -1)
    return Records(
        data=data.reshape(-1),
        sizes=np.tile([topic.size, *[partition.size] * partitions], len(topics)),
        kinds=np.tile(np.array([0, *[1] * partitions], np.int16), len(topics)),
        names=(topic.kind, partition.kind),
    )


def changes(cluster: GeneratedCluster, rows: Any, *, isr: Any = None, leader: Any = None) -> list[Records]:
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
        out.append(_change_records(columns))
    return out


def reassignments(cluster: GeneratedCluster, rows: Any, targets: Any, *, leaving: Any, joining: Any) -> Records:
    """The records that start to move one replica: `targets` int32[n, R], `leaving` and `joining` int32[n]."""
    replicas = np.concatenate([targets, leaving[:, None]], axis=1).astype(np.int32)
    columns = _which(cluster, rows) | {
        "replicas": big_endian(replicas),
        "removing_replicas": big_endian(leaving.astype(np.int32)),
        "adding_replicas": big_endian(joining.astype(np.int32)),
        "directories": cluster.directory[replicas].reshape(len(rows), -1),
    }
    return _change_records(columns)


def completions(cluster: GeneratedCluster, rows: Any, targets: Any, leaders: Any) -> list[Records]:
    """The records that complete a reassignment: the targets as replicas and ISR, and the leader if it has changed."""
    out: list[Records] = []
    moved = leaders != cluster.leader[rows]
    for with_leader in (False, True):
        chosen = np.flatnonzero(moved == with_leader)
        if not len(chosen):
            continue
        columns = _which(cluster, rows[chosen]) | {
            "isr": big_endian(targets[chosen]),
            "replicas": big_endian(targets[chosen]),
            "directories": cluster.directory[targets[chosen]].reshape(len(chosen), -1),
        }
        if with_leader:
            columns["leader"] = big_endian(leaders[chosen])
        out.append(_change_records(columns, removing_replicas=(), adding_replicas=()))
    return out


def _which(cluster: GeneratedCluster, rows: Any) -> dict[str, Any]:
    return {
        "partition_id": big_endian(cluster.number[rows]),
        "topic_id": cluster.topic_ids[cluster.topic[rows]],
    }


def _change_records(columns: dict[str, Any], **fixed: Any) -> Records:
    template = _template_of(PartitionChangeRecord, columns, **fixed)
    return Records.of_matrix(template.kind, template.fill(len(columns["topic_id"]), columns))


def _template_of(message: Any, columns: dict[str, Any], **fixed: Any) -> RecordTemplate:
    """The template of a message class whose gaps take the columns: uint8[n, bytes of the field]."""
    return _template(message, tuple((name, column.shape[1]) for name, column in columns.items()), tuple(fixed.items()))


@cache
def _template(message: Any, widths: tuple[tuple[str, int], ...], fixed: tuple[tuple[str, Any], ...]) -> RecordTemplate:
    gaps: dict[str, Gap] = {}
    for name, width in widths:
        kind, size = _KINDS.get(name, ("int32", 4))
        gaps[name] = (kind, 0 if name in _SINGLE else width // size)
    return RecordTemplate(message, 0 if message is TopicRecord else _VERSION, gaps, dict(fixed))
