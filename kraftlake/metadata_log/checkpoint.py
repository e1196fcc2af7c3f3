"""Reading a classic checkpoint of a Delta table: Parquet files, in one or several parts, that hold a whole state.

Source: the Delta transaction log protocol, "Checkpoints", "V1 Spec".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
import pyarrow as pa

from kraftlake.metadata_log.delta_actions import AddFile, Protocol, TableMetadata
from kraftlake.metadata_log.location import Location, open_parquet_file
from kraftlake.runtime.errors import CorruptDataError

CheckpointFiles = tuple[Location, ...]

_FIELDS = {
    "add": ("path", "partitionValues", "size", "modificationTime", "dataChange", "stats", "deletionVector"),
    "txn": ("appId", "version"),
    "protocol": ("minReaderVersion", "minWriterVersion", "readerFeatures", "writerFeatures"),
    "metaData": ("id", "name", "schemaString", "configuration", "createdTime", "partitionColumns"),
}


@attrs.frozen(kw_only=True)
class CheckpointContent:
    """What a checkpoint says of a table: files by path, transactions by application id."""

    protocol: Protocol
    metadata: TableMetadata
    files: dict[str, AddFile]
    transactions: dict[str, int]


def read_checkpoint(files: CheckpointFiles) -> CheckpointContent:
    """Read all parts of a checkpoint.

    Raises FileNotFoundError when a part was cleaned up meanwhile, CorruptDataError naming the file when it can't be
    read, LakeError for actions that this release can't follow.
    """
    adds: dict[str, AddFile] = {}
    transactions: dict[str, int] = {}
    protocol = metadata = None
    for file in files:
        try:
            for kind, fields in _actions(file):
                match kind:
                    case "add":
                        add = AddFile.from_fields(fields, str(file))
                        adds[add.path] = add
                    case "txn":
                        transactions[fields["appId"]] = fields["version"]
                    case "protocol":
                        protocol = Protocol.from_fields(fields)
                    case "metaData":
                        metadata = TableMetadata.from_fields(fields)
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as fault:
            raise CorruptDataError(f"{file} is no checkpoint of a Delta table that can be read.") from fault
    if protocol is None or metadata is None:
        raise CorruptDataError(f"{files[0]} lacks the table's protocol or metadata.")
    return CheckpointContent(protocol=protocol, metadata=metadata, files=adds, transactions=transactions)


def _actions(file: Location) -> Iterable[tuple[str, dict[str, Any]]]:
    with open_parquet_file(file) as parquet:
        schema = parquet.schema_arrow
        for kind, wanted in _FIELDS.items():
            if kind not in schema.names:
                continue
            there = {field.name for field in schema.field(kind).type}
            table = parquet.read(columns=[f"{kind}.{name}" for name in wanted if name in there])
            column = table.column(kind).combine_chunks()
            for fields in column.drop_null().to_pylist():
                yield kind, fields
