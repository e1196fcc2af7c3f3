"""Names that a package imports when somebody asks for them."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from kraftlake.runtime.lazy_exports import lazy_exports

HOMES = {"system": "lazy_exports:sys", "import_whole": "lazy_exports"}


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made = ModuleType("kraftlake.runtime")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


def test_a_name_comes_from_its_home_by_its_own_name_or_another(package: ModuleType) -> None:
    get, _ = lazy_exports(package.__name__, HOMES, tuple(HOMES))
    assert get("system") is sys
    assert get("import_whole").__name__ == "import_whole"


def test_a_name_that_has_no_home_is_refused_with_the_package(package: ModuleType) -> None:
    get, _ = lazy_exports(package.__name__, HOMES, tuple(HOMES))
    with pytest.raises(AttributeError, match=r"^module 'kraftlake.runtime' has no attribute 'nothing'$"):
        get("nothing")


def test_what_is_there_and_what_may_be_asked_for_is_listed(package: ModuleType) -> None:
    _, listed = lazy_exports(package.__name__, HOMES, tuple(HOMES))
    package.__dict__["already"] = 1
    assert {"already", "__name__", *HOMES} <= set(listed())
    assert listed() == sorted(listed())
