"""The doors of the rooms: what stands in `__all__` is found by `dir`, `help` and completion."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import pydoc

import pytest

import kraftlake

ROOMS = ["kraftlake"] + [
    f"kraftlake.{room.name}"
    for room in pkgutil.iter_modules(kraftlake.__path__)
    if room.name not in ("cli", "__main__")
]


@pytest.mark.parametrize("name", ROOMS)
def test_what_stands_in_the_door_is_found_and_says_what_it_is(name: str) -> None:
    room = importlib.import_module(name)
    assert set(room.__all__) <= set(dir(room))
    assert "__doc__" in dir(room)
    for exported in room.__all__:
        thing = getattr(room, exported)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert (thing.__doc__ or "").strip(), f"{name}.{exported} has no docstring"


def test_help_shows_how_a_source_is_opened_and_what_can_be_asked_of_it() -> None:
    text = pydoc.plaintext.document(kraftlake)
    assert "open_source(source: 'str | os.PathLike[str]'" in text or "open = open_source" in text
    assert "class Source" in text
    assert "Each change of a range" in text
