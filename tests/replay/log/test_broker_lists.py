"""Lists of brokers as flat arrays, against Python's lists."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.replay.log.broker_lists import BrokerLists

BROKERS = st.integers(-2, 4) | st.sampled_from([2**31 - 1, -(2**31)])
ROWS = st.lists(st.tuples(st.lists(BROKERS, max_size=5), st.lists(BROKERS, max_size=5)), max_size=6)


def lists_of(rows: list[list[int]]) -> BrokerLists:
    bounds = np.cumsum([0, *map(len, rows)], dtype=np.int32)
    return BrokerLists(bounds, np.array([broker for row in rows for broker in row], np.int32))


def rows_of(lists: BrokerLists) -> list[list[int]]:
    bounds, members = lists.bounds.tolist(), lists.members.tolist()
    return [members[begin:end] for begin, end in itertools.pairwise(bounds)]


@given(ROWS)
def test_lists_are_compared_as_those_of_python(rows: list[tuple[list[int], list[int]]]) -> None:
    one, other = lists_of([row for row, _ in rows]), lists_of([row for _, row in rows])
    assert rows_of(one.without(other)) == [[broker for broker in a if broker not in b] for a, b in rows]
    assert one.differ_from(other).tolist() == [a != b for a, b in rows]
    assert one.same_members(other).tolist() == [{*a} == {*b} for a, b in rows]
    assert one.any.tolist() == [bool(a) for a, _ in rows]


@given(ROWS, st.data())
def test_some_lists_are_taken_and_written(rows: list[tuple[list[int], list[int]]], data: st.DataObject) -> None:
    lists = lists_of([row for row, _ in rows])
    some = data.draw(st.lists(st.sampled_from(range(len(rows))), max_size=8)) if rows else []
    taken = lists.take(np.array(some, np.int64))
    assert rows_of(taken) == [rows[row][0] for row in some]
    assert taken.texts().to_pylist() == [str(rows[row][0]) for row in some]


def test_lists_are_put_in_words() -> None:
    lists = lists_of([[], [2], [2, 3], [1, -2, 13]])
    assert lists.words().to_pylist() == ["", "2", "2 and 3", "1, -2 and 13"]
