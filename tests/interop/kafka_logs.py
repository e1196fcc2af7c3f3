"""Kafka 4.4's own UnifiedLog in a JVM, asked over its stdin."""

from __future__ import annotations

from pathlib import Path

from tests.interop.kafka_classes import KafkaClasses


def kafka_logs() -> KafkaClasses:
    """A JVM that answers as `KafkaLogs.java` says; whoever asked for it closes it."""
    return KafkaClasses(Path(__file__).with_name("KafkaLogs.java"), heap="1g")


def measured_kafka_logs() -> KafkaClasses:
    """The same for a benchmark: with the optimising compiler."""
    return KafkaClasses(Path(__file__).with_name("KafkaLogs.java"), heap="2g", options=())
