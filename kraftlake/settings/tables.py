"""All configs that Kafka 4.4 defines, by resource type: the source of all other lists."""

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
"""Settings that take effect only if they are set while the cluster runs, not in a properties file.

Source: org.apache.kafka.server.config.QuotaConfig (brokerQuotaConfigs).
"""

NODE_SETTINGS: Final[Mapping[str, ConfigKey]] = {**BROKER_CONFIGS, **AUTHORIZER_SETTINGS}
"""All settings that a properties file of a node may have."""

CONFIGS: Final[Mapping[int, Mapping[str, ConfigKey]]] = {
    TOPIC: TOPIC_CONFIGS,
    BROKER: BROKER_CONFIGS,
    CLIENT_METRICS: CLIENT_METRICS_CONFIGS,
    GROUP: GROUP_CONFIGS,
}
"""The configs by the number of the resource type in a ConfigRecord. Loggers (8) have no defined names."""

_OF_LISTENER: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")
_OF_MECHANISMS: Final = (
    "sasl.jaas.config", "sasl.login.callback.handler.class", "sasl.login.class", "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)  # fmt: skip
"""Settings that may be set for one SASL mechanism of a listener: `listener.name.NAME.MECHANISM.sasl.jaas.config`."""


def of_listener(name: str) -> str | None:
    """Return the setting without the prefix of a listener, `listener.name.NAME.`; None without the prefix."""
    match = _OF_LISTENER.fullmatch(name)
    return None if match is None else match[1]


def base_of(name: str) -> str:
    """Return the base setting of a listener's or a mechanism's setting; any other setting is its own base."""
    base = of_listener(name)
    return name if base is None else next((one for one in _OF_MECHANISMS if base.endswith(one)), base)


def key_of(resource_type: int, name: str) -> ConfigKey | None:
    """Return the definition of a config, including one listener's; None if Kafka has none."""
    return CONFIGS.get(resource_type, {}).get(base_of(name) if resource_type == BROKER else name)


def is_supported(resource_type: int, name: str) -> bool:
    """Whether Kafka 4.4 applies a config from the log.

    Kafka ignores a config that it does not define, or no longer defines. Brokers may have configs of any name: those of
    plugins and listeners have no definition. Source: org.apache.kafka.server.config.DefaultSupportedConfigChecker.
    """
    return resource_type == BROKER or name in CONFIGS.get(resource_type, {})


def why_ignored(resource_type: int, name: str, value: str) -> Ignored | None:
    """The reason why a config of a resource in the metadata log has no effect here.

    None for a config with an effect, for an unknown config, and for a default.
    """
    key = key_of(resource_type, name)
    if key is None:
        return None
    if resource_type == BROKER and isinstance(key.use, Heeded) and not key.use.live:
        return AT_START_ALONE
    return key.why_ignored(value)


def is_heeded_by(role: str, name: str) -> bool:
    """Whether nodes of a role use a setting of a properties file."""
    key = NODE_SETTINGS.get(base_of(name))
    return key is not None and isinstance(key.use, Heeded) and role in key.use.by
