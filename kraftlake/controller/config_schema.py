"""What Kafka 4.4 knows of configs: the type, default and bounds of each topic config, and what it falls back on.

Source: LogConfig, GroupConfig, ServerTopicConfigSynonyms and org.apache.kafka.metadata.KafkaConfigSchema; a test holds
the tables against Kafka's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs

from kraftlake.controller.config import ControllerConfig
from kraftlake.image import ConfigResource, ConfigurationsImage
from kraftlake.image.configurations_image import BROKER_RESOURCE, TOPIC_RESOURCE

_BITS: Final = {"INT": 32, "LONG": 64}
_BOOLEANS: Final = ("true", "false")


@attrs.frozen
class ConfigKey:
    """A config: its type (BOOLEAN, INT, LONG, DOUBLE, STRING, LIST), default (None: there is none) and bounds.

    `one_of` are the values, or list members, that are allowed; empty allows any. `pattern` is what a list member
    looks like.
    """

    type: str
    default: str | None
    low: float | None = None
    high: float | None = None
    one_of: tuple[str, ...] = ()
    also: float | None = None
    pattern: str | None = None

    def problem(self, value: str) -> str | None:
        """Why the key can't have that value; None when it can."""
        text = value.strip()
        if self.type == "BOOLEAN":
            return None if text.lower() in _BOOLEANS else "it is neither true nor false"
        if self.type in ("INT", "LONG", "DOUBLE"):
            return self._problem_of_number(text)
        if self.type == "LIST":
            return self._problem_of_list(text)
        return self._problem_of_choice(value)

    def _problem_of_number(self, text: str) -> str | None:
        try:
            number = float(text) if self.type == "DOUBLE" else int(text)
        except ValueError:
            return "it is no number" if self.type == "DOUBLE" else "it is no whole number"
        bits = _BITS.get(self.type)
        if bits is not None and not -(1 << bits - 1) <= number < 1 << bits - 1:
            return f"it needs more than {bits} bits"
        if number == self.also:
            return None
        if self.low is not None and number < self.low:
            return f"it is below {self.low}"
        return f"it is above {self.high}" if self.high is not None and number > self.high else None

    def _problem_of_list(self, text: str) -> str | None:
        members = [member.strip() for member in text.split(",")] if text else []
        if self.one_of and len(set(members)) < len(members):
            return "it names something twice"
        for member in members:
            if self.pattern is not None and text != "*" and not re.fullmatch(self.pattern, member):
                return f"{member!r} is not of the form partition:broker"
            if (problem := self._problem_of_choice(member)) is not None:
                return problem
        return None

    def _problem_of_choice(self, value: str) -> str | None:
        if not self.one_of or value in self.one_of:
            return None
        return f"{value!r} is none of {', '.join(self.one_of)}"


_LARGEST_LONG: Final = str((1 << 63) - 1)
_THROTTLED: Final = r"\d+:\d+"

