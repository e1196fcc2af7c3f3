"""Kafka 4.4's own ReplicaManager in a JVM, asked over its stdin."""

from __future__ import annotations

from pathlib import Path

from tests.interop.kafka_classes import KafkaClasses


def kafka_replicas(*, heap: str = "512m") -> KafkaClasses:
    """A JVM that answers as `KafkaReplicas.java` says; whoever asked for it closes it."""
    return KafkaClasses(Path(__file__).with_name("KafkaReplicas.java"), heap=heap)
