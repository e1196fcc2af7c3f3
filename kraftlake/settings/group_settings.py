"""Settings of the coordinators of groups, shares and transactions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraftlake.settings.checks import at_least, between, members, one_of_ignoring_case, some_members
from kraftlake.settings.config_key import CLUSTER_WIDE, ConfigKey
from kraftlake.settings.uses import GROUPS, TRANSACTIONS

GROUP_SETTINGS: Final[Mapping[str, ConfigKey]] = {
    "add.partitions.to.txn.retry.backoff.max.ms": ConfigKey("INT", "100", at_least(0), use=TRANSACTIONS),
    "add.partitions.to.txn.retry.backoff.ms": ConfigKey("INT", "20", at_least(1), use=TRANSACTIONS),
    "errors.deadletterqueue.auto.create.topics.enable": ConfigKey("BOOLEAN", "false", update=CLUSTER_WIDE, use=GROUPS),
    "errors.deadletterqueue.topic.name.prefix": ConfigKey("STRING", "dlq.", update=CLUSTER_WIDE, use=GROUPS),
    "group.consumer.assignment.interval.ms": ConfigKey("INT", "1000", at_least(0), update=CLUSTER_WIDE, use=GROUPS),
    "group.consumer.assignor.offload.enable": ConfigKey(
        "BOOLEAN", "true", update=CLUSTER_WIDE, use=GROUPS, internal=True
    ),
    "group.consumer.assignors": ConfigKey("LIST", "uniform,range", some_members(), use=GROUPS),
    "group.consumer.heartbeat.interval.ms": ConfigKey("INT", "5000", at_least(1), use=GROUPS),
    "group.consumer.max.assignment.interval.ms": ConfigKey("INT", "15000", at_least(0), use=GROUPS),
    "group.consumer.max.heartbeat.interval.ms": ConfigKey("INT", "15000", at_least(1), use=GROUPS),
    "group.consumer.max.session.timeout.ms": ConfigKey("INT", "60000", at_least(1), use=GROUPS),
    "group.consumer.max.size": ConfigKey("INT", "2147483647", at_least(1), use=GROUPS),
    "group.consumer.migration.policy": ConfigKey(
        "STRING", "bidirectional", one_of_ignoring_case("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"), use=GROUPS
    ),
    "group.consumer.min.assignment.interval.ms": ConfigKey("INT", "0", at_least(0), use=GROUPS),
    "group.consumer.min.heartbeat.interval.ms": ConfigKey("INT", "5000", at_least(1), use=GROUPS),
    "group.consumer.min.session.timeout.ms": ConfigKey("INT", "45000", at_least(1), use=GROUPS),
    "group.consumer.regex.refresh.interval.ms": ConfigKey("INT", "600000", at_least(10000), use=GROUPS, internal=True),
    "group.consumer.session.timeout.ms": ConfigKey("INT", "45000", at_least(1), use=GROUPS),
    "group.coordinator.append.linger.ms": ConfigKey("INT", "-1", at_least(-1), use=GROUPS),
    "group.coordinator.background.threads": ConfigKey("INT", "2", at_least(1), use=GROUPS),
    "group.coordinator.cached.buffer.max.bytes": ConfigKey(
        "INT", "1048588", at_least(524288), update=CLUSTER_WIDE, use=GROUPS
    ),
    "group.coordinator.rebalance.protocols": ConfigKey(
        "LIST", "classic,consumer,streams", some_members("consumer", "classic", "share", "streams"), use=GROUPS
    ),
    "group.coordinator.threads": ConfigKey("INT", "4", at_least(1), use=GROUPS),
    "group.initial.rebalance.delay.ms": ConfigKey("INT", "3000", use=GROUPS),
    "group.max.session.timeout.ms": ConfigKey("INT", "1800000", use=GROUPS),
    "group.max.size": ConfigKey("INT", "2147483647", at_least(1), use=GROUPS),
    "group.min.session.timeout.ms": ConfigKey("INT", "6000", use=GROUPS),
    "group.share.assignment.interval.ms": ConfigKey("INT", "1000", at_least(0), update=CLUSTER_WIDE, use=GROUPS),
    "group.share.assignor.offload.enable": ConfigKey("BOOLEAN", "true", update=CLUSTER_WIDE, use=GROUPS, internal=True),
    "group.share.assignors": ConfigKey("LIST", "simple", some_members(), use=GROUPS),
    "group.share.delivery.count.limit": ConfigKey("INT", "5", between(2, 10), use=GROUPS),
    "group.share.dlq.manager.class.name": ConfigKey(
        "STRING", "org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager", use=GROUPS, internal=True
    ),
    "group.share.heartbeat.interval.ms": ConfigKey("INT", "5000", at_least(1), use=GROUPS),
    "group.share.initialize.retry.interval.ms": ConfigKey("INT", "30000", at_least(1), use=GROUPS, internal=True),
    "group.share.max.assignment.interval.ms": ConfigKey("INT", "15000", at_least(0), use=GROUPS),
    "group.share.max.delivery.count.limit": ConfigKey("INT", "10", between(5, 25), use=GROUPS),
    "group.share.max.heartbeat.interval.ms": ConfigKey("INT", "15000", at_least(1), use=GROUPS),
    "group.share.max.partition.max.record.locks": ConfigKey("INT", "4000", between(2000, 10000), use=GROUPS),
    "group.share.max.record.lock.duration.ms": ConfigKey("INT", "60000", between(30000, 3600000), use=GROUPS),
    "group.share.max.session.timeout.ms": ConfigKey("INT", "60000", at_least(1), use=GROUPS),
    "group.share.max.share.sessions": ConfigKey("INT", "2000", at_least(1), use=GROUPS),
    "group.share.max.size": ConfigKey("INT", "200", between(1, 1000), use=GROUPS),
    "group.share.min.assignment.interval.ms": ConfigKey("INT", "0", at_least(0), use=GROUPS),
    "group.share.min.delivery.count.limit": ConfigKey("INT", "2", between(2, 5), use=GROUPS),
    "group.share.min.heartbeat.interval.ms": ConfigKey("INT", "5000", at_least(1), use=GROUPS),
    "group.share.min.partition.max.record.locks": ConfigKey("INT", "100", between(100, 2000), use=GROUPS),
    "group.share.min.record.lock.duration.ms": ConfigKey("INT", "15000", between(1000, 30000), use=GROUPS),
    "group.share.min.session.timeout.ms": ConfigKey("INT", "45000", at_least(1), use=GROUPS),
    "group.share.partition.max.record.locks": ConfigKey("INT", "2000", between(100, 10000), use=GROUPS),
    "group.share.persister.class.name": ConfigKey(
        "STRING", "org.apache.kafka.server.share.persister.DefaultStatePersister", use=GROUPS, internal=True
    ),
    "group.share.record.lock.duration.ms": ConfigKey("INT", "30000", between(1000, 3600000), use=GROUPS),
    "group.share.session.timeout.ms": ConfigKey("INT", "45000", at_least(1), use=GROUPS),
    "group.streams.acceptable.recovery.lag": ConfigKey("LONG", "10000", at_least(0), use=GROUPS, internal=True),
    "group.streams.assignment.interval.ms": ConfigKey("INT", "1000", at_least(0), update=CLUSTER_WIDE, use=GROUPS),
    "group.streams.assignor.offload.enable": ConfigKey(
        "BOOLEAN", "true", update=CLUSTER_WIDE, use=GROUPS, internal=True
    ),
    "group.streams.assignors": ConfigKey("LIST", "sticky", some_members(), use=GROUPS),
    "group.streams.heartbeat.interval.ms": ConfigKey("INT", "5000", at_least(1), use=GROUPS),
    "group.streams.initial.rebalance.delay.ms": ConfigKey("INT", "3000", at_least(0), use=GROUPS),
    "group.streams.max.assignment.interval.ms": ConfigKey("INT", "15000", at_least(0), use=GROUPS),
    "group.streams.max.heartbeat.interval.ms": ConfigKey("INT", "15000", at_least(1), use=GROUPS),
    "group.streams.max.session.timeout.ms": ConfigKey("INT", "60000", at_least(1), use=GROUPS),
    "group.streams.max.size": ConfigKey("INT", "2147483647", at_least(1), use=GROUPS),
    "group.streams.max.standby.replicas": ConfigKey("INT", "2", at_least(0), use=GROUPS),
    "group.streams.max.warmup.replicas": ConfigKey("INT", "20", at_least(0), use=GROUPS, internal=True),
    "group.streams.min.assignment.interval.ms": ConfigKey("INT", "0", at_least(0), use=GROUPS),
    "group.streams.min.heartbeat.interval.ms": ConfigKey("INT", "5000", at_least(1), use=GROUPS),
    "group.streams.min.session.timeout.ms": ConfigKey("INT", "45000", at_least(1), use=GROUPS),
    "group.streams.min.task.offset.interval.ms": ConfigKey("INT", "15000", at_least(1), use=GROUPS, internal=True),
    "group.streams.num.standby.replicas": ConfigKey("INT", "0", at_least(0), use=GROUPS),
    "group.streams.num.warmup.replicas": ConfigKey("INT", "2", at_least(0), use=GROUPS, internal=True),
    "group.streams.rack.aware.assignment.tags": ConfigKey("LIST", "", members(), use=GROUPS),
    "group.streams.session.timeout.ms": ConfigKey("INT", "45000", at_least(1), use=GROUPS),
    "group.streams.task.offset.interval.ms": ConfigKey("INT", "60000", at_least(1), use=GROUPS, internal=True),
    "group.streams.topology.description.plugin.class": ConfigKey("CLASS", None, use=GROUPS),
    "offset.metadata.max.bytes": ConfigKey("INT", "4096", use=GROUPS),
    "offsets.commit.timeout.ms": ConfigKey("INT", "5000", at_least(1), use=GROUPS),
    "offsets.load.buffer.size": ConfigKey("INT", "5242880", at_least(1), use=GROUPS),
    "offsets.retention.check.interval.ms": ConfigKey("LONG", "600000", at_least(1), use=GROUPS),
    "offsets.retention.minutes": ConfigKey("INT", "10080", at_least(1), use=GROUPS),
    "offsets.topic.compression.codec": ConfigKey("INT", "0", use=GROUPS),
    "offsets.topic.num.partitions": ConfigKey("INT", "50", at_least(1), use=GROUPS),
    "offsets.topic.replication.factor": ConfigKey("SHORT", "3", at_least(1), use=GROUPS),
    "offsets.topic.segment.bytes": ConfigKey("INT", "104857600", at_least(1), use=GROUPS),
    "share.coordinator.append.linger.ms": ConfigKey("INT", "-1", at_least(-1), use=GROUPS),
    "share.coordinator.cached.buffer.max.bytes": ConfigKey(
        "INT", "1048588", at_least(524288), update=CLUSTER_WIDE, use=GROUPS
    ),
    "share.coordinator.cold.partition.snapshot.interval.ms": ConfigKey(
        "INT", "300000", at_least(1), use=GROUPS, internal=True
    ),
    "share.coordinator.load.buffer.size": ConfigKey("INT", "5242880", at_least(1), use=GROUPS),
    "share.coordinator.snapshot.update.records.per.snapshot": ConfigKey("INT", "500", between(0, 500), use=GROUPS),
    "share.coordinator.state.topic.compression.codec": ConfigKey("INT", "0", use=GROUPS),
    "share.coordinator.state.topic.min.isr": ConfigKey("SHORT", "2", at_least(1), use=GROUPS),
    "share.coordinator.state.topic.num.partitions": ConfigKey("INT", "50", at_least(1), use=GROUPS),
    "share.coordinator.state.topic.prune.interval.ms": ConfigKey(
        "INT", "300000", at_least(1), use=GROUPS, internal=True
    ),
    "share.coordinator.state.topic.replication.factor": ConfigKey("SHORT", "3", at_least(1), use=GROUPS),
    "share.coordinator.state.topic.segment.bytes": ConfigKey("INT", "104857600", at_least(1), use=GROUPS),
    "share.coordinator.threads": ConfigKey("INT", "1", at_least(1), use=GROUPS),
    "share.coordinator.write.timeout.ms": ConfigKey("INT", "5000", at_least(1), use=GROUPS),
    "share.fetch.purgatory.purge.interval.requests": ConfigKey("INT", "1000", use=GROUPS),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": ConfigKey(
        "INT", "10000", at_least(1), use=TRANSACTIONS
    ),
    "transaction.max.timeout.ms": ConfigKey("INT", "900000", at_least(1), use=TRANSACTIONS),
    "transaction.partition.verification.enable": ConfigKey("BOOLEAN", "true", update=CLUSTER_WIDE, use=TRANSACTIONS),
    "transaction.remove.expired.transaction.cleanup.interval.ms": ConfigKey(
        "INT", "3600000", at_least(1), use=TRANSACTIONS
    ),
    "transaction.state.log.load.buffer.size": ConfigKey("INT", "5242880", at_least(1), use=TRANSACTIONS),
    "transaction.state.log.min.isr": ConfigKey("INT", "2", at_least(1), use=TRANSACTIONS),
    "transaction.state.log.num.partitions": ConfigKey("INT", "50", at_least(1), use=TRANSACTIONS),
    "transaction.state.log.replication.factor": ConfigKey("SHORT", "3", at_least(1), use=TRANSACTIONS),
    "transaction.state.log.segment.bytes": ConfigKey("INT", "104857600", at_least(1), use=TRANSACTIONS),
    "transaction.two.phase.commit.enable": ConfigKey("BOOLEAN", "false", use=TRANSACTIONS),
    "transactional.id.expiration.ms": ConfigKey("INT", "604800000", at_least(1), use=TRANSACTIONS),
}
