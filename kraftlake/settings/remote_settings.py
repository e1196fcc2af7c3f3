"""Settings of tiered storage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraftlake.settings.checks import at_least, between, not_empty
from kraftlake.settings.config_key import CLUSTER_WIDE, ConfigKey
from kraftlake.settings.uses import REMOTE_STORAGE

REMOTE_SETTINGS: Final[Mapping[str, ConfigKey]] = {
    "follower.fetch.last.tiered.offset.enable": ConfigKey("BOOLEAN", "false", update=CLUSTER_WIDE, use=REMOTE_STORAGE),
    "log.local.retention.bytes": ConfigKey("LONG", "-2", at_least(-2), update=CLUSTER_WIDE, use=REMOTE_STORAGE),
    "log.local.retention.ms": ConfigKey("LONG", "-2", at_least(-2), update=CLUSTER_WIDE, use=REMOTE_STORAGE),
    "log.remote.copy.lag.bytes": ConfigKey("LONG", "-1", at_least(-1), update=CLUSTER_WIDE, use=REMOTE_STORAGE),
    "log.remote.copy.lag.ms": ConfigKey("LONG", "0", at_least(-1), update=CLUSTER_WIDE, use=REMOTE_STORAGE),
    "remote.fetch.max.wait.ms": ConfigKey("INT", "500", at_least(1), update=CLUSTER_WIDE, use=REMOTE_STORAGE),
    "remote.list.offsets.request.timeout.ms": ConfigKey(
        "LONG", "30000", at_least(1), update=CLUSTER_WIDE, use=REMOTE_STORAGE
    ),
    "remote.log.index.file.cache.total.size.bytes": ConfigKey(
        "LONG", "1073741824", at_least(1), update=CLUSTER_WIDE, use=REMOTE_STORAGE
    ),
    "remote.log.index.file.cache.ttl.ms": ConfigKey("LONG", "900000", at_least(-1), use=REMOTE_STORAGE, internal=True),
    "remote.log.manager.copier.thread.pool.size": ConfigKey(
        "INT", "10", at_least(1), update=CLUSTER_WIDE, use=REMOTE_STORAGE
    ),
    "remote.log.manager.copy.max.bytes.per.second": ConfigKey(
        "LONG", "9223372036854775807", at_least(1), update=CLUSTER_WIDE, use=REMOTE_STORAGE
    ),
    "remote.log.manager.copy.quota.window.num": ConfigKey("INT", "11", at_least(1), use=REMOTE_STORAGE),
    "remote.log.manager.copy.quota.window.size.seconds": ConfigKey("INT", "1", at_least(1), use=REMOTE_STORAGE),
    "remote.log.manager.expiration.thread.pool.size": ConfigKey(
        "INT", "10", at_least(1), update=CLUSTER_WIDE, use=REMOTE_STORAGE
    ),
    "remote.log.manager.fetch.max.bytes.per.second": ConfigKey(
        "LONG", "9223372036854775807", at_least(1), update=CLUSTER_WIDE, use=REMOTE_STORAGE
    ),
    "remote.log.manager.fetch.quota.window.num": ConfigKey("INT", "11", at_least(1), use=REMOTE_STORAGE),
    "remote.log.manager.fetch.quota.window.size.seconds": ConfigKey("INT", "1", at_least(1), use=REMOTE_STORAGE),
    "remote.log.manager.follower.thread.pool.size": ConfigKey(
        "INT", "2", at_least(1), update=CLUSTER_WIDE, use=REMOTE_STORAGE
    ),
    "remote.log.manager.task.interval.ms": ConfigKey("LONG", "30000", at_least(1), use=REMOTE_STORAGE),
    "remote.log.manager.task.retry.backoff.max.ms": ConfigKey(
        "LONG", "30000", at_least(1), use=REMOTE_STORAGE, internal=True
    ),
    "remote.log.manager.task.retry.backoff.ms": ConfigKey(
        "LONG", "500", at_least(1), use=REMOTE_STORAGE, internal=True
    ),
    "remote.log.manager.task.retry.jitter": ConfigKey(
        "DOUBLE", "0.2", between(0, 0.5), use=REMOTE_STORAGE, internal=True
    ),
    "remote.log.manager.thread.pool.size": ConfigKey("INT", "2", at_least(1), use=REMOTE_STORAGE),
    "remote.log.metadata.custom.metadata.max.bytes": ConfigKey("INT", "128", at_least(0), use=REMOTE_STORAGE),
    "remote.log.metadata.manager.class.name": ConfigKey(
        "STRING",
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        not_empty,
        use=REMOTE_STORAGE,
    ),
    "remote.log.metadata.manager.class.path": ConfigKey("STRING", None, use=REMOTE_STORAGE),
    "remote.log.metadata.manager.impl.prefix": ConfigKey("STRING", "rlmm.config.", not_empty, use=REMOTE_STORAGE),
    "remote.log.metadata.manager.listener.name": ConfigKey("STRING", None, not_empty, use=REMOTE_STORAGE),
    "remote.log.reader.max.pending.tasks": ConfigKey("INT", "100", at_least(1), use=REMOTE_STORAGE),
    "remote.log.reader.threads": ConfigKey("INT", "10", at_least(1), update=CLUSTER_WIDE, use=REMOTE_STORAGE),
    "remote.log.storage.manager.class.name": ConfigKey("STRING", None, not_empty, use=REMOTE_STORAGE),
    "remote.log.storage.manager.class.path": ConfigKey("STRING", None, use=REMOTE_STORAGE),
    "remote.log.storage.manager.impl.prefix": ConfigKey("STRING", "rsm.config.", not_empty, use=REMOTE_STORAGE),
    "remote.log.storage.system.enable": ConfigKey("BOOLEAN", "false", use=REMOTE_STORAGE),
}
