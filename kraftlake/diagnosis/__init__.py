"""An operator's questions about a log: since when, which record made it so, where a condition began, what is wrong."""

from __future__ import annotations

from kraftlake.runtime.lazy_exports import lazy_exports

__all__: list[str] = []

__getattr__, __dir__ = lazy_exports(__name__, __all__)
