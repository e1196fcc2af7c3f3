"""The time of a lake's newest record."""

from __future__ import annotations

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.runtime.arrow import pc


def newest_ms(log: MetadataLog, *, among: int = 1) -> int:
    """The latest time of a log's last rows, as many as `among`, in epoch ms; −1 for none. Raises CorruptDataError."""
    if log.end_offset <= log.start_offset:
        return -1
    first = max(log.start_offset, log.end_offset - among)
    newest = pc.max(log.rows(first, log.end_offset - 1, columns=["timestamp"]).column("timestamp"))
    return newest.value // 1000 if newest.is_valid else -1
