"""Applies changed topic configs to the logs of the topic and to the replication quotas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraftlake.replica_manager.logs.log_manager import LogManager
from kraftlake.replica_manager.logs.partition_log import PartitionLog
from kraftlake.replica_manager.replication_quota import ReplicationQuota, throttled_partitions

LEADER_THROTTLED_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_THROTTLED_REPLICAS: Final = "follower.replication.throttled.replicas"


class TopicConfigHandler:
    """The `DynamicConfigHandler` of topics: updates the configs of logs, and the throttled replicas of quotas.

    Source: kafka.server.TopicConfigHandler.
    """

    def __init__(
        self,
        broker_id: int,
        log_manager: LogManager[PartitionLog],
        *,
        leader_quota: ReplicationQuota | None = None,
        follower_quota: ReplicationQuota | None = None,
    ) -> None:
        self._broker_id = broker_id
        self._logs = log_manager
        self._quotas = {LEADER_THROTTLED_REPLICAS: leader_quota, FOLLOWER_THROTTLED_REPLICAS: follower_quota}

    def process_config_changes(self, name: str, configs: Mapping[str, str]) -> None:
        """Apply all configs now set for topic `name`; the defaults apply to the others."""
        self._logs.update_topic_config(name, configs)
        for config, quota in self._quotas.items():
            if quota is None:
                continue
            if configs.get(config):
                quota.throttle(name, throttled_partitions(configs[config], self._broker_id))
            else:
                quota.release(name)
