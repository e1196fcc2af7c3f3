"""Settings of quotas, metrics and plug-ins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraftlake.settings.checks import at_least, members
from kraftlake.settings.config_key import CLUSTER_WIDE, ConfigKey
from kraftlake.settings.uses import (
    BY_ALL_NODES,
    BY_BROKERS,
    JAVA_CLASSES,
    METRICS,
    PURGATORIES,
    TELEMETRY,
    UNSTABLE,
    Ignored,
)

OTHER_SETTINGS: Final[Mapping[str, ConfigKey]] = {
    "client.quota.callback.class": ConfigKey("CLASS", None, use=JAVA_CLASSES),
    "config.providers": ConfigKey("LIST", "", members(), update=CLUSTER_WIDE, use=JAVA_CLASSES),
    "controlled.shutdown.enable": ConfigKey("BOOLEAN", "true", use=BY_BROKERS),
    "delete.records.purgatory.purge.interval.requests": ConfigKey("INT", "1", use=PURGATORIES),
    "fetch.purgatory.purge.interval.requests": ConfigKey("INT", "1000", use=PURGATORIES),
    "kafka.metrics.polling.interval.secs": ConfigKey("INT", "10", at_least(1), use=JAVA_CLASSES),
    "kafka.metrics.reporters": ConfigKey("LIST", "", members(), use=JAVA_CLASSES),
    "metric.reporters": ConfigKey(
        "LIST", "org.apache.kafka.common.metrics.JmxReporter", members(), update=CLUSTER_WIDE, use=JAVA_CLASSES
    ),
    "metrics.num.samples": ConfigKey("INT", "2", at_least(1), use=METRICS),
    "metrics.recording.level": ConfigKey("STRING", "INFO", use=METRICS),
    "metrics.sample.window.ms": ConfigKey("LONG", "30000", at_least(1), use=METRICS),
    "producer.purgatory.purge.interval.requests": ConfigKey("INT", "1000", use=PURGATORIES),
    "quota.window.num": ConfigKey("INT", "11", at_least(1), use=BY_ALL_NODES),
    "quota.window.size.seconds": ConfigKey("INT", "1", at_least(1), use=BY_ALL_NODES),
    "server.max.startup.time.ms": ConfigKey(
        "LONG", "9223372036854775807", at_least(0), use=Ignored("a start takes as long as its logs need"), internal=True
    ),
    "telemetry.max.bytes": ConfigKey("INT", "1048576", at_least(1), use=TELEMETRY),
    "unstable.api.versions.enable": ConfigKey("BOOLEAN", "false", use=UNSTABLE, internal=True),
    "unstable.feature.versions.enable": ConfigKey("BOOLEAN", "false", use=UNSTABLE, internal=True),
}
