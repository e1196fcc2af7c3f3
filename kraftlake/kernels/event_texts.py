"""Rows of texts for what has happened to partitions: subjects, both sides and sentences, written as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.compiled import compiled, inlined
from kraftlake.kernels.event_kinds import (
    ELR_CHANGED,
    LEADER_ELECTED,
    LEADER_LOST,
    LEADER_MOVED,
    REASSIGNMENT_CANCELLED,
    REASSIGNMENT_CHANGED,
    REASSIGNMENT_FINISHED,
    REASSIGNMENT_STARTED,
    RECOVERY_BEGUN,
    RECOVERY_DONE,
    REPLICAS_CHANGED,
)
from kraftlake.kernels.partition_events import (
    ADDING_OF,
    COME,
    ELR_OF,
    GONE,
    ISR_OF,
    REMOVING_OF,
    REPLICAS_OF,
    members_but,
    number_size,
)
from kraftlake.kernels.row_lists import LEADER, load_row
from kraftlake.kernels.words import put_word, read_word

BEFORE_SLOT, AFTER_SLOT, GONE_SLOT, COME_SLOT, NO_SLOT = range(5)
"""What follows a piece of a sentence."""
RECOVERED_TEXT, RECOVERING_TEXT = 0, 1
COMMA, MINUS, SPACE, OPEN, CLOSE, ZERO = b","[0], b"-"[0], b" "[0], b"["[0], b"]"[0], b"0"[0]


@inlined
def _put(into: Any, p: Any, data: Any, first: Any, last: Any) -> Any:
    """Write a part of `data` at `p`; gives the position behind it, as all of these do."""
    size = np.uint64(last - first)
    to, at, done = np.uint64(p), np.uint64(first), np.uint64(0)
    while done + np.uint64(8) <= size:
        put_word(into, to + done, read_word(data, at + done))
        done += np.uint64(8)
    while done < size:
        into[to + done] = data[at + done]
        done += np.uint64(1)
    return p + (last - first)


@inlined
def _put_number(into: Any, p: Any, number: Any) -> Any:
    value = np.int64(number)
    if value < 0:
        into[p] = MINUS
        p += 1
        value = -value
    rest = np.uint64(value)
    if rest < 10:
        into[np.uint64(p)] = np.uint64(ZERO) + rest
        return p + 1
    end = p + number_size(value)
    at = np.uint64(end)
    while rest > 0:
        at -= np.uint64(1)
        tenth = rest // np.uint64(10)
        into[at] = np.uint64(ZERO) + rest - tenth * np.uint64(10)
        rest = tenth
    return end


@inlined
def _put_list(into: Any, p: Any, lists: Any, which: Any, count: Any) -> Any:
    """`[1, 2, 3]`"""
    into[p] = OPEN
    p += 1
    for i in range(count):
        if i > 0:
            into[p], into[p + 1] = COMMA, SPACE
            p += 2
        p = _put_number(into, p, lists[which, i])
    into[p] = CLOSE
    return p + 1


@inlined
def _put_words(into: Any, p: Any, lists: Any, which: Any, count: Any, phrases: Any) -> Any:
    """`2`, `2 and 3`, `1, 2 and 3`"""
    for i in range(count):
        if i > 0 and i == count - 1:
            p = _put(into, p, phrases.joint, 0, len(phrases.joint))
        elif i > 0:
            into[p], into[p + 1] = COMMA, SPACE
            p += 2
        p = _put_number(into, p, lists[which, i])
    return p


@inlined
def _put_arrivals(into: Any, p: Any, lists: Any, lengths: Any) -> Any:
    """The replicas without those that are being removed."""
    count = members_but(lists, REPLICAS_OF, lengths[REPLICAS_OF], lists, REMOVING_OF, lengths[REMOVING_OF], COME)
    return _put_list(into, p, lists, COME, count)


@inlined
def _put_name(into: Any, p: Any, phrases: Any, which: Any) -> Any:
    return _put(into, p, phrases.names, phrases.name_bounds[which], phrases.name_bounds[which + 1])


@inlined
def _put_before(into: Any, p: Any, kind: Any, row: Any, work: Any, phrases: Any) -> Any:
    lists, lengths = work.lists, work.lengths
    if kind == LEADER_MOVED or kind == LEADER_LOST:
        return _put_number(into, p, row[LEADER])
    if kind == LEADER_ELECTED:
        return p
    if kind == RECOVERY_BEGUN or kind == RECOVERY_DONE:
        return _put_name(into, p, phrases, RECOVERED_TEXT if kind == RECOVERY_BEGUN else RECOVERING_TEXT)
    if kind == ELR_CHANGED:
        return _put_list(into, p, lists, ELR_OF, lengths[ELR_OF])
    if kind == REASSIGNMENT_CHANGED or kind == REASSIGNMENT_CANCELLED:
        return _put_arrivals(into, p, lists, lengths)
    if kind == REASSIGNMENT_FINISHED:
        count = members_but(lists, REPLICAS_OF, lengths[REPLICAS_OF], lists, ADDING_OF, lengths[ADDING_OF], GONE)
        return _put_list(into, p, lists, GONE, count)
    which = REPLICAS_OF if kind == REASSIGNMENT_STARTED or kind == REPLICAS_CHANGED else ISR_OF
    return _put_list(into, p, lists, which, lengths[which])


@inlined
def _put_after(into: Any, p: Any, kind: Any, row: Any, work: Any, phrases: Any) -> Any:
    lists, lengths = work.lists_after, work.lengths_after
    if kind == LEADER_MOVED or kind == LEADER_ELECTED:
        return _put_number(into, p, row[LEADER])
    if kind == LEADER_LOST:
        return p
    if kind == RECOVERY_BEGUN or kind == RECOVERY_DONE:
        return _put_name(into, p, phrases, RECOVERING_TEXT if kind == RECOVERY_BEGUN else RECOVERED_TEXT)
    if kind == ELR_CHANGED:
        return _put_list(into, p, lists, ELR_OF, lengths[ELR_OF])
    if kind == REASSIGNMENT_STARTED or kind == REASSIGNMENT_CHANGED:
        return _put_arrivals(into, p, lists, lengths)
    moved = kind == REASSIGNMENT_FINISHED or kind == REASSIGNMENT_CANCELLED or kind == REPLICAS_CHANGED
    which = REPLICAS_OF if moved else ISR_OF
    return _put_list(into, p, lists, which, lengths[which])


@inlined
def _put_slot(texts: Any, p: Any, slot: Any, i: Any, before: Any, after: Any, work: Any, phrases: Any) -> Any:
    """What a piece of a sentence is followed by; the row's sides end at `before` and `after`."""
    into = texts.sentences
    if slot == BEFORE_SLOT:
        return _put(into, p, texts.before, texts.before_bounds[i], before)
    if slot == AFTER_SLOT:
        return _put(into, p, texts.after, texts.after_bounds[i], after)
    had, has = work.lengths[ISR_OF], work.lengths_after[ISR_OF]
    if slot == GONE_SLOT:
        count = members_but(work.lists, ISR_OF, had, work.lists_after, ISR_OF, has, GONE)
        return _put_words(into, p, work.lists, GONE, count, phrases)
    if slot == COME_SLOT:
        count = members_but(work.lists_after, ISR_OF, has, work.lists, ISR_OF, had, COME)
        return _put_words(into, p, work.lists_after, COME, count, phrases)
    return p


