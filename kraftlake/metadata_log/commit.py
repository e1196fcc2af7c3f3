"""Writing a version of a Delta table so that it is durable, whole, and nobody else's: put-if-absent by link(2).

The order is what makes it safe: Parquet file and its folder first, then the commit under a temporary name, then the
link that makes it visible, then its folder. What is visible is therefore whole, and what is acknowledged is durable.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from kraftlake.metadata_log.delta_actions import Protocol, TableMetadata, decode_commit, encode_commit
from kraftlake.metadata_log.delta_log import LOG_FOLDER, TableState, commit_path, hinted_checkpoint
from kraftlake.metadata_log.delta_schema import schema_string
from kraftlake.metadata_log.disk import Disk
from kraftlake.runtime.errors import LakeError

ENGINE = "kraftlake"


class CommitConflictError(LakeError):
    """Somebody else made this version first; nothing of ours is visible."""

    def __init__(self, table: Path, version: int) -> None:
        super().__init__(f"Version {version} of {table} was made by another writer at the same time; try again.")
        self.version = version


def create_table(
    disk: Disk,
    path: Path,
    *,
    name: str,
    schema: pa.Schema,
    statistics_columns: Sequence[str],
    configuration: Mapping[str, str],
) -> TableState:
    """Make version 0 of a table in `path`, whose parent folder is there.

    Raises CommitConflictError when there is a version 0, LakeError when the disk refuses.
    """
    now = now_ms()
    metadata = TableMetadata(
        id=str(uuid.uuid4()),
        name=name,
        schema_string=schema_string(schema),
        configuration={
            "delta.appendOnly": "true",
            "delta.dataSkippingStatsColumns": ",".join(statistics_columns),
            **configuration,
        },
        created_time=now,
    )
    protocol = Protocol(min_reader_version=1, min_writer_version=2)
    parameters = {"isManaged": "false", "description": "", "partitionBy": "[]", "properties": "{}"}
    info = commit_info("CREATE TABLE", parameters, now)
    try:
        disk.make_folder(path)
        disk.fsync(path.parent)
        disk.make_folder(path / LOG_FOLDER)
        disk.fsync(path)
    except OSError as fault:
        raise disk_fault(path, fault) from fault
    state = TableState(path=path, version=-1, protocol=protocol, metadata=metadata, files={}, transactions={})
    commit(disk, state, [info, protocol.to_action(), metadata.to_action()])
    return state


def write_data_file(disk: Disk, table: Path, name: str, data: bytes | memoryview) -> None:
    """Write a data file durably; it is no part of the table before a commit adds it."""
    try:
        disk.write(table / name, data)
        disk.fsync(table / name)
        disk.fsync(table)
    except OSError as fault:
        raise disk_fault(table / name, fault) from fault


def commit(disk: Disk, state: TableState, actions: Sequence[Mapping[str, Any]]) -> None:
    """Make the version after `state` of these actions and take it into `state`; durable when this returns.

    Raises CommitConflictError when that version exists, or did before a clean-up (nothing is visible then), LakeError
    when the disk refuses; if it refuses the very last fsync, the version is visible but may not survive a power cut,
    and the error says so.
    """
    version = state.version + 1
    target = commit_path(state.path, version)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4()}.tmp")
    data = encode_commit(actions)
    newest_checkpoint = hinted_checkpoint(target.parent)
    if newest_checkpoint is not None and newest_checkpoint > state.version:
        # Its commits may be gone, and a link in their place would be acknowledged, but never be read.
        raise CommitConflictError(state.path, version)
    try:
        disk.write(temporary, data)
        disk.fsync(temporary)
        try:
            disk.link(temporary, target)
        except OSError as fault:
            if not _holds(target, data):
                if isinstance(fault, FileExistsError):
                    raise CommitConflictError(state.path, version) from fault
                raise
    except OSError as fault:
        raise disk_fault(target, fault) from fault
    else:
        try:
            disk.fsync(target.parent)
        except OSError as fault:
            raise LakeError(f"{target} was written, but the disk did not confirm it: {fault.strerror}.") from fault
    finally:
        # A temporary file that stays is harmless, so a disk that refuses this is no reason to refuse the commit.
        with contextlib.suppress(OSError):
            disk.unlink(temporary)
    state.apply(decode_commit(data, version, str(target)))


def _holds(target: Path, data: bytes) -> bool:
    """Whether a link that reported a fault was made after all; the commit's txnId is in no other commit."""
    try:
        return target.read_bytes() == data
    except OSError:
        return False


def commit_info(operation: str, parameters: Mapping[str, str], time_ms: int) -> dict[str, Any]:
    """A commitInfo action: it informs people and is nothing that any reader relies on."""
    return {
        "commitInfo": {
            "timestamp": time_ms,
            "operation": operation,
            "operationParameters": dict(parameters),
            "isBlindAppend": True,
            "engineInfo": ENGINE,
            "txnId": str(uuid.uuid4()),
        }
    }


def append_info(time_ms: int) -> dict[str, Any]:
    """The commitInfo of an append."""
    return commit_info("WRITE", {"mode": "Append", "partitionBy": "[]"}, time_ms)


def now_ms() -> int:
    """The wall clock in epoch milliseconds, as Delta's actions carry it; nothing is decided by it."""
    return time.time_ns() // 1_000_000


def disk_fault(path: Path, fault: OSError) -> LakeError:
    """One sentence for what a disk refused."""
    return LakeError(f"{path} can't be written: {fault.strerror or fault}; the lake is as it was.")
