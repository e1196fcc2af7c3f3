"""Valid topic names, and Kafka's internal topics. Source: org.apache.kafka.common.internals.Topic."""

from __future__ import annotations

import re
from typing import Final

GROUP_METADATA_TOPIC: Final = "__consumer_offsets"
TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
SHARE_GROUP_STATE_TOPIC: Final = "__share_group_state"
INTERNAL_TOPICS: Final = frozenset((GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC))

MAX_LENGTH: Final = 249
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def problem_of_name(name: str) -> str | None:
    """The reason why a topic can't have that name; None if it can (Topic.validate)."""
    if not name:
        return "A topic's name can't be empty."
    if name in (".", ".."):
        return "A topic's name can't be '.' or '..'."
    if len(name) > MAX_LENGTH:
        return f"The name has {len(name)} characters; at most {MAX_LENGTH} are allowed."
    if not _LEGAL.fullmatch(name):
        return f"The name {name!r} has characters other than letters, digits, '.', '_' and '-'."
    return None
