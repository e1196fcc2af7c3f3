"""The texts of events: the names of partitions, and the sentences that begin with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kraftlake.kernels.language import Int64, Ints, compiled, inlined

if TYPE_CHECKING:
    from kraftlake.kernels.language import Bytes, BytesOut, IntsOut


class Texts(NamedTuple):
    """Texts by number: text i is data[bounds[i]:bounds[i + 1]]."""

    bounds: Ints
    data: Bytes


class TextRoom(NamedTuple):
    """Memory for texts, one after the other: see `Texts`."""

    bounds: IntsOut
    data: BytesOut


@inlined
def _put(texts: Texts, number: Int64, room: TextRoom, p: Int64) -> Int64:
    """Write a text at `p`; returns the position after it."""
    for i in range(texts.bounds[number], texts.bounds[number + 1]):
        room.data[p] = texts.data[i]
        p += 1
    return p


@inlined
def _put_number(number: Int64, room: TextRoom, p: Int64) -> Int64:
    """Write a number of 0 or more in decimal digits at `p`; returns the position after it."""
    end = p + 1
    left = number // 10
    while left > 0:
        left //= 10
        end += 1
    for place in range(end - p):
        room.data[end - 1 - place] = 48 + number % 10
        number //= 10
    return end


@compiled
def put_event_texts(
    names: Texts, sentences: Texts, heads: Ints, tails: Ints, partitions: Ints, subjects: TextRoom, full_texts: TextRoom
) -> None:
    """Write the subject and the sentence of each of n events, those of a partition with its name: `foo-3`.

    Event i is of the name heads[i] and partitions[i], -1 for none, and has the sentence tails[i] (int32 each), which
    follows the name of a partition.
    """
    p: Int64 = 0
    q: Int64 = 0
    for i in range(len(heads)):
        subjects.bounds[i] = p
        full_texts.bounds[i] = q
        begin = p
        p = _put(names, heads[i], subjects, p)
        if partitions[i] >= 0:
            subjects.data[p] = 45
            p = _put_number(partitions[i], subjects, p + 1)
            for at in range(begin, p):
                full_texts.data[q] = subjects.data[at]
                q += 1
            full_texts.data[q] = 32
            q += 1
        q = _put(sentences, tails[i], full_texts, q)
    subjects.bounds[len(heads)] = p
    full_texts.bounds[len(heads)] = q
