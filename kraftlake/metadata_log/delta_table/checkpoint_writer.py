"""Writer of a classic checkpoint of a Delta table, one Parquet file, readable by kraftlake, delta-rs and Spark.

Protocol, metadata and transactions form a separate row group before the files, so that opening reads only this group.
Source: the Delta transaction log protocol, "Checkpoints", "V1 Spec", "Last Checkpoint File".
"""

from __future__ import annotations

import contextlib
import json
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kraftlake.metadata_log.delta_table.actions import SEAL
from kraftlake.metadata_log.delta_table.checkpoint import VERSION_KEY, checkpoint_seal, read_checkpoint
from kraftlake.metadata_log.delta_table.delta_log import checkpoint_path
from kraftlake.metadata_log.delta_table.table_state import LOG_FOLDER, REMOVE_SCHEMA, TableState
from kraftlake.metadata_log.storage.disk import Disk, disk_fault
from kraftlake.metadata_log.storage.location import Location
from kraftlake.runtime.errors import CorruptDataError, LakeError

_TEXT, _LONG, _INT, _BOOL = pa.string(), pa.int64(), pa.int32(), pa.bool_()
_STRINGS = pa.map_(_TEXT, _TEXT)
_TEXTS = pa.list_(_TEXT)
CHECKPOINT_SCHEMA = pa.schema(
    {
        "txn": pa.struct({"appId": _TEXT, "version": _LONG, "lastUpdated": _LONG}),
        "add": pa.struct(
            [
                *[("path", _TEXT), ("partitionValues", _STRINGS), ("size", _LONG), ("modificationTime", _LONG)],
                *[("dataChange", _BOOL), ("tags", _STRINGS), ("stats", _TEXT)],
            ]
        ),
        "remove": pa.struct(
            [
                *[("path", _TEXT), ("deletionTimestamp", _LONG), ("dataChange", _BOOL)],
                *[("extendedFileMetadata", _BOOL), ("partitionValues", _STRINGS), ("size", _LONG)],
            ]
        ),
        "metaData": pa.struct(
            [
                *[("id", _TEXT), ("name", _TEXT), ("description", _TEXT)],
                ("format", pa.struct({"provider": _TEXT, "options": _STRINGS})),
                *[("schemaString", _TEXT), ("partitionColumns", _TEXTS)],
                *[("configuration", _STRINGS), ("createdTime", _LONG)],
            ]
        ),
        "protocol": pa.struct(
            [
                *[("minReaderVersion", _INT), ("minWriterVersion", _INT)],
                *[("readerFeatures", _TEXTS), ("writerFeatures", _TEXTS)],
            ]
        ),
    }
)
_ROW_GROUP_ROWS = 65_536
_UNRESERVED = r"^[A-Za-z0-9._~/-]*$"


def write_checkpoint(disk: Disk, state: TableState, *, removed_since: int) -> None:
    """Write the checkpoint of a state, unless another writer made it, and name it in `_last_checkpoint`.

    Files removed before `removed_since` (epoch ms) are omitted: no reader may need them. The checkpoint is read back
    before it is named. Raises LakeError if the disk refuses, or for a table that requires unsupported writer features.
    """
    state.check_writable()
    adds = state.files.to_table()
    removed = state.tombstones.since(removed_since).values()
    removes = pa.table(
        [
            [file.path for file in removed],
            [file.deletion_timestamp for file in removed],
            [file.size for file in removed],
        ],
        schema=REMOVE_SCHEMA,
    )
    data = _encode(state, adds, removes)
    log = state.path / LOG_FOLDER
    target = checkpoint_path(log, state.version)
    try:
        with contextlib.suppress(FileExistsError):
            disk.put_if_absent(target, bytes(data))
        try:
            whole = _holds(target, state, adds.num_rows)
        except CorruptDataError:
            disk.replace(target, bytes(data))  # the checkpoint of this version was torn
            whole = _holds(target, state, adds.num_rows)
        if not whole:
            raise LakeError(f"{target} does not hold the state that was written to it; it is not used.")
        hint = {
            "version": state.version,
            "size": 2 + len(state.transactions) + adds.num_rows + removes.num_rows,
            "sizeInBytes": data.nbytes,
            "numOfAddFiles": adds.num_rows,
        }
        disk.replace(log / "_last_checkpoint", json.dumps(hint, separators=(",", ":")).encode())
    except OSError as fault:
        raise disk_fault(target, fault) from fault


def _holds(target: Location, state: TableState, files: int) -> bool:
    content = read_checkpoint((target,))
    return len(content.files) == files and content.transactions == state.transactions


def _encode(state: TableState, adds: pa.Table, removes: pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink, CHECKPOINT_SCHEMA, compression="zstd", use_dictionary=False, store_schema=False, write_page_checksum=True
    ) as writer:
        writer.write_table(pa.Table.from_pylist(_header(state), schema=CHECKPOINT_SCHEMA))
        for kind, files in (("add", adds), ("remove", removes)):
            if files.num_rows:
                actions = _actions(kind, files)
                columns = [actions if f.name == kind else pa.nulls(len(actions), f.type) for f in CHECKPOINT_SCHEMA]
                writer.write_table(pa.table(columns, schema=CHECKPOINT_SCHEMA), row_group_size=_ROW_GROUP_ROWS)
        seal = checkpoint_seal(state.version, state.protocol, state.metadata, state.transactions)
        writer.add_key_value_metadata({VERSION_KEY: str(state.version), SEAL: seal})
    return memoryview(sink.getvalue())


def _header(state: TableState) -> list[dict[str, Any]]:
    """Return protocol, properties and transactions; the times of transactions are only informative, and not kept."""
    metadata = state.metadata.to_action()["metaData"]
    metadata["configuration"] = list(metadata["configuration"].items())
    metadata["format"]["options"] = []
    return [
        state.protocol.to_action(),
        {"metaData": metadata},
        *({"txn": {"appId": name, "version": version}} for name, version in state.transactions.items()),
    ]


def _actions(kind: str, files: pa.Table) -> pa.StructArray:
    """Return the actions `kind` of files, which have some of the fields as columns.

    The other fields are the same in all files.
    """
    count = files.num_rows
    nothing = pa.array([], pa.string())
    no_pairs = pa.MapArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), count + 1), nothing, nothing)
    columns = {
        "partitionValues": no_pairs,
        "tags": pa.nulls(count, _STRINGS),
        "extendedFileMetadata": pa.repeat(pa.scalar(True), count),
        **{name: files.column(name).combine_chunks() for name in files.schema.names},
        "path": _encoded_paths(files.column("path").combine_chunks()),
        "dataChange": pa.repeat(pa.scalar(False), count),
    }
    fields = list(CHECKPOINT_SCHEMA.field(kind).type)
    return pa.StructArray.from_arrays([columns[field.name].cast(field.type) for field in fields], fields=fields)


def _encoded_paths(paths: pa.Array) -> pa.Array:
    if pc.all(pc.match_substring_regex(paths, _UNRESERVED)).as_py() in (True, None):
        return paths
    return pa.array([quote(path) for path in paths.to_pylist()], pa.string())
