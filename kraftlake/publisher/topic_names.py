"""Valid topic names, and internal topics."""

from __future__ import annotations

import re
from typing import Final

GROUP_METADATA_TOPIC: Final = "__consumer_offsets"
TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
SHARE_GROUP_STATE_TOPIC: Final = "__share_group_state"

_INTERNAL = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC})
_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}\Z")


def is_internal(topic: str) -> bool:
    """Whether the topic is internal. Source: org.apache.kafka.common.internals.Topic.isInternal."""
    return topic in _INTERNAL


def is_valid(topic: str) -> bool:
    """Whether a topic name is valid. Source: org.apache.kafka.common.internals.Topic.validate."""
    return topic not in {".", ".."} and _LEGAL.match(topic) is not None
