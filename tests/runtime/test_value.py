"""Equality, hash and repr of data classes match the methods that attrs generates."""

from __future__ import annotations

import pickle

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.runtime.value import Value


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Ours(Value):
    number: int
    text: str
    secret: int = attrs.field(repr=False)
    remark: str = attrs.field(eq=False)


@attrs.frozen(kw_only=True)
class Theirs:
    number: int
    text: str
    secret: int = attrs.field(repr=False)
    remark: str = attrs.field(eq=False)


@attrs.frozen(eq=False, repr=False)
class Alone(Value):
    number: int


class Derived(Ours):
    """Of another class, though of the same fields."""


FEW = st.integers(0, 1)
FIELDS = st.fixed_dictionaries({"number": FEW, "text": FEW.map(str), "secret": FEW, "remark": FEW.map(str)})


@given(FIELDS, FIELDS)
def test_equality_and_hash_match_those_of_attrs(one, other):
    ours, theirs = [Ours(**one), Ours(**other)], [Theirs(**one), Theirs(**other)]
    assert (ours[0] == ours[1]) is (theirs[0] == theirs[1])
    assert (ours[0] != ours[1]) is (theirs[0] != theirs[1])
    assert len(set(ours)) == len(set(theirs))
    assert repr(ours[0]) == repr(theirs[0]).replace("Theirs", "Ours")
    assert pickle.loads(pickle.dumps(ours[0])) == ours[0]


def test_one_field_alone_counts():
    assert Alone(1) == Alone(1) != Alone(2)
    assert {Alone(1), Alone(1), Alone(2)} == {Alone(2), Alone(1)}
    assert repr(Alone(1)) == "Alone(number=1)"


def test_objects_of_other_classes_are_not_equal():
    fields = {"number": 1, "text": "a", "secret": 2, "remark": "b"}
    assert Ours(**fields) != Theirs(**fields)
    assert Ours(**fields) != Derived(**fields)
    assert Ours(**fields) != "a"


def test_a_value_with_an_unhashable_field_is_unhashable():
    with pytest.raises(TypeError, match="unhashable"):
        hash(Alone([]))


def test_a_value_has_no_instance_dict():
    with pytest.raises(AttributeError):
        Alone(1).another = 2
    assert not hasattr(Alone(1), "__dict__")
