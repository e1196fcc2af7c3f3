"""How changes of a topic's configs reach its logs and the throttles of its replicas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraftlake.replica_manager.logs.log_manager import LogManager
from kraftlake.replica_manager.replication_quota import ReplicationQuota, throttled_partitions

LEADER_THROTTLED_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_THROTTLED_REPLICAS: Final = "follower.replication.throttled.replicas"


class TopicConfigHandler:
    """A `DynamicConfigHandler` of topics: has their logs heed the new configs, and quotas the throttled replicas.

    Source: kafka.server.TopicConfigHandler.
    """

    def __init__(
        self,
        broker_id: int,
        log_manager: LogManager,
        *,
        leader_quota: ReplicationQuota | None = None,
        follower_quota: ReplicationQuota | None = None,
    ) -> None:
        self._broker_id = broker_id
        self._logs = log_manager
        self._quotas = {LEADER_THROTTLED_REPLICAS: leader_quota, FOLLOWER_THROTTLED_REPLICAS: follower_quota}

    def process_config_changes(self, name: str, configs: Mapping[str, str]) -> None:
        """Take all configs that are set for topic `name` now; those that are not fall back on the defaults."""
        self._logs.update_topic_config(name, configs)
        for config, quota in self._quotas.items():
            if quota is None:
                continue
            if configs.get(config):
                quota.throttle(name, throttled_partitions(configs[config], self._broker_id))
            else:
                quota.release(name)
