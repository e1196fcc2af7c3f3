"""A real client beside the cluster of `make demo`: python tools/demo_client.py COMMAND BOOTSTRAP TOPIC [COUNT [FIRST]]

It is librdkafka's, which knows nothing of kraftlake. `create` makes the topic; `write` produces COUNT records with
acks=all, numbered from FIRST on; `read` reads all of them; `leader` prints the id of the broker that leads partition 0.
"""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

SECONDS = 60


def create(bootstrap: str, topic: str) -> None:
    """A topic of one partition with three replicas, of which two have to be in sync."""
    wanted = NewTopic(topic, 1, 3, config={"min.insync.replicas": "2"})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([wanted])[topic].result(SECONDS)
    print(f"created {topic}: 1 partition, 3 replicas, min.insync.replicas=2")


def write(bootstrap: str, topic: str, count: str, first: str = "0") -> None:
    """Records with acks=all, each appended once."""
    failed: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "log_level": 2})
    for number in range(int(first), int(first) + int(count)):
        producer.produce(
            topic, f"record {number}", on_delivery=lambda fault, _: failed.append(fault) if fault else None
        )
    left = producer.flush(SECONDS)
    if left or failed:
        raise SystemExit(f"{left + len(failed)} records were not acknowledged: {failed[:1]}")
    print(f"wrote {count} records, all acknowledged by the replicas in sync")


def read(bootstrap: str, topic: str) -> None:
    """All records."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "demo", "enable.auto.commit": False})
    place = TopicPartition(topic, 0, 0)
    _, end = consumer.get_watermark_offsets(place, timeout=SECONDS)
    consumer.assign([place])
    values = [message.value() for _ in range(end) if (message := consumer.poll(SECONDS)) and not message.error()]
    consumer.close()
    print(f"read {len(values)} records, {len(set(values))} of them different")


def leader(bootstrap: str, topic: str) -> None:
    """Who leads the partition."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = admin.list_topics(topic, timeout=SECONDS).topics
    print(topics[topic].partitions[0].leader)


if __name__ == "__main__":
    {"create": create, "write": write, "read": read, "leader": leader}[sys.argv[1]](*sys.argv[2:])
