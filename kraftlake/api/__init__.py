"""The Python door: a source of metadata and every question about it. `kraftlake` re-exports what users need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.api.events import Events
    from kraftlake.api.metrics import Metrics
    from kraftlake.api.source import Source, open_source
    from kraftlake.api.watch import Watch, WatchState

__all__ = ["Events", "Metrics", "Source", "Watch", "WatchState", "open_source"]

__getattr__, __dir__ = lazy_exports(__name__, __all__)
