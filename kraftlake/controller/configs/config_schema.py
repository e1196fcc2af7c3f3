"""Kafka 4.4's definitions of topic configs, its list configs of brokers, and the effective configs of a topic.

Source: LogConfig, KafkaConfig, ServerTopicConfigSynonyms and org.apache.kafka.metadata.KafkaConfigSchema; a test
compares the tables with Kafka's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.configs.config_keys import (
    ConfigKey,
    at_least,
    between,
    gzip_level,
    members,
    one_of,
    throttled_replicas,
)
from kraftlake.controller.errors import ControllerApiError, Errors
from kraftlake.image import ConfigResource, ConfigurationsImage
from kraftlake.image.configurations_image import BROKER_RESOURCE, TOPIC_RESOURCE
from kraftlake.records.java_values import parse_integer, trim

MIN_ISR: Final = "min.insync.replicas"
_LARGEST_LONG: Final = str((1 << 63) - 1)

TOPIC_CONFIGS: Final[Mapping[str, ConfigKey]] = {
    "cleanup.policy": ConfigKey("LIST", "delete", members("compact", "delete"), ("log.cleanup.policy",)),
    "compression.gzip.level": ConfigKey("INT", "-1", gzip_level, ("compression.gzip.level",)),
    "compression.lz4.level": ConfigKey("INT", "9", between(1, 17), ("compression.lz4.level",)),
    "compression.type": ConfigKey(
        "STRING", "producer", one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"), ("compression.type",)
    ),
    "compression.zstd.level": ConfigKey("INT", "3", between(-131072, 22), ("compression.zstd.level",)),
    "delete.retention.ms": ConfigKey("LONG", "86400000", at_least(0), ("log.cleaner.delete.retention.ms",)),
    "errors.deadletterqueue.group.enable": ConfigKey("BOOLEAN", "false"),
    "file.delete.delay.ms": ConfigKey("LONG", "60000", at_least(0), ("log.segment.delete.delay.ms",)),
    "flush.messages": ConfigKey("LONG", _LARGEST_LONG, at_least(1), ("log.flush.interval.messages",)),
    "flush.ms": ConfigKey(
        "LONG", _LARGEST_LONG, at_least(0), ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
    ),
    "follower.replication.throttled.replicas": ConfigKey("LIST", "", throttled_replicas),
    "index.interval.bytes": ConfigKey("INT", "4096", at_least(0), ("log.index.interval.bytes",)),
    "internal.segment.bytes": ConfigKey("INT", None),
    "leader.replication.throttled.replicas": ConfigKey("LIST", "", throttled_replicas),
    "local.retention.bytes": ConfigKey("LONG", "-2", at_least(-2), ("log.local.retention.bytes",)),
    "local.retention.ms": ConfigKey("LONG", "-2", at_least(-2), ("log.local.retention.ms",)),
    "max.compaction.lag.ms": ConfigKey("LONG", _LARGEST_LONG, at_least(1), ("log.cleaner.max.compaction.lag.ms",)),
    "max.decompressed.message.bytes": ConfigKey(
        "INT", "2147483639", between(1, 2147483639), ("max.decompressed.message.bytes",)
    ),
    "max.message.bytes": ConfigKey("INT", "1048588", at_least(0), ("message.max.bytes",)),
    "message.timestamp.after.max.ms": ConfigKey(
        "LONG", "3600000", at_least(0), ("log.message.timestamp.after.max.ms",)
    ),
    "message.timestamp.before.max.ms": ConfigKey(
        "LONG", _LARGEST_LONG, at_least(0), ("log.message.timestamp.before.max.ms",)
    ),
    "message.timestamp.type": ConfigKey(
        "STRING", "CreateTime", one_of("CreateTime", "LogAppendTime"), ("log.message.timestamp.type",)
    ),
    "min.cleanable.dirty.ratio": ConfigKey("DOUBLE", "0.5", between(0, 1), ("log.cleaner.min.cleanable.ratio",)),
    "min.compaction.lag.ms": ConfigKey("LONG", "0", at_least(0), ("log.cleaner.min.compaction.lag.ms",)),
    "min.insync.replicas": ConfigKey("INT", "1", at_least(1), ("min.insync.replicas",)),
    "preallocate": ConfigKey("BOOLEAN", "false", synonyms=("log.preallocate",)),
    "remote.copy.lag.bytes": ConfigKey("LONG", "-1", at_least(-1), ("log.remote.copy.lag.bytes",)),
    "remote.copy.lag.ms": ConfigKey("LONG", "0", at_least(-1), ("log.remote.copy.lag.ms",)),
    "remote.log.copy.disable": ConfigKey("BOOLEAN", "false"),
    "remote.log.delete.on.disable": ConfigKey("BOOLEAN", "false"),
    "remote.storage.enable": ConfigKey("BOOLEAN", "false"),
    "retention.bytes": ConfigKey("LONG", "-1", synonyms=("log.retention.bytes",)),
    "retention.ms": ConfigKey(
        "LONG", "604800000", at_least(-1), ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
    ),
    "segment.bytes": ConfigKey("INT", "1073741824", at_least(1048576), ("log.segment.bytes",)),
    "segment.index.bytes": ConfigKey("INT", "10485760", at_least(4), ("log.index.size.max.bytes",)),
    "segment.jitter.ms": ConfigKey("LONG", "0", at_least(0), ("log.roll.jitter.ms", "log.roll.jitter.hours")),
    "segment.ms": ConfigKey("LONG", "604800000", at_least(1), ("log.roll.ms", "log.roll.hours")),
    "unclean.leader.election.enable": ConfigKey("BOOLEAN", "false", synonyms=("unclean.leader.election.enable",)),
}
"""Every config of a topic, with the broker configs that it falls back on."""

BROKER_LISTS: Final[Mapping[str, str | None]] = {
    "advertised.listeners": None,
    "config.providers": "",
    "controller.listener.names": None,
    "controller.quorum.bootstrap.servers": "",
    "controller.quorum.voters": "",
    "cordoned.log.dirs": "",
    "early.start.listeners": None,
    "group.consumer.assignors": "uniform,range",
    "group.coordinator.rebalance.protocols": "classic,consumer,streams",
    "group.share.assignors": "simple",
    "group.streams.assignors": "sticky",
    "group.streams.rack.aware.assignment.tags": "",
    "kafka.metrics.reporters": "",
    "listeners": "PLAINTEXT://:9092",
    "log.cleanup.policy": "delete",
    "log.dir": "/tmp/kafka-logs",  # noqa: S108 - Kafka's default, which nothing is written to
    "log.dirs": None,
    "metric.reporters": "org.apache.kafka.common.metrics.JmxReporter",
    "process.roles": None,
    "sasl.enabled.mechanisms": "GSSAPI",
    "sasl.kerberos.principal.to.local.rules": "DEFAULT",
    "sasl.oauthbearer.expected.audience": "",
    "ssl.cipher.suites": "",
    "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
}
"""The broker configs that are lists, with their defaults (or None)."""


def effective_topic_config(configs: ConfigurationsImage, node: ControllerConfig, topic: str, name: str) -> str | None:
    """The effective value: the topic's, else that of the controller, the cluster, the property file or the default."""
    return next(_topic_config_values(configs, node, topic, name), None)


