"""The `repr` of images and of objects made from them: one line with the counts of their entries."""

from __future__ import annotations


def short_repr(shown: object, **counts: int) -> str:
    """`<TopicsImage: 21 topics, 75 partitions>`: entries are counted, not listed."""
    return f"<{type(shown).__name__}: {counted(**counts)}>"


def counted(**counts: int) -> str:
    """`1 topic, 6 partitions`, from counts by plural noun."""
    return ", ".join(f"{count:,} {_noun(plural, count)}" for plural, count in counts.items())


def _noun(plural: str, count: int) -> str:
    words = plural.replace("_", " ")
    if count != 1:
        return words
    return f"{words[:-3]}y" if words.endswith("ies") else words.removesuffix("s")
