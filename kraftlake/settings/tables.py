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
from kraftlake.settings.security_settings import SECURITY_SETTINGS
from kraftlake.settings.topic_configs import TOPIC_CONFIGS

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