TOPIC_CONFIGS: Final[Mapping[str, ConfigKey]] = {
    "cleanup.policy": ConfigKey("LIST", "delete", one_of=("compact", "delete")),
    "compression.gzip.level": ConfigKey("INT", "-1", 1, 9, also=-1),
    "compression.lz4.level": ConfigKey("INT", "9", 1, 17),
    "compression.type": ConfigKey(
        "STRING", "producer", one_of=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
    ),
    "compression.zstd.level": ConfigKey("INT", "3", -131072, 22),
    "delete.retention.ms": ConfigKey("LONG", "86400000", 0),
    "errors.deadletterqueue.group.enable": ConfigKey("BOOLEAN", "false"),
    "file.delete.delay.ms": ConfigKey("LONG", "60000", 0),
    "flush.messages": ConfigKey("LONG", _LARGEST_LONG, 1),
    "flush.ms": ConfigKey("LONG", _LARGEST_LONG, 0),
    "follower.replication.throttled.replicas": ConfigKey("LIST", "", pattern=_THROTTLED),
    "index.interval.bytes": ConfigKey("INT", "4096", 0),
    "internal.segment.bytes": ConfigKey("INT", None),
    "leader.replication.throttled.replicas": ConfigKey("LIST", "", pattern=_THROTTLED),
    "local.retention.bytes": ConfigKey("LONG", "-2", -2),
    "local.retention.ms": ConfigKey("LONG", "-2", -2),
    "max.compaction.lag.ms": ConfigKey("LONG", _LARGEST_LONG, 1),
    "max.decompressed.message.bytes": ConfigKey("INT", "2147483639", 1, 2147483639),
    "max.message.bytes": ConfigKey("INT", "1048588", 0),
    "message.timestamp.after.max.ms": ConfigKey("LONG", "3600000", 0),
    "message.timestamp.before.max.ms": ConfigKey("LONG", _LARGEST_LONG, 0),
    "message.timestamp.type": ConfigKey("STRING", "CreateTime", one_of=("CreateTime", "LogAppendTime")),
    "min.cleanable.dirty.ratio": ConfigKey("DOUBLE", "0.5", 0, 1),
    "min.compaction.lag.ms": ConfigKey("LONG", "0", 0),
    "min.insync.replicas": ConfigKey("INT", "1", 1),
    "preallocate": ConfigKey("BOOLEAN", "false"),
    "remote.copy.lag.bytes": ConfigKey("LONG", "-1", -1),
    "remote.copy.lag.ms": ConfigKey("LONG", "0", -1),
    "remote.log.copy.disable": ConfigKey("BOOLEAN", "false"),
    "remote.log.delete.on.disable": ConfigKey("BOOLEAN", "false"),
    "remote.storage.enable": ConfigKey("BOOLEAN", "false"),
    "retention.bytes": ConfigKey("LONG", "-1"),
    "retention.ms": ConfigKey("LONG", "604800000", -1),
    "segment.bytes": ConfigKey("INT", "1073741824", 1048576),
    "segment.index.bytes": ConfigKey("INT", "10485760", 4),
    "segment.jitter.ms": ConfigKey("LONG", "0", 0),
    "segment.ms": ConfigKey("LONG", "604800000", 1),
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

BROKER_LISTS: Final = frozenset(
    (
        "advertised.listeners",
        "config.providers",
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "cordoned.log.dirs",
        "early.start.listeners",
        "group.consumer.assignors",
        "group.coordinator.rebalance.protocols",
        "group.share.assignors",
        "group.streams.assignors",
        "group.streams.rack.aware.assignment.tags",
        "kafka.metrics.reporters",
        "listeners",
        "log.cleanup.policy",
        "log.dir",
        "log.dirs",
        "metric.reporters",
        "process.roles",
        "sasl.enabled.mechanisms",
        "sasl.kerberos.principal.to.local.rules",
        "sasl.oauthbearer.expected.audience",
        "ssl.cipher.suites",
        "ssl.enabled.protocols",
    )
)
"""The broker configs that are lists."""


def effective_topic_config(configs: ConfigurationsImage, node: ControllerConfig, topic: str, name: str) -> str | None:
    """The value that counts for a topic: its own, else what `fallback_topic_config` gives."""
    own = configs.config_map(ConfigResource(TOPIC_RESOURCE, topic)).get(name)
    return fallback_topic_config(configs, node, name) if own is None else own


def fallback_topic_config(configs: ConfigurationsImage, node: ControllerConfig, name: str) -> str | None:
    """What counts where a topic says nothing: the controller's own, the cluster's, its property file, the default."""
    return _fallback(fallback_sources(configs, node), name)


def fallback_sources(configs: ConfigurationsImage, node: ControllerConfig) -> tuple[Mapping[str, str], ...]:
    """Where to look: the controller's own dynamic configs, the cluster's, its property file."""
    return (
        configs.config_map(ConfigResource(BROKER_RESOURCE, str(node.node_id))),
        configs.config_map(ConfigResource(BROKER_RESOURCE, "")),
        node.static_configs,
    )


def fallback_topic_configs(sources: tuple[Mapping[str, str], ...]) -> dict[str, str | None]:
    """`fallback_topic_config` of every topic config that clients are shown, by name: all but Kafka's internal ones."""
    return {name: _fallback(sources, name) for name in TOPIC_CONFIGS if not name.startswith("internal.")}


def _fallback(sources: tuple[Mapping[str, str], ...], name: str) -> str | None:
    synonyms = TOPIC_SYNONYMS.get(name, ())
    for source in sources:
        for synonym, factor in synonyms if source else ():
            value = source.get(synonym)
            if value is not None:
                return value if factor == 1 else str(int(value) * factor)
    key = TOPIC_CONFIGS.get(name)
    return None if key is None else key.default
