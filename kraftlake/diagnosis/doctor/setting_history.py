"""The recent changes of configs and ACLs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs
import pyarrow as pa

from kraftlake.diagnosis.doctor.group import LogPosition
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.log.delta_chunk import DeltaChunk
from kraftlake.tables.history.entity_history import EntityHistory
from kraftlake.tables.history.entity_table import EntityTable
from kraftlake.tables.history.entity_tables import ACLS, CONFIGS


@attrs.frozen(kw_only=True)
class SettingChange:
    """The last change of a config or an ACL: the thing and the change, without secrets. `kind` is `config` or `acl`."""

    at: LogPosition
    kind: str
    thing: str
    words: str


class SettingHistory:
    """The states of configs and ACLs after the added records, and the last state of each before it."""

    def __init__(self, image: MetadataImage) -> None:
        self._histories = {table: EntityHistory(table, image) for table in _WORDS}
        self._ended: dict[str, dict[tuple[str, ...], Row]] = {table.name: {} for table in _WORDS}
        """The last state that ended, by table and key."""

    def take(self, chunk: DeltaChunk) -> None:
        """Add the records that follow the earlier ones."""
        for table, history in self._histories.items():
            for values in history.take(chunk):
                row = dict(zip(table.schema.names, values, strict=True))
                self._ended[table.name][_key(table, row)] = row

    def changed(self, begin: int, recent_ms: int) -> list[SettingChange]:
        """The last change of each config and ACL since an offset and a time (epoch ms), by offset."""
        found = []
        for table, change in _WORDS.items():
            ended, open_ = self._ended[table.name], {_key(table, row): row for row in self._open(table)}
            for key in {**ended, **open_}:
                before, after = ended.get(key), open_.get(key)
                if after is not None and before is not None and before["valid_to_offset"] != after["valid_from_offset"]:
                    before = None
                at = _begin(after) if after is not None else _end(before or {})
                if at.offset >= begin and (-1 if at.timestamp is None else at.timestamp) >= recent_ms:
                    found.append(change(at, before, after))
        return sorted(found, key=lambda one: one.at)

    def _open(self, table: EntityTable) -> Iterator[Row]:
        rows = self._histories[table].open_table()
        for name in ("valid_from", "valid_to"):
            rows = rows.set_column(rows.schema.get_field_index(name), name, rows.column(name).cast(pa.int64()))
        yield from rows.to_pylist()


Row = dict[str, Any]
"""A row of a history table by column; times are microseconds since 1970."""


def _config_change(at: LogPosition, before: Row | None, after: Row | None) -> SettingChange:
    row = after or before or {}
    thing = f"{row['resource_type'].lower().replace('_', ' ')} {row['resource_name'] or '(default)'}"
    if after is None:
        words = f"{row['config']} is no longer set, it was {row['value']}"
    elif before is None:
        words = f"{row['config']} was set to {row['value']}"
    else:
        words = f"{row['config']} was changed: {before['value']} → {row['value']}"
    return SettingChange(at=at, kind="config", thing=thing, words=words)


def _acl_change(at: LogPosition, before: Row | None, after: Row | None) -> SettingChange:
    row = after or before or {}
    pattern = "" if row["pattern_type"] == "LITERAL" else f" ({row['pattern_type'].lower()})"
    rule = f"{row['permission_type']} {row['operation']} on {row['resource_type']}".lower()
    rule = f"{rule.replace('_', ' ')} {row['resource_name']}{pattern} from {row['host']}"
    did = "was removed" if after is None else "was added" if before is None else "was replaced"
    return SettingChange(at=at, kind="acl", thing=row["principal"], words=f"{rule} {did}")


_WORDS: Final[Mapping[EntityTable, Callable[[LogPosition, Row | None, Row | None], SettingChange]]] = {
    CONFIGS: _config_change,
    ACLS: _acl_change,
}
"""The tables whose recent changes are reported, and the words for a change."""


def _key(table: EntityTable, row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in table.key)


def _begin(row: Row) -> LogPosition:
    return _position(row["valid_from_offset"], row["valid_from"])


def _end(row: Row) -> LogPosition:
    return _position(row["valid_to_offset"], row["valid_to"])


def _position(offset: int, micros: int | None) -> LogPosition:
    return LogPosition(offset=offset, timestamp=None if micros is None else micros // 1000)
