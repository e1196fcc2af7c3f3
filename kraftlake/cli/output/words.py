"""Values as words: pieces of styled text, counts, times, amounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from kraftlake.cli.output.theme import Piece
from kraftlake.cli.output.zone import in_zone
from kraftlake.runtime.moments import EPOCH
from kraftlake.runtime.words import counted

NONE = "–"
"""The text for an empty list or an absent value."""


def listed(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces with commas between them."""
    return [piece for index, one in enumerate(pieces) for piece in ([", ", one] if index else [one])]


def numbers(values: Sequence[int]) -> str:
    """`1 2 3`, or a dash for none."""
    return " ".join(map(str, values)) or NONE


def moment(milliseconds: int | str | None) -> str:
    """Milliseconds since 1970 as ISO 8601 in the shown zone; a dash for Kafka's −1; `(redacted)` stays."""
    if isinstance(milliseconds, str):
        return milliseconds
    if milliseconds is None or milliseconds < 0:
        return NONE
    try:
        return in_zone(EPOCH + timedelta(milliseconds=milliseconds))
    except OverflowError:
        return f"{milliseconds} ms"


def since_words(since: Mapping[str, Any], day: str = "") -> str:
    """`4592 2026-11-21 07:49:37.784Z`: the offset and time since when a state holds; a time on `day` has no date."""
    earlier = " or earlier" if since.get("orEarlier") else ""
    return f"{since['offset']} {moment(since['timestamp']).removeprefix(f'{day} ')}{earlier}"


def amount(value: Any) -> str:
    """A number without a needless fraction: `1,048,576`, `12.25`."""
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e15 else repr(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def size(count: int) -> str:
    """A number of bytes: `512 bytes`, `47.7 KiB`."""
    if count < 1024:
        return counted(count, "byte")
    if count < 1024**2:
        return f"{count / 1024:,.1f} KiB"
    return f"{count / 1024**2:,.1f} MiB" if count < 1024**3 else f"{count / 1024**3:,.1f} GiB"


def levels(features: Mapping[str, int]) -> str:
    """`group.version 1, share.version 0`, or a dash for none."""
    return ", ".join(f"{name} {level}" for name, level in sorted(features.items())) or NONE