@inlined
def _copy_text(into: Any, into_bounds: Any, i: Any, data: Any, bounds: Any, s: Any) -> None:
    """Text s of a column as the row i of another."""
    into_bounds[i + 1] = _put(into, into_bounds[i], data, bounds[s], bounds[s + 1])


@inlined
def _copy_row(texts: Any, i: Any, singles: Any, s: Any) -> None:
    """A row whose texts are there."""
    _copy_text(texts.subjects, texts.subject_bounds, i, singles.subjects, singles.subject_bounds, s)
    _copy_text(texts.before, texts.before_bounds, i, singles.before, singles.before_bounds, s)
    _copy_text(texts.after, texts.after_bounds, i, singles.after, singles.after_bounds, s)
    _copy_text(texts.sentences, texts.sentence_bounds, i, singles.sentences, singles.sentence_bounds, s)


@compiled
def write_texts(states: Any, events: Any, topics: Any, singles: Any, phrases: Any, work: Any, texts: Any) -> None:
    """The texts of rows, one behind the other, into `texts`, which has room for them; all bounds begin with a 0.

    Row i is of the partition rows[i] (int64), a row of `states`, to which kinds[i] (uint8) has happened; where it is
    -1 - s, it has the texts s of `singles`. The partition is the one numbered `topics.partitions` (int32) of
    the topic numbered `topics.numbers` (int64), whose name is `names` (uint8) between two of `name_bounds` (int32).
    `phrases` has the pieces of the sentence for each kind: those from kind_bounds[kind] (int64) on, by `pieces`
    (int64[n, 3]): where each begins and ends in `data` (uint8), and what follows it.
    """
    for i in range(len(events.rows)):
        r = events.rows[i]
        if r < 0:
            _copy_row(texts, i, singles, -1 - r)
            continue
        kind = np.int64(events.kinds[i])
        topic = topics.numbers[r]
        first = texts.subject_bounds[i]
        last = _put(texts.subjects, first, topics.names, topics.name_bounds[topic], topics.name_bounds[topic + 1])
        texts.subjects[last] = MINUS
        last = _put_number(texts.subjects, last + 1, topics.partitions[r])
        texts.subject_bounds[i + 1] = last
        if kind > RECOVERY_DONE:
            load_row(states.before, r, states.base_heap, states.heap, work.lists, work.lengths)
            load_row(states.after, r, states.base_heap, states.heap, work.lists_after, work.lengths_after)
        before = _put_before(texts.before, texts.before_bounds[i], kind, states.before[r], work, phrases)
        after = _put_after(texts.after, texts.after_bounds[i], kind, states.after[r], work, phrases)
        texts.before_bounds[i + 1], texts.after_bounds[i + 1] = before, after
        p = _put(texts.sentences, texts.sentence_bounds[i], texts.subjects, first, last)
        texts.sentences[p] = SPACE
        p += 1
        for piece in range(phrases.kind_bounds[kind], phrases.kind_bounds[kind + 1]):
            p = _put(texts.sentences, p, phrases.data, phrases.pieces[piece, 0], phrases.pieces[piece, 1])
            p = _put_slot(texts, p, phrases.pieces[piece, 2], i, before, after, work, phrases)
        texts.sentence_bounds[i + 1] = p
