"""The configs of topics.

Source: org.apache.kafka.storage.internals.log.LogConfig, org.apache.kafka.server.config.ServerTopicConfigSynonyms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraftlake.settings.checks import at_least, between, gzip_level, members, one_of, throttled_replicas
from kraftlake.settings.config_key import ConfigKey
from kraftlake.settings.uses import (
    GROUPS,
    LIVE_BY_ALL_NODES,
    LIVE_BY_BROKERS,
    LIVE_BY_CONTROLLERS,
    PREALLOCATION,
    REMOTE_STORAGE,
)

_UNITS_MS: Final = {"hours": 3_600_000, "minutes": 60_000}

TOPIC_CONFIGS: Final[Mapping[str, ConfigKey]] = {
    "cleanup.policy": ConfigKey(
        "LIST", "delete", members("compact", "delete"), synonyms=("log.cleanup.policy",), use=LIVE_BY_BROKERS
    ),
    "compression.gzip.level": ConfigKey(
        "INT", "-1", gzip_level, synonyms=("compression.gzip.level",), use=LIVE_BY_BROKERS
    ),
    "compression.lz4.level": ConfigKey(
        "INT", "9", between(1, 17), synonyms=("compression.lz4.level",), use=LIVE_BY_BROKERS
    ),
    "compression.type": ConfigKey(
        "STRING",
        "producer",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        synonyms=("compression.type",),
        use=LIVE_BY_BROKERS,
    ),
    "compression.zstd.level": ConfigKey(
        "INT", "3", between(-131072, 22), synonyms=("compression.zstd.level",), use=LIVE_BY_BROKERS
    ),
    "delete.retention.ms": ConfigKey(
        "LONG", "86400000", at_least(0), synonyms=("log.cleaner.delete.retention.ms",), use=LIVE_BY_BROKERS
    ),
    "errors.deadletterqueue.group.enable": ConfigKey("BOOLEAN", "false", use=GROUPS),
    "file.delete.delay.ms": ConfigKey(
        "LONG", "60000", at_least(0), synonyms=("log.segment.delete.delay.ms",), use=LIVE_BY_BROKERS
    ),
    "flush.messages": ConfigKey(
        "LONG", "9223372036854775807", at_least(1), synonyms=("log.flush.interval.messages",), use=LIVE_BY_BROKERS
    ),
    "flush.ms": ConfigKey(
        "LONG",
        "9223372036854775807",
        at_least(0),
        synonyms=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
        use=LIVE_BY_BROKERS,
    ),
    "follower.replication.throttled.replicas": ConfigKey("LIST", "", throttled_replicas, use=LIVE_BY_BROKERS),
    "index.interval.bytes": ConfigKey(
        "INT", "4096", at_least(0), synonyms=("log.index.interval.bytes",), use=LIVE_BY_BROKERS
    ),
    "internal.segment.bytes": ConfigKey("INT", None, use=LIVE_BY_BROKERS, internal=True),
    "leader.replication.throttled.replicas": ConfigKey("LIST", "", throttled_replicas, use=LIVE_BY_BROKERS),
    "local.retention.bytes": ConfigKey(
        "LONG", "-2", at_least(-2), synonyms=("log.local.retention.bytes",), use=REMOTE_STORAGE
    ),
    "local.retention.ms": ConfigKey(
        "LONG", "-2", at_least(-2), synonyms=("log.local.retention.ms",), use=REMOTE_STORAGE
    ),
    "max.compaction.lag.ms": ConfigKey(
        "LONG", "9223372036854775807", at_least(1), synonyms=("log.cleaner.max.compaction.lag.ms",), use=LIVE_BY_BROKERS
    ),
    "max.decompressed.message.bytes": ConfigKey(
        "INT", "2147483639", between(1, 2147483639), synonyms=("max.decompressed.message.bytes",), use=LIVE_BY_BROKERS
    ),
    "max.message.bytes": ConfigKey("INT", "1048588", at_least(0), synonyms=("message.max.bytes",), use=LIVE_BY_BROKERS),
    "message.timestamp.after.max.ms": ConfigKey(
        "LONG", "3600000", at_least(0), synonyms=("log.message.timestamp.after.max.ms",), use=LIVE_BY_BROKERS
    ),
    "message.timestamp.before.max.ms": ConfigKey(
        "LONG",
        "9223372036854775807",
        at_least(0),
        synonyms=("log.message.timestamp.before.max.ms",),
        use=LIVE_BY_BROKERS,
    ),
    "message.timestamp.type": ConfigKey(
        "STRING",
        "CreateTime",
        one_of("CreateTime", "LogAppendTime"),
        synonyms=("log.message.timestamp.type",),
        use=LIVE_BY_BROKERS,
    ),
    "min.cleanable.dirty.ratio": ConfigKey(
        "DOUBLE", "0.5", between(0, 1), synonyms=("log.cleaner.min.cleanable.ratio",), use=LIVE_BY_BROKERS
    ),
    "min.compaction.lag.ms": ConfigKey(
        "LONG", "0", at_least(0), synonyms=("log.cleaner.min.compaction.lag.ms",), use=LIVE_BY_BROKERS
    ),
    "min.insync.replicas": ConfigKey("INT", "1", at_least(1), synonyms=("min.insync.replicas",), use=LIVE_BY_ALL_NODES),
    "preallocate": ConfigKey("BOOLEAN", "false", synonyms=("log.preallocate",), use=PREALLOCATION),
    "remote.copy.lag.bytes": ConfigKey(
        "LONG", "-1", at_least(-1), synonyms=("log.remote.copy.lag.bytes",), use=REMOTE_STORAGE
    ),
    "remote.copy.lag.ms": ConfigKey(
        "LONG", "0", at_least(-1), synonyms=("log.remote.copy.lag.ms",), use=REMOTE_STORAGE
    ),
    "remote.log.copy.disable": ConfigKey("BOOLEAN", "false", use=REMOTE_STORAGE),
    "remote.log.delete.on.disable": ConfigKey("BOOLEAN", "false", use=REMOTE_STORAGE),
    "remote.storage.enable": ConfigKey("BOOLEAN", "false", use=REMOTE_STORAGE),
    "retention.bytes": ConfigKey("LONG", "-1", synonyms=("log.retention.bytes",), use=LIVE_BY_BROKERS),
    "retention.ms": ConfigKey(
        "LONG",
        "604800000",
        at_least(-1),
        synonyms=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
        use=LIVE_BY_BROKERS,
    ),
    "segment.bytes": ConfigKey(
        "INT", "1073741824", at_least(1048576), synonyms=("log.segment.bytes",), use=LIVE_BY_BROKERS
    ),
    "segment.index.bytes": ConfigKey(
        "INT", "10485760", at_least(4), synonyms=("log.index.size.max.bytes",), use=LIVE_BY_BROKERS
    ),
    "segment.jitter.ms": ConfigKey(
        "LONG", "0", at_least(0), synonyms=("log.roll.jitter.ms", "log.roll.jitter.hours"), use=LIVE_BY_BROKERS
    ),
    "segment.ms": ConfigKey(
        "LONG", "604800000", at_least(1), synonyms=("log.roll.ms", "log.roll.hours"), use=LIVE_BY_BROKERS
    ),
    "unclean.leader.election.enable": ConfigKey(
        "BOOLEAN", "false", synonyms=("unclean.leader.election.enable",), use=LIVE_BY_CONTROLLERS
    ),
}


def unit_ms(synonym: str) -> int:
    """The factor between a setting's value and its topic config: hours and minutes are converted to ms."""
    return _UNITS_MS.get(synonym.rpartition(".")[2], 1)
