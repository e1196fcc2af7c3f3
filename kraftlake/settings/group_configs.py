"""The configs of groups.

Source: org.apache.kafka.coordinator.group.GroupConfig.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraftlake.settings.checks import at_least, auto_offset_reset, members, one_of
from kraftlake.settings.config_key import ConfigKey
from kraftlake.settings.uses import GROUPS

GROUP_CONFIGS: Final[Mapping[str, ConfigKey]] = {
    "consumer.assignment.interval.ms": ConfigKey("INT", "1000", at_least(0), use=GROUPS),
    "consumer.assignor.offload.enable": ConfigKey("BOOLEAN", "true", use=GROUPS, internal=True),
    "consumer.heartbeat.interval.ms": ConfigKey("INT", "5000", at_least(1), use=GROUPS),
    "consumer.session.timeout.ms": ConfigKey("INT", "45000", at_least(1), use=GROUPS),
    "errors.deadletterqueue.copy.record.enable": ConfigKey("BOOLEAN", "false", use=GROUPS),
    "errors.deadletterqueue.topic.name": ConfigKey("STRING", "", use=GROUPS),
    "share.assignment.interval.ms": ConfigKey("INT", "1000", at_least(0), use=GROUPS),
    "share.assignor.offload.enable": ConfigKey("BOOLEAN", "true", use=GROUPS, internal=True),
    "share.auto.offset.reset": ConfigKey("STRING", "latest", auto_offset_reset, use=GROUPS),
    "share.delivery.count.limit": ConfigKey("INT", "5", at_least(2), use=GROUPS),
    "share.heartbeat.interval.ms": ConfigKey("INT", "5000", at_least(1), use=GROUPS),
    "share.isolation.level": ConfigKey(
        "STRING", "read_uncommitted", one_of("read_committed", "read_uncommitted"), use=GROUPS
    ),
    "share.partition.max.record.locks": ConfigKey("INT", "2000", at_least(100), use=GROUPS),
    "share.record.lock.duration.ms": ConfigKey("INT", "30000", at_least(1000), use=GROUPS),
    "share.renew.acknowledge.enable": ConfigKey("BOOLEAN", "true", use=GROUPS),
    "share.session.timeout.ms": ConfigKey("INT", "45000", at_least(1), use=GROUPS),
    "streams.acceptable.recovery.lag": ConfigKey("LONG", "10000", at_least(0), use=GROUPS, internal=True),
    "streams.assignment.interval.ms": ConfigKey("INT", "1000", at_least(0), use=GROUPS),
    "streams.assignor.name": ConfigKey("STRING", None, use=GROUPS),
    "streams.assignor.offload.enable": ConfigKey("BOOLEAN", "true", use=GROUPS, internal=True),
    "streams.heartbeat.interval.ms": ConfigKey("INT", "5000", at_least(1), use=GROUPS),
    "streams.initial.rebalance.delay.ms": ConfigKey("INT", "3000", at_least(0), use=GROUPS),
    "streams.num.standby.replicas": ConfigKey("INT", "0", at_least(0), use=GROUPS),
    "streams.num.warmup.replicas": ConfigKey("INT", "2", at_least(0), use=GROUPS, internal=True),
    "streams.rack.aware.assignment.tags": ConfigKey("LIST", "", members(), use=GROUPS),
    "streams.session.timeout.ms": ConfigKey("INT", "45000", at_least(1), use=GROUPS),
    "streams.task.offset.interval.ms": ConfigKey("INT", "60000", at_least(1), use=GROUPS, internal=True),
}
