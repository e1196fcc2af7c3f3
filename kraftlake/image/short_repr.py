"""How images and what is made of them show themselves in a notebook or a log: by what they count, on one line."""

from __future__ import annotations


def short_repr(shown: object, **counts: int) -> str:
    """`<TopicsImage: 21 topics, 75 partitions>`; a cluster has too many entries to list them wherever it is named."""
    return f"<{type(shown).__name__}: {counted(**counts)}>"


def counted(**counts: int) -> str:
    """`1 topic, 6 partitions`, of plurals and their numbers."""
    return ", ".join(f"{count:,} {_noun(plural, count)}" for plural, count in counts.items())


def _noun(plural: str, count: int) -> str:
    words = plural.replace("_", " ")
    if count != 1:
        return words
    return f"{words[:-3]}y" if words.endswith("ies") else words.removesuffix("s")
