"""The language of conditions: what parses, what it means, and the errors for what does not."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.diagnosis.condition_parser import parse_condition
from kraftlake.diagnosis.things import Thing
from kraftlake.runtime.errors import UsageError

PIECES = (
    "and", "or", "not", "in", "(", ")", "[", "]", ",", ".", "-", "==", "!=", "<", "<=", ">", ">=", "1", "2.5", "1e3",
    '"a"', "'b'", "true", "false", "none", "len", "topic", "broker", "config", "partition", "isr", "fenced", "=", "&",
    "offline_partitions", 'topic("a").partition(1).isr', "broker(1).fenced", 'config("TOPIC","a","b")', "x", "#", "\n",
    "9" * 50, "1e999",
)  # fmt: skip


def operands() -> st.SearchStrategy[str]:
    texts = st.text(max_size=6).map(lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"')
    numbers = st.integers(-(10**12), 10**12).map(str) | st.floats(0, 1e20, allow_nan=False).map(repr)
    names = st.sampled_from(
        ['topic("a b").partition(3).isr', "broker(1).fenced", 'config("TOPIC", "a", "b")', "offline_partitions",
         'topic("x")', "topic('y').partitions[7].leader", 'feature("z")', "fenced_brokers"]
    )  # fmt: skip
    plain = texts | numbers | names | st.sampled_from(["true", "false", "none"])
    lists = st.lists(plain, max_size=3).map(lambda some: f"[{', '.join(some)}]")
    return plain | lists | names.map(lambda name: f"len({name})")


def conditions() -> st.SearchStrategy[str]:
    signs = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "not in"])
    comparisons = st.tuples(operands(), signs, operands()).map(" ".join)
    return st.recursive(
        comparisons | operands(),
        lambda some: (
            st.tuples(some, st.sampled_from(["and", "or"]), some).map(" ".join)
            | some.map(lambda one: f"not {one}")
            | some.map(lambda one: f"({one})")
        ),
        max_leaves=8,
    )


@given(conditions())
def test_the_text_of_a_condition_parses_to_the_same_condition(text: str) -> None:
    condition = parse_condition(text)
    assert condition.text == text
    assert parse_condition(str(condition)) == condition
    assert str(parse_condition(str(condition))) == str(condition)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join) | st.text(max_size=40))
def test_whatever_is_no_condition_is_a_usage_error(text: str) -> None:
    with suppress(UsageError):  # may assert nothing: any other error fails
        condition = parse_condition(text)
        assert parse_condition(str(condition)) == condition
        assert condition.holds(dict.fromkeys(condition.names, 1)) in (True, False)


@pytest.mark.parametrize("text", ["(" * 5000, "not " * 900 + "true", "[" * 200, "1 == " * 300])
def test_what_is_too_long_or_too_deep_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_condition(text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "at character 1: the end stands where a value is expected"),
        (
            "offline_partitons > 3",
            "at character 1: 'offline_partitons' is no name here; did you mean offline_partitions?",
        ),
        ("offline_partitions = 3", "at character 20: '=' means nothing here; write =="),
        ("broker(1).fenced && true", "at character 18: '&' means nothing here; write and"),
        ("broker(1).fence", "at character 1: 'broker/1/fence': 'fence' is no field of a broker; did you mean fenced?"),
        ("true and", "at character 9: the end stands where"),
        ("true true", "at character 6: 'true' stands where the end, `and` or `or` is expected"),
        ("1 < 2 < 3", "at character 7: two comparisons in a row: join them by `and`"),
        ('config("a', "at character 8: the text that begins here does not end"),
        ("1.2.3 > 1", "at character 1: a number has digits and at most one point"),
        ("1e999 > 1", "at character 1: the number is too large"),
        ("topic(true)", "at character 7: true stands where a number or a text is expected"),
        ("(true", "at character 6: the end stands where ')' is expected"),
    ],
)
def test_an_error_names_the_place_and_the_way_out(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_condition(text)
    assert sentence in str(error.value)


FENCED, ISR, CONFIG = Thing.broker(1, "fenced"), Thing.partition("a", 0, "isr"), Thing.config("TOPIC", "a", "b")
VALUES: dict[Any, Any] = {
    FENCED: True, Thing.broker(2, "fenced"): None, Thing.topic("a"): True, Thing.topic("z"): None, ISR: [1, 2],
    CONFIG: "100", "offline_partitions_count": 3, Thing.partition("a", 0): {"leader": 1}, Thing.broker(2): None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("broker(1).fenced", True),
        ("broker(1).fenced == true", True),
        ("BROKER(1).fenced", None),
        ("not broker(2).fenced", False),
        ("broker(2).fenced != true", False),
        ("broker(2).fenced == none", True),
        ("broker(1).fenced != none", True),
        ("broker(2).fenced or broker(1).fenced", True),
        ("broker(2).fenced and broker(1).fenced", False),
        ('topic("a") and not topic("z")', True),
        ("not broker(2)", True),
        ('topic("a").partition(0)', True),
        ("1 in topic('a').partition(0).isr", True),
        ("3 not in topic('a').partition(0).isr", True),
        ("topic('a').partition(0).isr == [2, 1]", False),
        ("len(topic('a').partitions[0].isr) == 2", True),
        ('config("TOPIC", "a", "b") > 99.5', True),
        ('config("topic", "a", "b") == "100"', True),
        ('config("topic", "a", "b") in ["1", "100"]', True),
        ("offline_partitions in [3, 4] AND Offline_partitions > 1", None),
        ("offline_partitions >= 3 and offline_partitions_count <= 3", True),
        ("not offline_partitions > 3", True),
        ("true or false and false", True),
        ("3 == offline_partitions", True),
    ],
)
def test_a_condition_means_what_it_says(text: str, holds: bool | None) -> None:
    if holds is None:
        with pytest.raises(UsageError, match="is no name here"):
            parse_condition(text)
    else:
        assert parse_condition(text).holds(VALUES) is holds


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("offline_partitions", "is a number and no condition: compare it, as in offline_partitions_count > 0"),
        ("topic('a').partition(0).isr", "is a list and no condition"),
        ("broker(1).fenced == 1", "is true or false and 1 is a number, so they do not compare"),
        ("broker(1).fenced < true", "compares with == and != only"),
        ("topic('a').partition(0).isr > [1]", "compares with == and != only"),
        ("1 in offline_partitions", "after `in` stands a list"),
        ('"x" in topic("a").partition(0).isr', "has none such"),
        ("len(offline_partitions) > 1", "len counts the members of a list"),
        ('config("TOPIC", "a", "b") == true', "so they do not compare"),
        ('offline_partitions == "x"', "so they do not compare"),
    ],
)
def test_values_of_different_kinds_do_not_compare(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_condition(text).holds(VALUES)
    assert sentence in str(error.value)
