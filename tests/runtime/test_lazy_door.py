"""Names that a package imports when they are first used."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = '''"""A package."""
from kraftlake.runtime.lazy_door import lazy_door
already = 1
homes = {"LazyModule": "kraftlake.runtime.lazy_module", "system": "kraftlake.runtime.lazy_door:sys"}
__getattr__, __dir__ = lazy_door(__name__, homes)
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (tmp_path / "a_lazy_package").mkdir()
    (tmp_path / "a_lazy_package" / "__init__.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "a_lazy_package", raising=False)
    return importlib.import_module("a_lazy_package")


def test_a_name_comes_from_its_module_by_its_own_name_or_another(package: ModuleType) -> None:
    assert package.system is sys
    assert package.LazyModule.__name__ == "LazyModule"


def test_a_name_that_is_not_exported_is_refused_with_the_package(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match=r"^module 'a_lazy_package' has no attribute 'nothing'$"):
        getattr(package, "nothing")  # noqa: B009 - mypy knows that it is not there


def test_dir_lists_existing_and_exported_names(package: ModuleType) -> None:
    assert {"already", "__name__", "LazyModule", "system"} <= set(dir(package))
    assert dir(package) == sorted(dir(package))
