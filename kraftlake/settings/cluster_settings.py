"""Settings of nodes, the metadata log, controllers and new topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraftlake.settings.checks import at_least, host_ports, some_members, voters
from kraftlake.settings.config_key import CLUSTER_WIDE, ConfigKey
from kraftlake.settings.uses import (
    BY_ALL_NODES,
    BY_BROKERS,
    BY_CONTROLLERS,
    JAVA_CLASSES,
    LIVE_BY_ALL_NODES,
    SLOW_EVENTS,
    VOTERS,
    Ignored,
)

CLUSTER_SETTINGS: Final[Mapping[str, ConfigKey]] = {
    "alter.config.policy.class.name": ConfigKey("CLASS", None, use=JAVA_CLASSES),
    "auto.create.topics.enable": ConfigKey("BOOLEAN", "true", use=BY_BROKERS),
    "auto.leader.rebalance.enable": ConfigKey("BOOLEAN", "true", use=BY_CONTROLLERS),
    "broker.heartbeat.interval.ms": ConfigKey("INT", "2000", use=BY_ALL_NODES),
    "broker.id": ConfigKey("INT", "-1", use=BY_ALL_NODES),
    "broker.rack": ConfigKey("STRING", None, use=BY_BROKERS),
    "broker.session.timeout.ms": ConfigKey("INT", "9000", use=BY_ALL_NODES),
    "controller.listener.names": ConfigKey("LIST", None, some_members(), use=BY_ALL_NODES),
    "controller.performance.always.log.threshold.ms": ConfigKey(
        "LONG", "2000", at_least(0), use=SLOW_EVENTS, internal=True
    ),
    "controller.performance.sample.period.ms": ConfigKey(
        "LONG", "60000", at_least(100), use=SLOW_EVENTS, internal=True
    ),
    "controller.quorum.append.linger.ms": ConfigKey("INT", "25", at_least(0), use=VOTERS),
    "controller.quorum.auto.join.enable": ConfigKey("BOOLEAN", "false", use=VOTERS),
    "controller.quorum.bootstrap.servers": ConfigKey("LIST", "", host_ports, use=VOTERS),
    "controller.quorum.election.backoff.max.ms": ConfigKey("INT", "1000", at_least(0), use=VOTERS),
    "controller.quorum.election.timeout.ms": ConfigKey("INT", "1000", at_least(0), use=VOTERS),
    "controller.quorum.fetch.max.bytes": ConfigKey("INT", "1048576", at_least(1), use=VOTERS),
    "controller.quorum.fetch.snapshot.max.bytes": ConfigKey("INT", "1048576", at_least(1), use=VOTERS),
    "controller.quorum.fetch.timeout.ms": ConfigKey("INT", "2000", at_least(0), use=BY_CONTROLLERS),
    "controller.quorum.request.timeout.ms": ConfigKey("INT", "2000", at_least(0), use=VOTERS),
    "controller.quorum.retry.backoff.ms": ConfigKey("INT", "20", at_least(0), use=VOTERS),
    "controller.quorum.voters": ConfigKey("LIST", "", voters, use=VOTERS),
    "controller.quota.window.num": ConfigKey("INT", "11", at_least(1), use=BY_CONTROLLERS),
    "controller.quota.window.size.seconds": ConfigKey("INT", "1", at_least(1), use=BY_CONTROLLERS),
    "controller.socket.timeout.ms": ConfigKey(
        "INT", "30000", use=Ignored("a request to a controller waits for as long as its caller")
    ),
    "create.topic.policy.class.name": ConfigKey("CLASS", None, use=JAVA_CLASSES),
    "default.replication.factor": ConfigKey("INT", "1", use=BY_CONTROLLERS),
    "delete.topic.enable": ConfigKey("BOOLEAN", "true", use=BY_CONTROLLERS),
    "initial.broker.registration.timeout.ms": ConfigKey("INT", "60000", use=BY_BROKERS),
    "internal.metadata.delete.delay.millis": ConfigKey("LONG", "60000", use=VOTERS, internal=True),
    "internal.metadata.log.segment.bytes": ConfigKey("INT", None, use=VOTERS, internal=True),
    "internal.metadata.max.batch.size.in.bytes": ConfigKey("INT", "8388608", use=VOTERS, internal=True),
    "leader.imbalance.check.interval.seconds": ConfigKey("LONG", "300", at_least(1), use=BY_CONTROLLERS),
    "metadata.log.dir": ConfigKey("STRING", None, use=VOTERS),
    "metadata.log.max.record.bytes.between.snapshots": ConfigKey("LONG", "20971520", at_least(1), use=BY_CONTROLLERS),
    "metadata.log.max.snapshot.interval.ms": ConfigKey("LONG", "3600000", at_least(0), use=BY_CONTROLLERS),
    "metadata.log.segment.bytes": ConfigKey("INT", "1073741824", at_least(8388608), use=VOTERS),
    "metadata.log.segment.ms": ConfigKey("LONG", "604800000", use=VOTERS),
    "metadata.max.idle.interval.ms": ConfigKey("INT", "500", at_least(0), use=BY_CONTROLLERS),
    "metadata.max.retention.bytes": ConfigKey("LONG", "104857600", use=VOTERS),
    "metadata.max.retention.ms": ConfigKey("LONG", "604800000", use=VOTERS),
    "node.id": ConfigKey("INT", None, at_least(0), use=BY_ALL_NODES),
    "num.partitions": ConfigKey("INT", "1", at_least(1), use=BY_CONTROLLERS),
    "process.roles": ConfigKey("LIST", None, some_members("broker", "controller"), use=BY_ALL_NODES),
    "unclean.leader.election.enable": ConfigKey("BOOLEAN", "false", update=CLUSTER_WIDE, use=LIVE_BY_ALL_NODES),
    "unclean.leader.election.interval.ms": ConfigKey("LONG", "300000", at_least(1), use=BY_CONTROLLERS, internal=True),
}
