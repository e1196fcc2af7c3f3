"""Plans of small clusters, and a history in memory with its resulting cluster."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from kraftlake.generate.cluster import GeneratedCluster
from kraftlake.generate.episodes import set_up
from kraftlake.generate.plan import PATTERNS, Plan
from kraftlake.generate.rows import BatchRows
from kraftlake.generate.writer import ClusterLogWriter
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import from_rows
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    brokers = draw(st.integers(1, 7))
    return Plan(
        brokers=brokers,
        racks=draw(st.integers(1, brokers)),
        topics=draw(st.integers(1, 12)),
        partitions=draw(st.integers(1, 6)),
        replication_factor=draw(st.integers(1, brokers)),
        records=draw(st.integers(0, 1_500)),
        patterns=tuple(draw(st.lists(st.sampled_from(PATTERNS), max_size=4))),
        quiet_ms=draw(st.sampled_from((0, 499, 2_000))),
        seed=draw(st.integers(0, 2**32)),
    )


class MadeUp:
    """A cluster that is set up, its history in memory, and the image that its records make."""

    def __init__(self, plan: Plan) -> None:
        self.cluster = GeneratedCluster(plan)
        self.rows = BatchRows(0, 1)
        self.writer = ClusterLogWriter(self.cluster, self.rows)
        self.batches: list[RecordBatch] = []
        self.loader = MetadataBatchLoader()
        self.play(set_up)

    def play(self, episode: Callable[[ClusterLogWriter], Generator[pa.Table, None, Any]]) -> MetadataImage:
        """Let something happen; the image after it."""
        tables = [*episode(self.writer), *self.rows.take()]
        for batch in (batch for table in tables for batch in from_rows(table)):
            self.loader.load_batch(batch)
            self.batches.append(batch)
        return self.loader.take_image()

    def assert_same(self, image: MetadataImage) -> None:
        """The image says of each partition and broker what the cluster says."""
        cluster = self.cluster
        brokers = image.cluster.brokers
        alive = [id_ for id_ in cluster.brokers if not (brokers[id_].fenced or brokers[id_].in_controlled_shutdown)]
        assert alive == np.flatnonzero(cluster.alive).tolist()
        assert image.topics.partition_count == len(cluster.leader)
        for row in range(len(cluster.leader)):
            topic = image.topics.get_topic(cluster.topic_name(int(cluster.topic[row])))
            assert topic is not None
            assert topic.id == cluster.uuid(cluster.topic_ids, int(cluster.topic[row]))
            partition = topic.partitions[int(cluster.number[row])]
            assert partition.leader == cluster.leader[row]
            assert list(partition.replicas) == cluster.replicas[row].tolist()
            assert set(partition.isr) == set(cluster.replicas[row][cluster.in_sync[row]].tolist())
            assert [*partition.directories] == [cluster.uuid(cluster.directory, id_) for id_ in partition.replicas]
            assert not partition.adding_replicas
            assert not partition.removing_replicas
