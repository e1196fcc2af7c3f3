"""Reader of a classic checkpoint of a Delta table: Parquet files, in one or several parts, that hold a whole state.

Opening a checkpoint reads protocol, metadata and transactions, a few rows; the list of files is read on first use.
Source: the Delta transaction log protocol, "Checkpoints", "V1 Spec".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from kraftlake.metadata_log.delta_table.actions import SEAL, Protocol, TableMetadata, check_data_path
from kraftlake.metadata_log.delta_table.data_files import is_refusal, leaf_paths, open_parquet_file
from kraftlake.metadata_log.delta_table.table_state import ADD_SCHEMA, REMOVE_SCHEMA, LiveFiles, Tombstones
from kraftlake.metadata_log.storage.location import Location, refused_read
from kraftlake.metadata_log.storage.object_path import ObjectPath
from kraftlake.records.crc32c import crc32c
from kraftlake.runtime.arrow import pc, pq
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError, LakeError

CheckpointFiles = tuple[Location, ...]

VERSION_KEY = "kraftlake.version"
"""The key in the footer of a kraftlake checkpoint for its version, which reveals a copy under another name."""

_FIELDS = {
    "txn": ("appId", "version"),
    "protocol": ("minReaderVersion", "minWriterVersion", "readerFeatures", "writerFeatures"),
    "metaData": ("id", "name", "description", "schemaString", "configuration", "createdTime", "partitionColumns"),
}
"""The columns that are read at once; the first field of each is never null in a row with such an action."""

_PLAIN_PATH = r"^[A-Za-z0-9_=-][A-Za-z0-9._=-]*$"
_FAULTS = (pa.ArrowException, OSError, KeyError, TypeError, ValueError)


@attrs.frozen(kw_only=True)
class CheckpointContent:
    """The content of a checkpoint: the files by path, the transactions by application id."""

    protocol: Protocol
    metadata: TableMetadata
    files: LiveFiles
    tombstones: Tombstones
    transactions: dict[str, int]


def read_checkpoint(files: CheckpointFiles, instead: Callable[[], pa.Table] | None = None) -> CheckpointContent:
    """Open all parts of a checkpoint.

    They stay readable until the list of files is read, even if the parts are deleted. `instead` returns the files
    (ADD_SCHEMA) if the parts turn out to be damaged.

    Raises FileNotFoundError if a part was cleaned up meanwhile, CorruptDataError naming a damaged part,
    RefusedReadError, LakeError for actions that this release does not support; the last three also when the list of
    files is read.
    """
    transactions: dict[str, int] = {}
    protocol = metadata = None
    parts: list[tuple[Location, pq.ParquetFile]] = []
    for file in files:
        try:
            parquet = _open(file)
            stamp = (parquet.metadata.metadata or {}).get(VERSION_KEY.encode())
            if stamp is not None and int(stamp) != int(file.name.partition(".")[0]):
                raise _torn(file)  # the checkpoint of another version under this name
            parts.append((file, parquet))
            for kind, fields in _actions(parquet):
                match kind:
                    case "txn":
                        transactions[fields["appId"]] = fields["version"]
                    case "protocol":
                        protocol = Protocol.from_fields(fields)
                    case "metaData":
                        metadata = TableMetadata.from_fields(fields)
        except FileNotFoundError:
            raise
        except _FAULTS as fault:
            raise _read_fault(file, fault) from fault
    if protocol is None or metadata is None:
        raise CorruptDataError(f"{files[0]} lacks the table's protocol or metadata.")
    seal = (parts[0][1].metadata.metadata or {}).get(SEAL.encode())
    version = int(files[0].name.partition(".")[0])
    if seal is not None and seal.decode(errors="replace") != checkpoint_seal(version, protocol, metadata, transactions):
        raise _torn(files[0])
    return CheckpointContent(
        protocol=protocol,
        metadata=metadata,
        files=LiveFiles(lambda: _adds_or(parts, instead)),
        tombstones=Tombstones(lambda: _read_columns(parts, "remove", REMOVE_SCHEMA)[0]),
        transactions=transactions,
    )


def _open(file: Location) -> pq.ParquetFile:
    """Open a part of a checkpoint: an open file, which outlives its name, or in an object store the whole object.

    A later request for a range of the object could find it deleted or replaced.
    """
    if isinstance(file, ObjectPath):
        return pq.ParquetFile(pa.BufferReader(file.read_bytes()), page_checksum_verification=True)
    return open_parquet_file(file)


def checkpoint_seal(version: int, protocol: Protocol, metadata: TableMetadata, transactions: Mapping[str, int]) -> str:
    """The checksum of a checkpoint's version, protocol, metadata and transactions, which detects damage and mix-up."""
    said = [version, protocol.to_action(), metadata.to_action(), sorted(transactions.items())]
    return f"{crc32c(json.dumps(said, sort_keys=True).encode()):08x}"