def effective_min_isr(configs: ConfigurationsImage, node: ControllerConfig, topic: str) -> int:
    """`min.insync.replicas` of a topic; a value that is no number is skipped for the next source."""
    for value in _topic_config_values(configs, node, topic, MIN_ISR):
        try:
            return parse_integer(trim(value), 32)
        except ValueError:
            continue
    raise AssertionError("Kafka has a default for it")


def _topic_config_values(configs: ConfigurationsImage, node: ControllerConfig, topic: str, name: str) -> Iterator[str]:
    own = configs.config_map(ConfigResource(TOPIC_RESOURCE, topic)).get(name)
    if own is not None:
        yield own
    yield from _fallbacks(fallback_sources(configs, node), name)


def fallback_sources(configs: ConfigurationsImage, node: ControllerConfig) -> tuple[Mapping[str, str], ...]:
    """The sources below a topic: the dynamic configs of the controller, those of the cluster, the property file."""
    return (
        configs.config_map(ConfigResource(BROKER_RESOURCE, str(node.node_id))),
        configs.config_map(ConfigResource(BROKER_RESOURCE, "")),
        node.static_configs,
    )


def fallback_topic_configs(sources: tuple[Mapping[str, str], ...]) -> dict[str, str | None]:
    """The effective configs of a topic without own ones, by name, without Kafka's internal configs."""
    return {name: next(_fallbacks(sources, name), None) for name in TOPIC_CONFIGS if not name.startswith("internal.")}


def static_topic_config(node: ControllerConfig, name: str) -> Any:
    """The parsed value of a topic config by the property file and the default alone."""
    value = next(_fallbacks((node.static_configs,), name))
    return parse_static(ConfigKey(TOPIC_CONFIGS[name].type, None), name, value)


def parse_static(key: ConfigKey, name: str, value: str) -> Any:
    """Parse a value of the controller's property file; ControllerApiError if it is malformed."""
    try:
        return key.parse(value)
    except ValueError as problem:
        raise ControllerApiError(
            Errors.INVALID_CONFIG, f"The controller's static_configs give {name} a malformed value: {problem}."
        ) from None


def _fallbacks(sources: tuple[Mapping[str, str], ...], name: str) -> Iterator[str]:
    key = TOPIC_CONFIGS.get(name)
    if key is None:
        return
    for source in sources:
        synonym = next((synonym for synonym in key.synonyms if synonym in source), None)
        if synonym is not None:
            yield in_milliseconds(synonym, source[synonym])
    if key.default is not None:
        yield key.default


def in_milliseconds(synonym: str, value: str) -> str:
    """The value of a synonym, converted from hours or minutes to ms; 0 for hours or minutes that are no number.

    Source: org.apache.kafka.server.config.ConfigSynonym (HOURS_TO_MILLISECONDS, valueToInt).
    """
    milliseconds = {"hours": 3_600_000, "minutes": 60_000}.get(synonym.rpartition(".")[2])
    if milliseconds is None:
        return value
    try:
        return str(parse_integer(trim(value), 32) * milliseconds)
    except ValueError:
        return "0"
