"""kraftlake: Kafka's KRaft metadata log as a Delta Lake table, and every past state of the cluster a replay of it.

`kraftlake.open(source)` opens whatever holds a metadata log and answers questions about it; `kraftlake.state_at(lake,
when)` reads a lake's history tables; `kraftlake.partition_table(image)` has an image's partitions as columns. Every
error that names a fault of the data or of the caller is a `KraftlakeError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime import __version__
from kraftlake.runtime.lazy_door import lazy_door

if TYPE_CHECKING:
    from kraftlake.api.source import Source
    from kraftlake.api.source import open_source as open  # noqa: A004 - as gzip.open and the like
    from kraftlake.replay.imports.import_log import import_source
    from kraftlake.runtime.errors import KraftlakeError
    from kraftlake.tables.history.state_at import state_at
    from kraftlake.tables.image_partitions import partition_table

__all__ = ["KraftlakeError", "Source", "__version__", "import_source", "open", "partition_table", "state_at"]

# Nothing is imported before it is asked for: `kraftlake --help` imports this package first.
__getattr__, __dir__ = lazy_door(
    __name__,
    {
        "KraftlakeError": "kraftlake.runtime.errors",
        "Source": "kraftlake.api.source",
        "import_source": "kraftlake.replay.imports.import_log",
        "open": "kraftlake.api.source:open_source",
        "partition_table": "kraftlake.tables.image_partitions",
        "state_at": "kraftlake.tables.history.state_at",
    },
)