def _read_fault(file: Location, fault: Exception) -> KraftlakeError:
    return refused_read(file, fault) if is_refusal(fault) else _torn(file)


def _torn(file: Location) -> CorruptDataError:
    return CorruptDataError(
        f"{file} is no checkpoint of a Delta table that can be read: delete it where all commits that it stands for "
        f"are there, they are read in its place."
    )


def _actions(parquet: pq.ParquetFile) -> Iterable[tuple[str, dict[str, Any]]]:
    schema = parquet.schema_arrow
    for kind, wanted in _FIELDS.items():
        if kind not in schema.names:
            continue
        there = {field.name for field in schema.field(kind).type}
        groups = _row_groups_with(parquet, f"{kind}.{wanted[0]}")
        if not groups:
            continue
        table = parquet.read_row_groups(
            groups, columns=[f"{kind}.{name}" for name in wanted if name in there], use_threads=False
        )
        for fields in table.column(kind).combine_chunks().drop_null().to_pylist():
            yield kind, fields


def _row_groups_with(parquet: pq.ParquetFile, leaf: str) -> list[int]:
    """Return the row groups in which a column isn't null everywhere, by their statistics."""
    metadata, paths = parquet.metadata, leaf_paths(parquet)
    if leaf not in paths:
        return list(range(metadata.num_row_groups))
    position = paths.index(leaf)
    groups = []
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        statistics = group.column(position).statistics
        if statistics is None or not statistics.has_null_count or statistics.null_count < group.num_rows:
            groups.append(index)
    return groups


def _adds_or(parts: Sequence[tuple[Location, pq.ParquetFile]], instead: Callable[[], pa.Table] | None) -> pa.Table:
    try:
        return _read_adds(parts)
    except CorruptDataError:
        if instead is None:
            raise
        return instead()


def _read_adds(parts: Sequence[tuple[Location, pq.ParquetFile]]) -> pa.Table:
    table, extra = _read_columns(parts, "add", ADD_SCHEMA, ("deletionVector", "partitionValues"))
    for vectors in extra["deletionVector"]:
        if vectors.null_count < len(vectors):
            raise LakeError(f"{parts[0][0]} deletes rows by a deletion vector, which this release can't read.")
    for values in extra["partitionValues"]:
        if any(values.drop_null().to_pylist()):
            raise LakeError(f"{parts[0][0]} adds a partitioned file; the tables of a lake have no partitions.")
    return table


def _read_columns(
    parts: Sequence[tuple[Location, pq.ParquetFile]], kind: str, schema: pa.Schema, extra: Sequence[str] = ()
) -> tuple[pa.Table, dict[str, list[pa.Array]]]:
    """Return the actions of a kind as `schema`, null where a field is missing, with further fields unchanged."""
    tables = [schema.empty_table()]
    further: dict[str, list[pa.Array]] = {name: [] for name in extra}
    for file, parquet in parts:
        try:
            if kind not in parquet.schema_arrow.names:
                continue
            there = {field.name for field in parquet.schema_arrow.field(kind).type}
            groups = _row_groups_with(parquet, f"{kind}.path")
            columns = [f"{kind}.{name}" for name in (*schema.names, *extra) if name in there]
            actions = parquet.read_row_groups(groups, columns=columns).column(kind).combine_chunks().drop_null()
            fields = {field.name: pc.struct_field(actions, [field.name]) for field in actions.type}
            tables.append(
                pa.table(
                    [
                        fields[field.name].cast(field.type)
                        if field.name in fields
                        else pa.nulls(len(actions), field.type)
                        for field in schema
                    ],
                    schema=schema,
                )
            )
            tables[-1] = _with_decoded_paths(tables[-1], file)
            for name in extra:
                if name in fields:
                    further[name].append(fields[name])
        except _FAULTS as fault:
            raise _read_fault(file, fault) from fault
    return pa.concat_tables(tables), further


def _with_decoded_paths(table: pa.Table, file: Location) -> pa.Table:
    """Return the table with its column `path` url-decoded; raises LakeError for a path outside the table."""
    paths = table.column("path")
    if paths.null_count:
        raise _torn(file)
    if pc.all(pc.match_substring_regex(paths, _PLAIN_PATH)).as_py() in (True, None):
        return table
    decoded = [check_data_path(path, str(file)) for path in paths.to_pylist()]
    return table.set_column(0, "path", pa.array(decoded, pa.string()))
