"""What Kafka 4.4 knows of the configs of topics and brokers: definitions, lists, and what a topic falls back on.

Source: LogConfig, KafkaConfig, ServerTopicConfigSynonyms and org.apache.kafka.metadata.KafkaConfigSchema; a test holds
the tables against Kafka's own.
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
    "cleanup.policy": ConfigKey("LIST", "delete", members("compact", "delete")),
    "compression.gzip.level": ConfigKey("INT", "-1", gzip_level),
    "compression.lz4.level": ConfigKey("INT", "9", between(1, 17)),
    "compression.type": ConfigKey(
        "STRING", "producer", one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
    ),
    "compression.zstd.level": ConfigKey("INT", "3", between(-131072, 22)),
    "delete.retention.ms": ConfigKey("LONG", "86400000", at_least(0)),
    "errors.deadletterqueue.group.enable": ConfigKey("BOOLEAN", "false"),
    "file.delete.delay.ms": ConfigKey("LONG", "60000", at_least(0)),
    "flush.messages": ConfigKey("LONG", _LARGEST_LONG, at_least(1)),
    "flush.ms": ConfigKey("LONG", _LARGEST_LONG, at_least(0)),
    "follower.replication.throttled.replicas": ConfigKey("LIST", "", throttled_replicas),
    "index.interval.bytes": ConfigKey("INT", "4096", at_least(0)),
    "internal.segment.bytes": ConfigKey("INT", None),
    "leader.replication.throttled.replicas": ConfigKey("LIST", "", throttled_replicas),
    "local.retention.bytes": ConfigKey("LONG", "-2", at_least(-2)),
    "local.retention.ms": ConfigKey("LONG", "-2", at_least(-2)),
    "max.compaction.lag.ms": ConfigKey("LONG", _LARGEST_LONG, at_least(1)),
    "max.decompressed.message.bytes": ConfigKey("INT", "2147483639", between(1, 2147483639)),
    "max.message.bytes": ConfigKey("INT", "1048588", at_least(0)),
    "message.timestamp.after.max.ms": ConfigKey("LONG", "3600000", at_least(0)),
    "message.timestamp.before.max.ms": ConfigKey("LONG", _LARGEST_LONG, at_least(0)),
    "message.timestamp.type": ConfigKey("STRING", "CreateTime", one_of("CreateTime", "LogAppendTime")),
    "min.cleanable.dirty.ratio": ConfigKey("DOUBLE", "0.5", between(0, 1)),
    "min.compaction.lag.ms": ConfigKey("LONG", "0", at_least(0)),
    "min.insync.replicas": ConfigKey("INT", "1", at_least(1)),
    "preallocate": ConfigKey("BOOLEAN", "false"),
    "remote.copy.lag.bytes": ConfigKey("LONG", "-1", at_least(-1)),
    "remote.copy.lag.ms": ConfigKey("LONG", "0", at_least(-1)),
    "remote.log.copy.disable": ConfigKey("BOOLEAN", "false"),
    "remote.log.delete.on.disable": ConfigKey("BOOLEAN", "false"),
    "remote.storage.enable": ConfigKey("BOOLEAN", "false"),
    "retention.bytes": ConfigKey("LONG", "-1"),
    "retention.ms": ConfigKey("LONG", "604800000", at_least(-1)),
    "segment.bytes": ConfigKey("INT", "1073741824", at_least(1048576)),
    "segment.index.bytes": ConfigKey("INT", "10485760", at_least(4)),
    "segment.jitter.ms": ConfigKey("LONG", "0", at_least(0)),
    "segment.ms": ConfigKey("LONG", "604800000", at_least(1)),
    "unclean.leader.election.enable": ConfigKey("BOOLEAN", "false"),
}
"""Every config of a topic."""

_MINUTES: Final = 60_000
_HOURS: Final = 3_600_000

TOPIC_SYNONYMS: Final[Mapping[str, tuple[tuple[str, int], ...]]] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "max.decompressed.message.bytes": (("max.decompressed.message.bytes", 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "preallocate": (("log.preallocate", 1),),
    "remote.copy.lag.bytes": (("log.remote.copy.lag.bytes", 1),),
    "remote.copy.lag.ms": (("log.remote.copy.lag.ms", 1),),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", _MINUTES),
        ("log.retention.hours", _HOURS),
    ),
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOURS)),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", _HOURS)),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
}
"""The broker configs that a topic config falls back on, the first that is set, and what to multiply a number with."""

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
"""The broker configs that are lists, with their defaults; None where there is none."""


def effective_topic_config(configs: ConfigurationsImage, node: ControllerConfig, topic: str, name: str) -> str | None:
    """The value that counts for a topic: its own, else the controller's, the cluster's, the file's, the default."""
    return next(_topic_config_values(configs, node, topic, name), None)


def effective_min_isr(configs: ConfigurationsImage, node: ControllerConfig, topic: str) -> int:
    """`min.insync.replicas` of a topic; a value that is no number is passed over for the next one that counts."""
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
    """Where to look: the controller's own dynamic configs, the cluster's, its property file."""
    return (
        configs.config_map(ConfigResource(BROKER_RESOURCE, str(node.node_id))),
        configs.config_map(ConfigResource(BROKER_RESOURCE, "")),
        node.static_configs,
    )


def fallback_topic_configs(sources: tuple[Mapping[str, str], ...]) -> dict[str, str | None]:
    """What counts for a topic that says nothing, by name, for every config that clients are shown."""
    return {name: next(_fallbacks(sources, name), None) for name in TOPIC_CONFIGS if not name.startswith("internal.")}


def static_topic_config(node: ControllerConfig, name: str) -> Any:
    """A topic config's parsed value by the controller's property file and the default alone."""
    value = next(_fallbacks((node.static_configs,), name))
    return parse_static(ConfigKey(TOPIC_CONFIGS[name].type, None), name, value)


def parse_static(key: ConfigKey, name: str, value: str) -> Any:
    """A value of the controller's property file; ControllerApiError where it is malformed."""
    try:
        return key.parse(value)
    except ValueError as problem:
        raise ControllerApiError(
            Errors.INVALID_CONFIG, f"The controller's static_configs give {name} a malformed value: {problem}."
        ) from None


def _fallbacks(sources: tuple[Mapping[str, str], ...], name: str) -> Iterator[str]:
    synonyms = TOPIC_SYNONYMS.get(name, ())
    for source in sources:
        for synonym, factor in synonyms if source else ():
            value = source.get(synonym)
            if value is not None:
                yield value if factor == 1 else _milliseconds(value, factor)
                break
    key = TOPIC_CONFIGS.get(name)
    if key is not None and key.default is not None:
        yield key.default


def _milliseconds(value: str, factor: int) -> str:
    """Hours or minutes in milliseconds; what is no number counts as 0 (ConfigSynonym.valueToInt)."""
    try:
        return str(parse_integer(trim(value), 32) * factor)
    except ValueError:
        return "0"
