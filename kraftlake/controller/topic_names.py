"""What a topic may be called. Source: org.apache.kafka.common.internals.Topic."""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_LENGTH = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def problem_of_name(name: str) -> str | None:
    """Why a topic can't be called that; None when it can."""
    if not name:
        return "A topic's name can't be empty."
    if name in (".", ".."):
        return "A topic can't be called . or .. ."
    if len(name) > MAX_LENGTH:
        return f"The name has {len(name)} characters; {MAX_LENGTH} is the most."
    if not _LEGAL.fullmatch(name):
        return f"The name {name!r} has characters other than letters, digits, '.', '_' and '-'."
    return None


def unified(name: str) -> str:
    """The name as metrics see it: two topics must not share it."""
    return name.replace(".", "_")


def colliding_topic(name: str, others: Iterable[str]) -> str | None:
    """One of `others` that differs from `name` in '.' and '_' only, or is the same and has one of them."""
    if "." not in name and "_" not in name:
        return None
    mine = unified(name)
    return min((other for other in others if unified(other) == mine and ("." in other or "_" in other)), default=None)
