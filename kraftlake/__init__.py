"""kraftlake: Kafka's KRaft metadata log as a Delta Lake table, and every past state of the cluster a replay of it.

`kraftlake.open(source)` is the door of the Python API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.replay.imports.import_log import import_source
    from kraftlake.replay.queries.source import Source
    from kraftlake.replay.queries.source import open_source as open  # noqa: A004 - as gzip.open and the like

__version__ = "0.1.0"

__all__ = ["Source", "__version__", "import_source", "open"]

# Nothing is imported before it is asked for: `kraftlake --help` imports this package first.

__getattr__, __dir__ = lazy_exports(__name__, __all__)
