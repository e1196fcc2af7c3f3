"""The three doors: what stands in `__all__` is found by `dir`, `help` and completion; other rooms have none."""

from __future__ import annotations

import importlib
import inspect
import pydoc

import pytest

import kraftlake
from tests.at_least_one import at_least_one
from tests.imports import is_package, module_imports, modules

DOORS = ["kraftlake", "kraftlake.api", "kraftlake.spark_jobs"]
ENTRY_POINT = "kraftlake.cli"


@pytest.mark.parametrize("name", DOORS)
def test_what_stands_in_the_door_is_found_and_says_what_it_is(name: str) -> None:
    door = importlib.import_module(name)
    assert set(door.__all__) <= set(dir(door))
    assert "__doc__" in dir(door)
    for exported in at_least_one(door.__all__):
        thing = getattr(door, exported)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert (thing.__doc__ or "").strip(), f"{name}.{exported} has no docstring"


@pytest.mark.parametrize("name", DOORS)
def test_type_checkers_and_the_interpreter_find_the_same_things(name: str) -> None:
    door = importlib.import_module(name)
    typed = {i for i in module_imports(name) if i.typing_only and i.name is not None and i.name != "TYPE_CHECKING"}
    for imported in at_least_one(typed):
        thing = getattr(importlib.import_module(imported.module), imported.name)
        assert any(getattr(door, exported) is thing for exported in door.__all__), imported
    assert len({*door.__all__} - {"__version__"}) == len(typed)


def test_only_these_have_names_and_all_others_take_them_from_the_files() -> None:
    for module in at_least_one(modules()):
        for imported in module_imports(module):
            if imported.name is None or not is_package(imported.module) or imported.module in (*DOORS, ENTRY_POINT):
                continue
            is_own = imported.name == "__version__" or f"{imported.module}.{imported.name}" in modules()
            assert is_own, f"{module} takes {imported.name} from {imported.module}"


def test_help_shows_how_a_source_is_opened_and_what_can_be_asked_of_it() -> None:
    text = pydoc.plaintext.document(kraftlake)
    assert "open_source(source: 'str | os.PathLike[str]'" in text or "open = open_source" in text
    assert "class Source" in text
    assert "Each change of a range" in text
