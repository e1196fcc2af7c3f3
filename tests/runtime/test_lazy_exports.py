"""Names that a package imports when they are first used."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = '''"""A package."""
from typing import TYPE_CHECKING
from kraftlake.runtime.lazy_exports import lazy_exports
if TYPE_CHECKING:
    from kraftlake.runtime.lazy_exports import (
        exported_homes,
        sys as system,
    )
    from kraftlake.runtime.lazy_module import LazyModule  # a reason
    from kraftlake.runtime.clock import Clock
already = 1
__all__ = ["LazyModule", "already", "exported_homes", "system"]
__getattr__, __dir__ = lazy_exports(__name__, __all__)
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (tmp_path / "a_lazy_package").mkdir()
    (tmp_path / "a_lazy_package" / "__init__.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "a_lazy_package", raising=False)
    return importlib.import_module("a_lazy_package")


def test_a_name_comes_from_the_module_of_the_typing_import_by_its_own_name_or_an_alias(package: ModuleType) -> None:
    assert package.system is sys
    assert package.LazyModule.__name__ == "LazyModule"
    assert package.exported_homes.__name__ == "exported_homes"


@pytest.mark.parametrize("name", ["nothing", "Clock"])
def test_a_name_that_is_not_exported_is_refused_with_the_package(package: ModuleType, name: str) -> None:
    with pytest.raises(AttributeError, match=rf"^module 'a_lazy_package' has no attribute '{name}'$"):
        getattr(package, name)


def test_dir_lists_existing_and_exported_names(package: ModuleType) -> None:
    assert {"already", "__name__", *package.__all__} <= set(dir(package))
    assert dir(package) == sorted(dir(package))
