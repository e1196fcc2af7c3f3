"""All configs that Kafka 4.4 defines, by the type of resource: the one list that others are made from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kraftlake.settings.client_metrics_configs import CLIENT_METRICS_CONFIGS
from kraftlake.settings.cluster_settings import CLUSTER_SETTINGS
from kraftlake.settings.config_key import ConfigKey
from kraftlake.settings.group_configs import GROUP_CONFIGS
from kraftlake.settings.group_settings import GROUP_SETTINGS
from kraftlake.settings.log_settings import LOG_SETTINGS
from kraftlake.settings.network_settings import NETWORK_SETTINGS
from kraftlake.settings.other_settings import OTHER_SETTINGS
from kraftlake.settings.remote_settings import REMOTE_SETTINGS
from kraftlake.settings.replication_settings import REPLICATION_SETTINGS
from kraftlake.settings.security_settings import AUTHORIZER_SETTINGS, SECURITY_SETTINGS
from kraftlake.settings.topic_configs import TOPIC_CONFIGS
from kraftlake.settings.uses import AT_START_ALONE, Heeded, Ignored

TOPIC: Final = 2
BROKER: Final = 4
CLIENT_METRICS: Final = 16
GROUP: Final = 32

BROKER_CONFIGS: Final[Mapping[str, ConfigKey]] = {
    **CLUSTER_SETTINGS,
    **LOG_SETTINGS,
    **REPLICATION_SETTINGS,
    **NETWORK_SETTINGS,
    **SECURITY_SETTINGS,
    **REMOTE_SETTINGS,
    **GROUP_SETTINGS,
    **OTHER_SETTINGS,
}
"""Every config of a node, whichever its role."""

DYNAMIC_ONLY: Final = frozenset(
    {
        "follower.replication.throttled.rate", "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)  # fmt: skip
"""Those that are made while the cluster runs, and that no properties file has (QuotaConfig.brokerQuotaConfigs)."""

NODE_SETTINGS: Final[Mapping[str, ConfigKey]] = {**BROKER_CONFIGS, **AUTHORIZER_SETTINGS}
"""Every setting that a properties file of a node may have."""

CONFIGS: Final[Mapping[int, Mapping[str, ConfigKey]]] = {
    TOPIC: TOPIC_CONFIGS,
    BROKER: BROKER_CONFIGS,
    CLIENT_METRICS: CLIENT_METRICS_CONFIGS,
    GROUP: GROUP_CONFIGS,
}
"""By the number of the resource type in a ConfigRecord. Loggers (8) have no defined names."""

_LISTENER_PREFIX: Final = re.compile(r"listener\.name\.[^.]*\.")
"""What the name of a broker config begins with that is of one listener; the rest says which config it is."""


def key_of(resource_type: int, name: str) -> ConfigKey | None:
    """The definition of a config, also of one listener's; None where Kafka has none."""
    if resource_type == BROKER and (prefix := _LISTENER_PREFIX.match(name)) is not None:
        name = name[prefix.end() :]
    return CONFIGS.get(resource_type, {}).get(name)


def is_supported(resource_type: int, name: str) -> bool:
    """Whether Kafka 4.4 takes a config from the log; it ignores a config that it does not define, or no longer.

    Brokers may have configs of any name: those of plugins and listeners are not defined anywhere.
    Source: org.apache.kafka.server.config.DefaultSupportedConfigChecker.
    """
    return resource_type == BROKER or name in CONFIGS.get(resource_type, {})


def why_ignored(resource_type: int, name: str, value: str) -> Ignored | None:
    """Why a config of a resource in the metadata log has no effect here.

    None where it has; also for what is unknown, and for defaults.
    """
    key = key_of(resource_type, name)
    if key is None:
        return None
    if resource_type == BROKER and isinstance(key.use, Heeded) and not key.use.live:
        return AT_START_ALONE
    return key.why_ignored(value)


def heeded_by(role: str) -> frozenset[str]:
    """The settings that nodes of a role heed."""
    return frozenset(name for name, key in NODE_SETTINGS.items() if isinstance(key.use, Heeded) and role in key.use.by)
