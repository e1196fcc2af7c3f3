"""The configs that Kafka 4.4 defines for nodes, topics, groups and client metrics, declared once.

Each has its type, default and validator, where it may be set, and what this project does with it. What is re-exported
here is imported when it is first asked for, so that naming the room costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.settings.client_metrics_configs import CLIENT_METRICS_CONFIGS
    from kraftlake.settings.config_key import PER_BROKER, READ_ONLY, ConfigKey
    from kraftlake.settings.dynamic_settings import (
        OF_ALL_LISTENERS,
        is_live,
        problem_of_setting,
        problem_of_value,
        sound_settings,
    )
    from kraftlake.settings.group_bounds import GROUP_KINDS, bounds_of_group
    from kraftlake.settings.group_configs import GROUP_CONFIGS
    from kraftlake.settings.node_combinations import connections_by_host, problem_of_combination
    from kraftlake.settings.tables import (
        BROKER,
        BROKER_CONFIGS,
        CLIENT_METRICS,
        CONFIGS,
        DYNAMIC_ONLY,
        GROUP,
        NODE_SETTINGS,
        TOPIC,
        base_of,
        is_heeded_by,
        is_supported,
        key_of,
        of_listener,
        why_ignored,
    )
    from kraftlake.settings.topic_configs import TOPIC_CONFIGS, unit_ms
    from kraftlake.settings.uses import BROKER_ROLE, CLIENT_QUOTAS, CONTROLLER_ROLE, NEVER_AT_START, Heeded, Ignored

__all__ = [
    "BROKER",
    "BROKER_CONFIGS",
    "BROKER_ROLE",
    "CLIENT_METRICS",
    "CLIENT_METRICS_CONFIGS",
    "CLIENT_QUOTAS",
    "CONFIGS",
    "CONTROLLER_ROLE",
    "DYNAMIC_ONLY",
    "GROUP",
    "GROUP_CONFIGS",
    "GROUP_KINDS",
    "NEVER_AT_START",
    "NODE_SETTINGS",
    "OF_ALL_LISTENERS",
    "PER_BROKER",
    "READ_ONLY",
    "TOPIC",
    "TOPIC_CONFIGS",
    "ConfigKey",
    "Heeded",
    "Ignored",
    "base_of",
    "bounds_of_group",
    "connections_by_host",
    "is_heeded_by",
    "is_live",
    "is_supported",
    "key_of",
    "of_listener",
    "problem_of_combination",
    "problem_of_setting",
    "problem_of_value",
    "sound_settings",
    "unit_ms",
    "why_ignored",
]

__getattr__, __dir__ = lazy_exports(__name__, __all__)
