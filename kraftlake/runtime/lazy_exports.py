"""Exports of a package that are imported when they are first used."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from kraftlake.runtime.extras import explain

_IMPORT = re.compile(r"^    from (\S+) import (\([^)]*\)|[^\n#]*)", re.MULTILINE)


def lazy_exports(package: str, exported: Sequence[str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__, __dir__ = lazy_exports(__name__, __all__)`, at the end of a package's `__init__`.

    The package imports each name under `if TYPE_CHECKING:`, so that type checkers and the interpreter read the same
    lines. `dir`, `help` and completion list all `exported` names. A name whose module needs a package that only an
    extra installs raises EnvironmentFaultError.
    """

    @cache
    def homes() -> dict[str, tuple[str, str]]:
        spec = sys.modules[package].__spec__
        assert spec is not None
        loader: Any = spec.loader
        return exported_homes(loader.get_source(package))

    def get(name: str) -> Any:
        if name not in exported or name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = homes()[name]
        try:
            return getattr(import_module(module), attribute)
        except ModuleNotFoundError as fault:
            raise explain(fault) or fault from fault

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *exported})

    return get, listed


def exported_homes(source: str) -> dict[str, tuple[str, str]]:
    """The module of each name and its name there, by the indented imports in a package's source."""
    found = {}
    for module, names in _IMPORT.findall(source):
        for imported in filter(None, map(str.strip, names.strip("()").split(","))):
            attribute, _, name = imported.partition(" as ")
            found[name or attribute] = (module, attribute)
    return found
