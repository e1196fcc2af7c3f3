"""The comparison of two logs in sentences; none says which of two histories is the right one."""

from __future__ import annotations

from datetime import UTC, datetime

from kraftlake.replay.comparing.exclusive_records import ExclusiveRecords
from kraftlake.replay.comparing.log_comparison import Difference, LogComparison, Relation
from kraftlake.runtime.moments import iso
from kraftlake.runtime.words import counted, in_words


def comparison_sentence(found: LogComparison, one: str, other: str) -> str:
    """A sentence on whether two logs of these names are one history, and where they part; without a full stop."""
    first, last = found.first, found.end - 1
    match found.relation:
        case Relation.UNKNOWN:
            return f"{one} and {other} have no offset in common: nothing shows whether they are one history"
        case Relation.SAME:
            return f"{one} and {other} are the same log: offsets {first} to {last}"
        case Relation.PREFIX:
            further, shorter = (one, other) if found.ends[0] > found.ends[1] else (other, one)
            more = max(found.ends) - min(found.ends)
            return (
                f"{one} and {other} are one history: offsets {first} to {last} are the same, and {further} has "
                f"{counted(more, 'offset')} more than {shorter}"
            )
        case Relation.CHANGED:
            how = difference_words(found, one, other)
            return (
                f"{one} and {other} differ at offset {found.parts_at} ({how}), and from offset {found.same_again_at} "
                "on they are the same again: no quorum writes such logs, so one of them was changed after it was "
                "written"
            )
    if found.or_before:
        return (
            f"{one} and {other} are two histories: they have no offset in common, and a snapshot states another epoch "
            f"for offset {found.parts_at} than the log has there"
        )
    if found.last_common is None:
        common = f"they differ from offset {found.parts_at} on, the first that both have"
    else:
        at = found.last_common
        common = f"they are the same from offset {first} to {at.last_offset} (epoch {at.epoch}, CRC {at.crc:08x})"
        common += f" and part at offset {found.parts_at}"
    return f"{one} and {other} are two histories: {common} ({difference_words(found, one, other)})"


def difference_words(found: LogComparison, one: str, other: str) -> str:
    """The difference between two logs of these names at the first offset at which they differ."""
    assert found.difference is not None, "they differ"
    if found.difference is Difference.EPOCH and found.differing is not None:
        here, there = found.differing
        return f"epoch {here.epoch} in {one}, epoch {there.epoch} in {other}"
    return found.difference.value


def alone_words(held: ExclusiveRecords) -> str:
    """The records of only one log: `offsets 10 to 30 in epoch 1, 15 records besides no-ops, …`."""
    last = held.end_offset - 1
    offsets = f"offset {last}" if held.from_offset == last else f"offsets {held.from_offset} to {last}"
    epochs = f"epoch{'s' if len(held.epochs) > 1 else ''} {_span(held.epochs)}"
    times = ""
    if held.last_timestamp >= 0:
        begin, end = (iso(datetime.fromtimestamp(ms / 1000, UTC)) for ms in (held.first_timestamp, held.last_timestamp))
        times = f", of {end}" if begin == end else f", from {begin} to {end}"
    return f"{offsets} in {epochs}, {counted(held.records, 'record')} besides no-ops{times}"


def held_words(found: LogComparison, held: ExclusiveRecords) -> str:
    """`alone_words`, and the extent that a log proves committed by its own quorum; a changed batch proves none."""
    words = alone_words(held)
    if found.relation is Relation.CHANGED:
        return words
    if not held.shows_commit:
        return f"{words}, nothing in it shows that a quorum committed these"
    return f"{words}, committed by its own quorum up to offset {held.committed_to - 1} at least"


def _span(epochs: tuple[int, ...]) -> str:
    if len(epochs) > 2 and epochs[-1] - epochs[0] == len(epochs) - 1:
        return f"{epochs[0]} to {epochs[-1]}"
    return in_words(epochs)
