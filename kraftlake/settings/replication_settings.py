"""Broker settings of replication and its throttles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraftlake.settings.checks import at_least
from kraftlake.settings.config_key import CLUSTER_WIDE, ConfigKey
from kraftlake.settings.uses import BY_BROKERS, JAVA_CLASSES, LIVE_BY_BROKERS, Ignored

REPLICATION_SETTINGS: Final[Mapping[str, ConfigKey]] = {
    "alter.log.dirs.replication.quota.window.num": ConfigKey("INT", "11", at_least(1), use=BY_BROKERS),
    "alter.log.dirs.replication.quota.window.size.seconds": ConfigKey("INT", "1", at_least(1), use=BY_BROKERS),
    "follower.replication.throttled.rate": ConfigKey(
        "LONG", "9223372036854775807", at_least(0), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS, internal=True
    ),
    "leader.replication.throttled.rate": ConfigKey(
        "LONG", "9223372036854775807", at_least(0), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS, internal=True
    ),
    "num.replica.alter.log.dirs.threads": ConfigKey("INT", None, use=BY_BROKERS),
    "num.replica.fetchers": ConfigKey("INT", "1", at_least(1), update=CLUSTER_WIDE, use=LIVE_BY_BROKERS),
    "replica.alter.log.dirs.io.max.bytes.per.second": ConfigKey(
        "LONG",
        "9223372036854775807",
        at_least(0),
        update=CLUSTER_WIDE,
        use=LIVE_BY_BROKERS,
        internal=True,
    ),
    "replica.fetch.backoff.ms": ConfigKey("INT", "1000", at_least(0), use=BY_BROKERS),
    "replica.fetch.max.bytes": ConfigKey("INT", "1048576", at_least(0), use=BY_BROKERS),
    "replica.fetch.min.bytes": ConfigKey("INT", "1", use=BY_BROKERS),
    "replica.fetch.response.max.bytes": ConfigKey("INT", "10485760", at_least(0), use=BY_BROKERS),
    "replica.fetch.wait.max.ms": ConfigKey("INT", "500", use=BY_BROKERS),
    "replica.high.watermark.checkpoint.interval.ms": ConfigKey("LONG", "5000", use=BY_BROKERS),
    "replica.lag.time.max.ms": ConfigKey("LONG", "30000", use=BY_BROKERS),
    "replica.selector.class": ConfigKey("STRING", None, use=JAVA_CLASSES),
    "replica.socket.receive.buffer.bytes": ConfigKey(
        "INT", "65536", use=Ignored("the system sizes the buffers of fetchers")
    ),
    "replica.socket.timeout.ms": ConfigKey("INT", "30000", use=BY_BROKERS),
    "replication.quota.window.num": ConfigKey("INT", "11", at_least(1), use=BY_BROKERS),
    "replication.quota.window.size.seconds": ConfigKey("INT", "1", at_least(1), use=BY_BROKERS),
}
