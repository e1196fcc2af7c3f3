"""Lazy imports of a package's names on first use (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from kraftlake.runtime.extras import explain


def lazy_door(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions of `__getattr__, __dir__ = lazy_door(__name__, homes)`, for the end of an `__init__`.

    `homes` maps each name to the module that defines it: `module`, or `module:attribute` if the name differs there. The
    package imports the same names under `if TYPE_CHECKING:` for type checkers. A name whose module needs a package of
    an extra that is not installed raises EnvironmentFaultError.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, attribute = homes[name].partition(":")
        try:
            return getattr(import_module(module), attribute or name)
        except ModuleNotFoundError as fault:
            raise explain(fault) or fault from fault

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, listed
