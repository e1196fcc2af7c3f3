"""Topic names that collide in metrics. Source: org.apache.kafka.common.internals.Topic.hasCollision."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection

_SEPARATORS = re.compile("[._]")
_MAX_LOOKED_UP = 12


def unified(name: str) -> str:
    """The name in metrics, which must be unique."""
    return name.replace(".", "_")


def colliding_topic(name: str, others: Collection[str]) -> str | None:
    """A name of `others` that differs from `name` only in '.' and '_', or is equal and has one of them; or None.

    Looks up the possible colliding names if there are fewer of them than of `others`.
    """
    parts = _SEPARATORS.split(name)
    if len(parts) == 1:
        return None
    if len(parts) <= _MAX_LOOKED_UP and 2 ** (len(parts) - 1) <= len(others):
        choices = itertools.product("._", repeat=len(parts) - 1)
        candidates = ("".join(itertools.chain(*zip(parts, (*choice, ""), strict=True))) for choice in choices)
        return next((candidate for candidate in candidates if candidate in others), None)
    mine = unified(name)
    return min((other for other in others if unified(other) == mine and _SEPARATORS.search(other)), default=None)
