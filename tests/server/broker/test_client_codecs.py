"""Batches that librdkafka compresses are compressed in the logs: it asks what a broker serves before it compresses."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka.admin import NewTopic

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.records.batch_header import COMPRESSION_BITS, COMPRESSIONS
from kraftlake.replica_manager.logs.log_batch import headers
from tests.server.broker.lake_cluster import lake_cluster
from tests.server.broker.load import write


def test_batches_of_each_codec_are_compressed(tmp_path: Path) -> None:
    with lake_cluster(tmp_path, brokers=(1,)) as cluster:
        topics = [NewTopic(codec, 1, 1) for codec in COMPRESSIONS]
        admin = cluster.admin()
        for future in admin.create_topics(topics).values():
            future.result(30)
        for codec in COMPRESSIONS:
            write(cluster.brokers, TopicPartition(codec, 0), 50, compression_type=codec)
            data = (tmp_path / "broker-1" / f"{codec}-0" / f"{0:020d}.log").read_bytes()
            found = {COMPRESSIONS[header[5] & COMPRESSION_BITS] for _, _, header in headers(data)}
            assert found == {codec}
