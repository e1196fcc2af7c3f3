"""Equality, hash and repr of records match the methods that attrs generates."""

from __future__ import annotations

import pickle
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records.schema import Primitive, Struct, scalar


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Ours(Struct):
    number: int = scalar(Primitive.INT32)
    text: str = scalar(Primitive.STRING)
    secret: int = scalar(Primitive.INT32, secret=True)


@attrs.frozen(kw_only=True)
class Theirs:
    unknown_tagged_fields: tuple[tuple[int, bytes], ...] = attrs.field(default=(), repr=False)
    number: int
    text: str
    secret: int = attrs.field(repr=False)


class Derived(Ours):
    """Of another class, though of the same fields."""


FEW = st.integers(0, 1)
FIELDS = st.fixed_dictionaries(
    {"number": FEW, "text": FEW.map(str), "secret": FEW, "unknown_tagged_fields": st.sampled_from([(), ((7, b"a"),)])}
)


@given(FIELDS, FIELDS)
def test_equality_and_hash_match_those_of_attrs(one: dict[str, Any], other: dict[str, Any]) -> None:
    ours, theirs = [Ours(**one), Ours(**other)], [Theirs(**one), Theirs(**other)]
    assert (ours[0] == ours[1]) is (theirs[0] == theirs[1])
    assert (ours[0] != ours[1]) is (theirs[0] != theirs[1])
    assert len(set(ours)) == len(set(theirs))
    assert repr(ours[0]) == repr(theirs[0]).replace("Theirs", "Ours")
    assert pickle.loads(pickle.dumps(ours[0])) == ours[0]


def test_objects_of_other_classes_are_not_equal() -> None:
    fields: dict[str, Any] = {"number": 1, "text": "a", "secret": 2}
    assert Ours(**fields) != Theirs(**fields)
    assert Ours(**fields) != Derived(**fields)
    assert Ours(**fields) != "a"


def test_a_struct_with_an_unhashable_field_is_unhashable() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Ours(number=1, text=[], secret=2))  # type: ignore[arg-type]
