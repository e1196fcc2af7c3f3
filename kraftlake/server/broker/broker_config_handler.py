"""Applies changed settings to a running node: to its logs, throttles, fetchers, producers and listeners."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import attrs

from kraftlake.protocol.security_protocol import SecurityProtocol
from kraftlake.publisher.dynamic_broker_config import DynamicBrokerConfig
from kraftlake.replica_manager.logs.disk.disk_log_manager import DiskLogManager
from kraftlake.replica_manager.logs.memory_log import MemoryLogManager
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.replica_manager.replication_quota import ReplicationQuota
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.log import get_logger
from kraftlake.server.broker.broker_config import log_defaults
from kraftlake.server.broker.log_cleaning import CleaningThreads, cleaner_config
from kraftlake.server.broker.reconfigurations import problem_of_settings
from kraftlake.server.listener_security import listener_security
from kraftlake.server.node_config import NodeSettings
from kraftlake.server.requests.listener import RequestListener
from kraftlake.server.requests.listener_limits import listener_limits
from kraftlake.settings.dynamic_settings import problem_of_setting, sound_settings

Reconfigure: TypeAlias = Callable[[DynamicBrokerConfig], None]
"""Applies the effective settings."""
_log = get_logger(__name__)


class BrokerConfigHandler:
    """The `DynamicConfigHandler` of brokers: applies this node's configs and all nodes' configs over `static` ones.

    A controller accepts any value, so another tool may have set an invalid one. An invalid config counts as not set;
    the others apply. If configs contradict each other, the previous ones stay applied.

    Source: kafka.server.BrokerConfigHandler, kafka.server.DynamicBrokerConfig.
    """

    def __init__(self, static: Mapping[str, str], *reconfigure: Reconfigure) -> None:
        self._settings = DynamicBrokerConfig(static=static, of_all={}, own={})
        self._reconfigure = list(reconfigure)

    def add(self, reconfigure: Reconfigure) -> None:
        """Register another function that applies the settings from now on."""
        self._reconfigure.append(reconfigure)

    def process_config_changes(self, name: str, configs: Mapping[str, str]) -> None:
        """Apply all configs now set for this broker, `name`, or for all brokers ("")."""
        sound = sound_settings(configs, of_all=not name)
        for config in sorted({*configs} - {*sound}):
            _log.error(
                "config_ignored", config=config, why=problem_of_setting(config, configs[config], of_all=not name)
            )
        changed = {"own" if name else "of_all": sound}
        self._settings = attrs.evolve(self._settings, **changed)
        effective = self._settings.effective
        problem = problem_of_settings(effective, effective["listeners"])
        if problem is not None:
            _log.error("configs_ignored", configs=sorted(sound), why=problem)
            return
        for reconfigure in self._reconfigure:
            reconfigure(self._settings)


def reconfigure_logs(logs: DiskLogManager | MemoryLogManager) -> Reconfigure:
    """Return a function that applies the defaults of topic configs to the logs."""
    return lambda settings: logs.update_defaults(log_defaults(settings.effective.values))


def reconfigure_cleaner(cleaning: CleaningThreads) -> Reconfigure:
    """Return a function that applies the settings of the log cleaner from its next cleanings on."""
    return lambda settings: cleaning.reconfigure(cleaner_config(settings.effective.__getitem__))


def reconfigure_quotas(quotas: Mapping[str, ReplicationQuota]) -> Reconfigure:
    """Return a function that applies the throttled rates, which count only if set while the cluster runs.

    `quotas` has the quota of each setting.
    """

    def reconfigure(settings: DynamicBrokerConfig) -> None:
        for setting, quota in quotas.items():
            quota.bytes_per_second = settings.while_running(setting)

    return reconfigure


def reconfigure_replicas(manager: ReplicaManager) -> Reconfigure:
    """Return a function that applies the number of fetchers and the time for which producers are remembered."""

    def reconfigure(settings: DynamicBrokerConfig) -> None:
        manager.replica_fetchers.resize(settings.effective["num.replica.fetchers"])
        manager.producer_id_expiration_ms = settings.effective["producer.id.expiration.ms"]

    return reconfigure


def reconfigure_listener(listener: RequestListener, *, of_controller: bool = False) -> Reconfigure:
    """Return a function that applies the limits and the security of new connections; stores are read anew."""

    def reconfigure(settings: DynamicBrokerConfig) -> None:
        node = NodeSettings(values=settings.effective.values)
        listener.limit(listener_limits(node, listener.name))
        if listener.security.protocol is SecurityProtocol.PLAINTEXT:
            return
        try:
            listener.secure(listener_security(node, listener.name, of_controller=of_controller))
        except UsageError as fault:
            _log.error("configs_ignored", listener=listener.name, why=str(fault))

    return reconfigure
