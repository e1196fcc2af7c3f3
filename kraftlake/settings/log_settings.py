"""Broker settings of logs on disk.

Source: ServerLogConfigs, CleanerConfig.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraftlake.settings.checks import at_least, between, gzip_level, members, one_of, some_members
from kraftlake.settings.config_key import CLUSTER_WIDE, PER_BROKER, ConfigKey
from kraftlake.settings.uses import (
    BY_BROKERS,
    CLEANER_BUFFERS,
    LIVE_BY_ALL_NODES,
    LIVE_BY_BROKERS,
    PREALLOCATION,
    Ignored,
)

LOG_SETTINGS: Final[Mapping[str, ConfigKey]] = {
    "compression.gzip.level": ConfigKey("INT", "-1", gzip_level, update=CLUSTER_WIDE, use=LIVE_BY_BROKERS),
    "compression.lz4.level": ConfigKey("INT", "9", between(1, 17), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS),
    "compression.type": ConfigKey(
        "STRING",
        "producer",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        update=CLUSTER_WIDE,
        use=LIVE_BY_BROKERS,
    ),
    "compression.zstd.level": ConfigKey("INT", "3", between(-131072, 22), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS),
    "cordoned.log.dirs": ConfigKey("LIST", "", members(), update=PER_BROKER, use=LIVE_BY_BROKERS),
    "log.cleaner.backoff.ms": ConfigKey("LONG", "15000", at_least(0), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS),
    "log.cleaner.dedupe.buffer.size": ConfigKey("LONG", "134217728", update=CLUSTER_WIDE, use=LIVE_BY_BROKERS),
    "log.cleaner.delete.retention.ms": ConfigKey(
        "LONG", "86400000", at_least(0), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS
    ),
    "log.cleaner.enable": ConfigKey("BOOLEAN", "true", use=BY_BROKERS),
    "log.cleaner.io.buffer.load.factor": ConfigKey("DOUBLE", "0.9", update=CLUSTER_WIDE, use=LIVE_BY_BROKERS),
    "log.cleaner.io.buffer.size": ConfigKey("INT", "524288", at_least(0), update=CLUSTER_WIDE, use=CLEANER_BUFFERS),
    "log.cleaner.io.max.bytes.per.second": ConfigKey(
        "DOUBLE", "1.7976931348623157E308", update=CLUSTER_WIDE, use=LIVE_BY_BROKERS
    ),
    "log.cleaner.max.compaction.lag.ms": ConfigKey(
        "LONG", "9223372036854775807", at_least(1), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS
    ),
    "log.cleaner.min.cleanable.ratio": ConfigKey(
        "DOUBLE", "0.5", between(0, 1), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS
    ),
    "log.cleaner.min.compaction.lag.ms": ConfigKey("LONG", "0", at_least(0), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS),
    "log.cleaner.threads": ConfigKey("INT", "1", at_least(0), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS),
    "log.cleanup.policy": ConfigKey(
        "LIST", "delete", members("compact", "delete"), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS
    ),
    "log.dir": ConfigKey("LIST", "/tmp/kafka-logs", some_members(), use=BY_BROKERS),  # noqa: S108
    "log.dir.failure.timeout.ms": ConfigKey("LONG", "30000", at_least(1), use=BY_BROKERS),
    "log.dirs": ConfigKey("LIST", None, some_members(), use=BY_BROKERS),
    "log.flush.interval.messages": ConfigKey(
        "LONG", "9223372036854775807", at_least(1), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS
    ),
    "log.flush.interval.ms": ConfigKey("LONG", None, update=CLUSTER_WIDE, use=LIVE_BY_BROKERS),
    "log.flush.offset.checkpoint.interval.ms": ConfigKey("INT", "60000", at_least(0), use=BY_BROKERS),
    "log.flush.scheduler.interval.ms": ConfigKey("LONG", "9223372036854775807", use=BY_BROKERS),
    "log.flush.start.offset.checkpoint.interval.ms": ConfigKey(
        "INT", "60000", at_least(0), use=Ignored("start offsets are written with the recovery points")
    ),
    "log.index.interval.bytes": ConfigKey("INT", "4096", at_least(0), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS),
    "log.index.size.max.bytes": ConfigKey("INT", "10485760", at_least(4), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS),
    "log.initial.task.delay.ms": ConfigKey("LONG", "30000", at_least(0), use=BY_BROKERS, internal=True),
    "log.message.timestamp.after.max.ms": ConfigKey(
        "LONG", "3600000", at_least(0), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS
    ),
    "log.message.timestamp.before.max.ms": ConfigKey(
        "LONG", "9223372036854775807", at_least(0), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS
    ),
    "log.message.timestamp.type": ConfigKey(
        "STRING", "CreateTime", one_of("CreateTime", "LogAppendTime"), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS
    ),
    "log.preallocate": ConfigKey("BOOLEAN", "false", update=CLUSTER_WIDE, use=PREALLOCATION),
    "log.retention.bytes": ConfigKey("LONG", "-1", update=CLUSTER_WIDE, use=LIVE_BY_BROKERS),
    "log.retention.check.interval.ms": ConfigKey("LONG", "300000", at_least(1), use=BY_BROKERS),
    "log.retention.hours": ConfigKey("INT", "168", use=BY_BROKERS),
    "log.retention.minutes": ConfigKey("INT", None, use=BY_BROKERS),
    "log.retention.ms": ConfigKey("LONG", None, update=CLUSTER_WIDE, use=LIVE_BY_BROKERS),
    "log.roll.hours": ConfigKey("INT", "168", at_least(1), use=BY_BROKERS),
    "log.roll.jitter.hours": ConfigKey("INT", "0", at_least(0), use=BY_BROKERS),
    "log.roll.jitter.ms": ConfigKey("LONG", None, update=CLUSTER_WIDE, use=LIVE_BY_BROKERS),
    "log.roll.ms": ConfigKey("LONG", None, update=CLUSTER_WIDE, use=LIVE_BY_BROKERS),
    "log.segment.bytes": ConfigKey("INT", "1073741824", at_least(1048576), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS),
    "log.segment.delete.delay.ms": ConfigKey("LONG", "60000", at_least(0), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS),
    "max.decompressed.message.bytes": ConfigKey(
        "INT", "2147483639", between(1, 2147483639), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS
    ),
    "message.max.bytes": ConfigKey("INT", "1048588", at_least(0), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS),
    "min.insync.replicas": ConfigKey("INT", "1", at_least(1), update=CLUSTER_WIDE, use=LIVE_BY_ALL_NODES),
    "num.recovery.threads.per.data.dir": ConfigKey(
        "INT", "2", at_least(1), update=CLUSTER_WIDE, use=Ignored("logs are checked one after another")
    ),
    "producer.id.expiration.check.interval.ms": ConfigKey("INT", "600000", at_least(1), use=BY_BROKERS, internal=True),
    "producer.id.expiration.ms": ConfigKey("INT", "86400000", at_least(1), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS),
}
