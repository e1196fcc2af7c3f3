"""A table finds topics by name and by id, by a search at first and by an index from then on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.image.topics.topic_table import SEARCHES, TopicTable

IDS = st.binary(min_size=16, max_size=16) | st.integers(0, 3).map(lambda n: bytes([n & 1, *bytes(14), n & 2]))


def table_of(topics: dict[str, bytes], *, as_text: bool = False) -> TopicTable:
    ids = np.frombuffer(b"".join(topics.values()), np.uint8).reshape(-1, 16)
    names = "".join(f"{name}\n" for name in topics).encode() if as_text else list(topics)
    return TopicTable(names, ids, np.zeros(len(topics) + 1, np.int32), {})


@given(
    st.dictionaries(st.text("ab", max_size=3), IDS, max_size=5),
    st.lists(st.text("abé\n", max_size=5)),
    st.lists(IDS),
    st.booleans(),
)
def test_searches_and_indexes_find_the_same(
    topics: dict[str, bytes], names: list[str], ids: list[bytes], as_text: bool
) -> None:
    topics = dict(zip(topics, sorted(set(topics.values())), strict=False))
    numbers = {name: number for number, name in enumerate(topics)}
    numbers_by_id = {topic_id: number for number, topic_id in enumerate(topics.values())}
    names, ids = [*names, *topics], [*ids, *topics.values(), b"short"]
    table = table_of(topics, as_text=as_text)
    for _ in range(1 + SEARCHES):
        assert [table.number_of_name(name) for name in names] == [numbers.get(name) for name in names]
        assert [table.number_of_id(topic_id) for topic_id in ids] == [numbers_by_id.get(topic_id) for topic_id in ids]


@pytest.mark.parametrize(("kind", "key"), [("name", "a"), ("id", bytes(16))])
def test_an_index_is_made_when_it_pays(kind: str, key: object) -> None:
    table = table_of({"a": bytes(16), "b": b"b" * 16})
    find, known = getattr(table, f"number_of_{kind}"), f"_known_{kind}s"
    for _ in range(SEARCHES):
        assert find(key) == 0
    assert getattr(table, known) == {}, "a few questions don't wait for it"
    assert find(key) == 0
    assert len(getattr(table, known)) == 2


@given(st.lists(st.text("ab", max_size=3), unique=True))
def test_names_of_a_text_are_those_of_the_list_that_it_becomes(names: list[str]) -> None:
    table = table_of({name: bytes([number, *bytes(15)]) for number, name in enumerate(names)}, as_text=True)
    assert table.topic_count == len(names)
    assert [table.name_of(number) for number in range(len(names))] == names
    assert table.names == names
    assert [table.name_of(number) for number in range(len(names))] == names
    assert table.names is table.names
