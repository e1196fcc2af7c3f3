"""The generated cluster: live brokers, replicas, ISRs and leaders, as arrays. Imports numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.generate.plan import Plan
from kraftlake.records.uuid import Uuid

NO_LEADER = -1


class GeneratedCluster:
    """The state of a generated cluster: brokers are 1 to B, each partition is a row, a topic's rows are contiguous.

    By broker id: `rack` int32[B + 1], `alive` bool[B + 1], `epoch` int64[B + 1], and `directory` uint8[B + 1, 16], the
    id of its log directory. By row: `topic` int32[N] (topic number), `number` int32[N] (partition id), `replicas`
    int32[N, R] (preferred leader first), `in_sync` bool[N, R] (ISR membership of each replica), `leader` int32[N].
    `topic_ids` is uint8[T, 16].
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.random = np.random.default_rng(plan.seed)
        brokers = plan.brokers + 1
        self.rack = np.arange(-1, plan.brokers, dtype=np.int32) % plan.racks
        self.alive = np.zeros(brokers, bool)
        self.epoch = np.full(brokers, -1, np.int64)
        self.directory = self.uuids(brokers)
        self.topic_ids = self.uuids(plan.topics)
        count = plan.partition_count
        self.topic = np.repeat(np.arange(plan.topics, dtype=np.int32), plan.partitions)
        self.number = np.tile(np.arange(plan.partitions, dtype=np.int32), plan.topics)
        self.replicas = np.zeros((count, plan.replication_factor), np.int32)
        self.in_sync = np.ones((count, plan.replication_factor), bool)
        self.leader = np.full(count, NO_LEADER, np.int32)
        # Racks alternate, so that neighbours in this ring are in different racks.
        ids = np.arange(1, brokers)
        self._ring = ids[np.lexsort((self.rack[ids], (ids - 1) // plan.racks))].astype(np.int32)

    @property
    def brokers(self) -> range:
        """All broker ids."""
        return range(1, self.plan.brokers + 1)

    def uuids(self, count: int) -> Any:
        """New ids, uint8[count, 16], none of them reserved by Kafka."""
        ids = self.random.integers(0, 256, (count, 16), np.uint8)
        # Version 4, as in Kafka; the text form does not begin with a dash, so that it is no command line option.
        ids[:, 6] = ids[:, 6] & 0x0F | 0x40
        ids[:, 0] &= 0x7F
        return ids

    def topic_name(self, topic: int) -> str:
        """The name of a topic; all names have the same length."""
        return f"topic-{topic:0{len(str(self.plan.topics - 1))}d}"

    def rows_of(self, topics: Any) -> Any:
        """The rows of topics, int64[n]."""
        partitions = self.plan.partitions
        return (topics[:, None] * partitions + np.arange(partitions)).reshape(-1)

    def place(self, topics: Any) -> None:
        """Assign replicas to new topics along the ring of brokers: all in sync, the first one leads. All are alive."""
        rows = self.rows_of(topics)
        starts = np.repeat(self.random.integers(0, len(self._ring), len(topics)), self.plan.partitions)
        places = (starts + self.number[rows])[:, None] + np.arange(self.plan.replication_factor)
        self.replicas[rows] = self._ring[places % len(self._ring)]
        self.in_sync[rows] = True
        self.leader[rows] = self.replicas[rows, 0]

    def hosted_by(self, broker: int) -> Any:
        """bool[N, R]: true where the replica is on a broker."""
        return self.replicas == broker

    def uuid(self, ids: Any, index: int) -> Uuid:
        """One id of a matrix of ids."""
        return Uuid(ids[index].tobytes())


def first_of(replicas: Any, mask: Any) -> Any:
    """int32[n]: the first replica of each row for which the mask is true, -1 for none."""
    first = mask.argmax(1)
    return np.where(mask.any(1), np.take_along_axis(replicas, first[:, None], 1)[:, 0], NO_LEADER).astype(np.int32)
