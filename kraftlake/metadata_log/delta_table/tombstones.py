"""The removed files of a table, which stay on the disk for readers of older versions until a vacuum."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from kraftlake.metadata_log.delta_table.actions import RemoveFile

REMOVE_SCHEMA = pa.schema([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("size", pa.int64())])
"""The fields of a remove that matter here; `path` is decoded."""


class Tombstones:
    """Removed files by path. `load` returns those of a checkpoint (REMOVE_SCHEMA) when they are first needed.

    With `kept` false they are ignored, for a handle that lives for months and writes no checkpoint.
    """

    def __init__(self, load: Callable[[], pa.Table] | None = None, *, kept: bool = True) -> None:
        self._load = load
        self._kept = kept
        self._newest: dict[str, RemoveFile] = {}
        self._back: set[str] = set()

    def add(self, file: RemoveFile) -> None:
        """Add the file of a remove action."""
        if self._kept:
            self._newest[file.path] = file

    def discard(self, path: str) -> None:
        """Forget a path that is added again."""
        self._newest.pop(path, None)
        if self._load is not None:
            self._back.add(path)

    def since(self, time_ms: int) -> dict[str, RemoveFile]:
        """Those that were removed at `time_ms` (epoch milliseconds) or later, or at an unknown time."""
        assert self._kept, "a checkpoint names what was removed"
        if self._load is not None:
            older = {
                fields["path"]: RemoveFile(
                    path=fields["path"], deletion_timestamp=fields["deletionTimestamp"], size=fields["size"]
                )
                for fields in self._load().to_pylist()
                if fields["path"] not in self._back
            }
            self._newest = {**older, **self._newest}
            self._load, self._back = None, set()
        return {
            path: file
            for path, file in self._newest.items()
            if file.deletion_timestamp is None or file.deletion_timestamp >= time_ms
        }
