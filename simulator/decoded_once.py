"""Decodes each object of the lake once, for all nodes of a simulation: objects never change, and an hour costs half.

Whether a node gets an object at all, and when, is still asked of the store each time.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa

from kraftlake.metadata_log.delta_table import actions, checkpoint, data_files
from kraftlake.metadata_log.storage.location import Location
from kraftlake.metadata_log.storage.object_path import ObjectPath
from kraftlake.records import rows
from kraftlake.runtime.arrow import pq


class _Read:
    """A file that was read: what is asked of its location."""

    def __init__(self, place: Location, data: bytes) -> None:
        self.name, self.data = place.name, data
        self._place = place

    def __str__(self) -> str:
        return str(self._place)

    def open(self, mode: str) -> io.BytesIO:
        """The content as a file."""
        assert mode == "rb"
        return io.BytesIO(self.data)


class DecodedOnce:
    """The objects that were decoded; `replaced` are the functions in place of production's."""

    def __init__(self) -> None:
        self._commits: dict[bytes, Any] = {}
        self._files: dict[bytes, Any] = {}
        self._checkpoints: dict[bytes, Any] = {}
        self._actions: dict[int, Any] = {}
        self._kept: set[int] = set()
        """The identities of the files in `_files` and `_checkpoints` and of the tables in `_rows`, which live as long
        as this does.
        """
        self._batches: dict[int, list[Any]] = {}
        self._rows: dict[tuple[int, tuple[int, ...], tuple[str, ...]], Any] = {}

    def replaced(self) -> dict[Any, Any]:
        """The real functions and their replacements."""
        decode_rows = rows.from_rows
        decode, open_file, read = actions.decode_commit, data_files.open_parquet_file, data_files.read_row_groups
        open_checkpoint, read_actions = checkpoint._open, checkpoint._actions
        check_source = data_files.checked_source

        def decode_commit(data: bytes, version: int, file: str, table: str) -> Any:
            found = self._commits.get(data)
            if found is None:
                found = self._commits[data] = decode(data, version, file, table)
            return found

        def open_parquet_file(place: Location, *, dictionaries: Collection[str] = ()) -> Any:
            data = place.read_bytes()
            found = self._files.get(data)
            if found is None or dictionaries:
                found = open_file(_Read(place, data), dictionaries=dictionaries)  # type: ignore[arg-type]
                if not dictionaries:
                    found = self._files.setdefault(data, found)  # another task may have opened it meanwhile
                    self._kept.add(id(found))
            return found

        def read_row_groups(parquet: Any, path: Location, groups: Sequence[int], schema: Any) -> Any:
            if id(parquet) not in self._kept:
                return read(parquet, path, groups, schema)
            key = (id(parquet), tuple(groups), tuple(schema.names))
            found = self._rows.get(key)
            if found is None:
                found = self._rows.setdefault(key, read(parquet, path, groups, schema))
                self._kept.add(id(found))
            return found

        def open_part(place: Location) -> Any:
            if not isinstance(place, ObjectPath):
                return open_checkpoint(place)
            data = place.read_bytes()
            found = self._checkpoints.get(data)
            if found is None:
                found = self._checkpoints[data] = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
                self._kept.add(id(found))
            return found

        def actions_of(parquet: Any) -> Any:
            if id(parquet) not in self._kept:
                return read_actions(parquet)
            found = self._actions.get(id(parquet))
            if found is None:
                found = self._actions[id(parquet)] = list(read_actions(parquet))
            return iter(found)

        def checked_source(place: Any) -> Any:
            # the real one lets pyarrow's threads read a large file in parts, and they have no virtual time
            content = place if isinstance(place, _Read) else _Read(place, place.read_bytes())
            check_source(content)  # type: ignore[arg-type]
            return pa.BufferReader(content.data)

        def from_rows(table: Any) -> Any:
            if id(table) not in self._kept:
                return decode_rows(table)
            found = self._batches.get(id(table))
            if found is None:
                found = self._batches[id(table)] = list(decode_rows(table))
            return iter(found)

        return {
            decode_rows: from_rows,
            check_source: checked_source,
            decode: decode_commit,
            open_file: open_parquet_file,
            open_checkpoint: open_part,
            read_actions: actions_of,
            read: read_row_groups,
        }
