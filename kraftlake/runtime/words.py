"""Counts, names and foreign strings in English sentences."""

from __future__ import annotations

from collections.abc import Sequence


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """`1 topic`, `3,000 topics`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def in_words(names: Sequence[object], conjunction: str = "and") -> str:
    """`1`, `1 and 2`, `1, 2 and 3`; empty for none."""
    words = list(map(str, names))
    return f" {conjunction} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def shown(text: str, limit: int = 200) -> str:
    """A foreign string made safe for a message: control characters escaped, at most `limit` characters."""
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)
    return safe if len(safe) <= limit else safe[:limit] + "…"
