"""kraftlake: Kafka's KRaft metadata log as a Delta Lake table, and every past state of the cluster a replay of it.

`kraftlake.open(source)` is the door of the Python API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kraftlake.replay.import_log import import_source
    from kraftlake.replay.source import Source
    from kraftlake.replay.source import open_source as open  # noqa: A004 - as gzip.open and the like

__version__ = "0.1.0"

__all__ = ["Source", "__version__", "import_source", "open"]

_HOMES = {
    "Source": ("source", "Source"),
    "import_source": ("import_log", "import_source"),
    "open": ("source", "open_source"),
}


def __getattr__(name: str) -> Any:
    # Nothing is imported before it is asked for: `kraftlake --help` imports this package first.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _HOMES[name]
    return getattr(import_module(f"kraftlake.replay.{module}"), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
