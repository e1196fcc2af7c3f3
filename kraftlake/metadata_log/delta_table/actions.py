"""The actions of the Delta protocol used by the log's tables, and one commit of them as JSON lines.

Source: the Delta transaction log protocol, sections "Actions" and "Per-file Statistics".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import quote, unquote

import attrs

from kraftlake.records.crc32c import crc32c
from kraftlake.runtime.errors import CorruptDataError, LakeError

SEAL = "kraftlake.seal"
"""The key in the commitInfo of a kraftlake commit for the checksum of the commit's other actions."""


@attrs.frozen(kw_only=True)
class FileStatistics:
    """The statistics of an add about its rows. Times in `min_values` and `max_values` are ISO 8601 strings."""

    record_count: int
    min_values: Mapping[str, Any]
    max_values: Mapping[str, Any]
    null_counts: Mapping[str, int]

    def to_json(self) -> str:
        """The `stats` string of an add."""
        return _dumps(
            {
                "numRecords": self.record_count,
                "minValues": dict(self.min_values),
                "maxValues": dict(self.max_values),
                "nullCount": dict(self.null_counts),
            }
        )


@attrs.frozen(kw_only=True)
class AddFile:
    """A data file of a table: `path` relative to the table, decoded; `modification_time` in epoch milliseconds."""

    path: str
    size: int
    modification_time: int
    data_change: bool = True
    stats: str | None = None

    def to_action(self) -> dict[str, Any]:
        """The action in the form of a commit."""
        return {
            "add": {
                "path": quote(self.path),
                "partitionValues": {},
                "size": self.size,
                "modificationTime": self.modification_time,
                "dataChange": self.data_change,
                "stats": self.stats,
            }
        }

    def to_remove(self, time_ms: int, *, data_change: bool) -> dict[str, Any]:
        """The action that removes the file at `time_ms` (epoch ms).

        `data_change` is True if rows are removed with it.
        """
        return {
            "remove": {
                "path": quote(self.path),
                "deletionTimestamp": time_ms,
                "dataChange": data_change,
                "extendedFileMetadata": True,
                "partitionValues": {},
                "size": self.size,
            }
        }

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], file: str) -> AddFile:
        """Read the fields of an add in a commit or a checkpoint; `file` is the source of the fields, for errors.

        Raises LakeError for features that this reader does not support: deletion vectors, partitions, files outside the
        table.
        """
        if fields.get("deletionVector"):
            raise LakeError(f"{file} deletes rows by a deletion vector, which this release can't read.")
        if fields.get("partitionValues"):
            raise LakeError(f"{file} adds a partitioned file; the tables of a lake have no partitions.")
        return cls.at(check_data_path(fields["path"], file), fields)

    @classmethod
    def at(cls, path: str, fields: Mapping[str, Any]) -> AddFile:
        """Read the fields of an add whose decoded path is `path`."""
        stats = fields.get("stats")
        return cls(
            path=_text(path),
            size=_long(fields["size"] or 0),
            modification_time=_long(fields["modificationTime"] or 0),
            data_change=fields.get("dataChange", True) is not False,
            stats=stats if stats is None else _text(stats),
        )

    @cached_property
    def statistics(self) -> FileStatistics | None:
        """The statistics; None if the writer omitted them or they can't be read."""
        if self.stats is None:
            return None
        try:
            parsed = json.loads(self.stats)
            least, most, nulls = (dict(parsed.get(name) or {}) for name in ("minValues", "maxValues", "nullCount"))
            for value in (*least.values(), *most.values(), *nulls.values()):
                if isinstance(value, int):
                    _long(value)
            return FileStatistics(
                record_count=_long(parsed["numRecords"]), min_values=least, max_values=most, null_counts=nulls
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None


@attrs.frozen(kw_only=True)
class RemoveFile:
    """A file removed from a table at `deletion_timestamp` (epoch ms, None if unknown)."""

    path: str
    deletion_timestamp: int | None
    size: int | None = None


def check_data_path(encoded: str, file: str) -> str:
    """Decode a data file's path; raises LakeError for a path outside the table.

    `file` is the source of the path, for errors.
    """
    path = unquote(encoded)
    if not path or path.startswith("/") or ".." in path.split("/") or ":" in path.split("/", 1)[0]:
        raise LakeError(f"{file} adds the file {path!r}, which lies outside of its table.")
    return path


@attrs.frozen(kw_only=True)
class Protocol:
    """The reader and writer versions that a table requires."""

    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] = ()
    writer_features: tuple[str, ...] = ()

    def to_action(self) -> dict[str, Any]:
        """The action in the form of a commit or a checkpoint; other writers may have added table features."""
        features = {"readerFeatures": self.reader_features, "writerFeatures": self.writer_features}
        return {
            "protocol": {
                "minReaderVersion": self.min_reader_version,
                "minWriterVersion": self.min_writer_version,
                **{kind: list(names) for kind, names in features.items() if names},
            }
        }

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Protocol:
        """Read the fields of a protocol action."""
        return cls(
            min_reader_version=_long(fields["minReaderVersion"]),
            min_writer_version=_long(fields["minWriterVersion"]),
            reader_features=tuple(fields.get("readerFeatures") or ()),
            writer_features=tuple(fields.get("writerFeatures") or ()),
        )


