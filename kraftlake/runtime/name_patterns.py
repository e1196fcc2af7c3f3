"""Names and shell patterns that select things by their name."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name equals one of the patterns, or matches one as a shell pattern."""
    return any(name == pattern or fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
