"""When a file of a lake was last written, by the clock of the disk or object store that has it."""

from __future__ import annotations

from pathlib import Path

from kraftlake.metadata_log.storage.location import Location


def modified_ms(path: Location) -> int:
    """Epoch milliseconds; raises FileNotFoundError, OSError."""
    if isinstance(path, Path):
        return path.stat().st_mtime_ns // 1_000_000
    import obstore

    from kraftlake.metadata_log.storage.object_path import store_faults

    with store_faults(path):
        modified: float = obstore.head(path.store, path.key)["last_modified"].timestamp()
    return int(modified * 1000)
