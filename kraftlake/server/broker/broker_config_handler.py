"""Applies changed configs of brokers to the logs and to the replication quotas."""

from __future__ import annotations

from collections.abc import Mapping

from kraftlake.publisher import DynamicConfigs
from kraftlake.replica_manager import DiskLogManager, MemoryLogManager, ReplicationQuota
from kraftlake.runtime import UsageError, get_logger
from kraftlake.server.broker.broker_config import (
    FOLLOWER_RATE,
    LEADER_RATE,
    BrokerConfig,
    check_dynamic_setting,
    log_defaults,
    throttled_rate,
)

_log = get_logger(__name__)


class BrokerConfigHandler:
    """The `DynamicConfigHandler` of brokers: applies the configs of this broker and of all over its settings.

    A controller takes any value, so that one may be wrong that another tool has set. Such a config is as one that is
    not set; the others count.

    Source: kafka.server.BrokerConfigHandler.
    """

    def __init__(
        self,
        config: BrokerConfig,
        log_manager: DiskLogManager | MemoryLogManager,
        *,
        leader_quota: ReplicationQuota,
        follower_quota: ReplicationQuota,
    ) -> None:
        self._config = config
        self._logs = log_manager
        self._quotas = {LEADER_RATE: leader_quota, FOLLOWER_RATE: follower_quota}
        self._settings = DynamicConfigs()

    def process_config_changes(self, name: str, configs: Mapping[str, str]) -> None:
        """Apply all configs now set for broker `name`, or for all brokers ("")."""
        self._settings.process_config_changes(name, _sound(configs))
        settings = self._settings.effective(str(self._config.broker_id), self._config.settings)
        self._logs.update_defaults(log_defaults(settings))
        of_the_cluster = self._settings.effective(str(self._config.broker_id))
        for setting, quota in self._quotas.items():
            quota.bytes_per_second = throttled_rate(setting, of_the_cluster)


def _sound(configs: Mapping[str, str]) -> dict[str, str]:
    sound = {}
    for name, value in configs.items():
        try:
            check_dynamic_setting(name, value)
        except UsageError as problem:
            _log.error("config_ignored", config=name, why=str(problem))
        else:
            sound[name] = value
    return sound
