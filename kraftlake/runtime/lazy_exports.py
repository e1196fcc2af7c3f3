"""What a package re-exports, imported when somebody first asks for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kraftlake.runtime.whole_import import import_whole


def lazy_exports(
    package: str, homes: Mapping[str, str], exported: Sequence[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__, __dir__ = lazy_exports(__name__, _HOMES, __all__)`, at the end of a package's `__init__`.

    `homes` has for each name the module within the package that it comes from, with `:NAME` behind it where it is
    called otherwise there. `dir`, `help` and completion then know all that is `exported`.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, attribute = homes[name].partition(":")
        return getattr(import_whole(f"{package}.{module}"), attribute or name)

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *exported})

    return get, listed
