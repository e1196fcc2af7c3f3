"""Topic names that metrics can't tell apart. Source: org.apache.kafka.common.internals.Topic.hasCollision."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection

_SEPARATORS = re.compile("[._]")
_MAX_LOOKED_UP = 12


def unified(name: str) -> str:
    """The name as metrics see it: two topics must not share it."""
    return name.replace(".", "_")


def colliding_topic(name: str, others: Collection[str]) -> str | None:
    """One of `others` that differs from `name` in '.' and '_' only, or is the same and has one of them.

    Looks the names up that `name` could be confused with, where that are fewer than `others`.
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