@attrs.frozen(kw_only=True)
class TableMetadata:
    """A table's identity, schema (Spark's JSON form) and properties."""

    id: str
    name: str | None
    schema_string: str
    configuration: Mapping[str, str]
    created_time: int | None
    partition_columns: tuple[str, ...] = ()
    description: str | None = None

    def to_action(self) -> dict[str, Any]:
        """The action in the form of a commit."""
        return {
            "metaData": {
                "id": self.id,
                "name": self.name,
                **({"description": self.description} if self.description is not None else {}),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": self.schema_string,
                "partitionColumns": list(self.partition_columns),
                "createdTime": self.created_time,
                "configuration": dict(self.configuration),
            }
        }

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> TableMetadata:
        """Read the fields of a metaData action; a checkpoint has the configuration as pairs."""
        return cls(
            id=_text(fields["id"]),
            name=fields.get("name"),
            schema_string=_text(fields["schemaString"]),
            configuration=dict(fields.get("configuration") or {}),
            created_time=fields.get("createdTime"),
            partition_columns=tuple(fields.get("partitionColumns") or ()),
            description=fields.get("description"),
        )


@attrs.frozen(kw_only=True)
class Commit:
    """One version of a table. `transactions` holds the txn actions, application id to version."""

    version: int
    info: Mapping[str, Any] = attrs.field(factory=dict)
    adds: tuple[AddFile, ...] = ()
    removes: tuple[RemoveFile, ...] = ()
    transactions: Mapping[str, int] = attrs.field(factory=dict)
    protocol: Protocol | None = None
    metadata: TableMetadata | None = None
    changes_data: bool = False


def transaction(app_id: str, version: int, time: int) -> dict[str, Any]:
    """Build a txn action; it survives checkpoints, unlike commitInfo. `time` in epoch milliseconds."""
    return {"txn": {"appId": app_id, "version": version, "lastUpdated": time}}


def encode_commit(actions: Sequence[Mapping[str, Any]], table: str, version: int) -> bytes:
    """Encode a commit file: one action per line. The commitInfo seals all other actions for this version of `table`."""
    lines = [_dumps(action) for action in actions if "commitInfo" not in action]
    sealed = {SEAL: _seal(lines, table, version)}
    infos = [_dumps({"commitInfo": action["commitInfo"] | sealed}) for action in actions if "commitInfo" in action]
    return "".join(f"{line}\n" for line in [*infos, *lines]).encode()


def _seal(lines: Iterable[str], table: str, version: int) -> int:
    """Return the CRC32C of a commit's lines without its commitInfo, and of its table and version."""
    return crc32c("\n".join([f"{table}/{version}", *lines]).encode())


def decode_commit(data: bytes, version: int, file: str, table: str) -> Commit:
    """Read a commit file of `table`; raises CorruptDataError naming `file` for an invalid or changed one."""
    try:
        lines = [line for line in data.decode().splitlines() if line.strip()]
        actions = [json.loads(line) for line in lines]
        commit = commit_of(actions, version, file)
        if SEAL in commit.info:
            others = (line for line, action in zip(lines, actions, strict=True) if "commitInfo" not in action)
            if commit.info[SEAL] != _seal(others, table, version):
                raise CorruptDataError(
                    f"{file} is not what was committed as version {version} of {table}/: it was damaged, or is another "
                    f"version's; restore it from a copy."
                )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        raise CorruptDataError(f"{file} is no commit of a Delta table: it is torn or was overwritten.") from fault
    if not data.strip():
        raise CorruptDataError(f"{file} is empty: a commit of a Delta table was lost after it was made.")
    return commit


def commit_of(actions: Iterable[Mapping[str, Any]], version: int, file: str) -> Commit:
    """Build the commit of some actions; `file` is their source, for errors.

    Raises LakeError for features that this reader does not support, ValueError, KeyError, TypeError or AttributeError
    for invalid actions.
    """
    info: Mapping[str, Any] = {}
    adds: list[AddFile] = []
    removes: list[RemoveFile] = []
    transactions: dict[str, int] = {}
    protocol = metadata = None
    changes_data = False
    for kind, fields in (item for action in actions for item in action.items()):
        match kind:
            case "add":
                adds.append(AddFile.from_fields(fields, file))
            case "remove":
                path, removed_at, size = unquote(fields["path"]), fields.get("deletionTimestamp"), fields.get("size")
                for number in (removed_at, size):
                    _long(number or 0)
                removes.append(RemoveFile(path=_text(path), deletion_timestamp=removed_at, size=size))
            case "txn":
                transactions[_text(fields["appId"])] = _long(fields["version"])
            case "protocol":
                protocol = Protocol.from_fields(fields)
            case "metaData":
                metadata = TableMetadata.from_fields(fields)
            case "commitInfo":
                info = {**fields}
        if kind in ("add", "remove"):
            changes_data = changes_data or fields.get("dataChange", True) is not False
    return Commit(
        version=version,
        info=info,
        adds=tuple(adds),
        removes=tuple(removes),
        transactions=transactions,
        protocol=protocol,
        metadata=metadata,
        changes_data=changes_data,
    )


def _text(value: str) -> str:
    """Return the value; raises ValueError or AttributeError if it is not text encodable in UTF-8."""
    value.encode()
    return value


def _long(value: int) -> int:
    """Return the value; raises ValueError or TypeError if it is not an integer of 64 bits."""
    if not -(1 << 63) <= value < 1 << 63 or not isinstance(value, int):
        raise ValueError(f"{value!r} is no long")
    return value


_dumps = json.JSONEncoder(separators=(",", ":")).encode
