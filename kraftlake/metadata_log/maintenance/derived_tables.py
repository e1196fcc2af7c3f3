"""The tables that are derived from a lake's log, and the offset up to which each covers it, by their Delta logs.

A derived table names its source log in a property, and the last offset that it covers in a transaction of its own
(`kraftlake.NAME`).
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pyarrow as pa

from kraftlake.metadata_log.delta_table.delta_log import NotADeltaTableError, read_table
from kraftlake.metadata_log.delta_table.schema import holds_columns
from kraftlake.metadata_log.delta_table.table_state import LOG_FOLDER, TableState
from kraftlake.metadata_log.log_facts import LOG_TABLE, SNAPSHOTS_TABLE
from kraftlake.metadata_log.storage.location import Location, folders_of, refused_read
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.runtime.log import get_logger

SOURCE_LOG = "kraftlake.log"
"""The table property with the id of the log's table from which the rows were made."""

APPEND_ONLY = "delta.appendOnly"

_GROWING = pa.schema([("offset", pa.int64())])


def app_id_of(name: str) -> str:
    """The txnAppId of a derived table's writer; its txnVersion is the last offset that the table covers."""
    return f"kraftlake.{name}"


def made_anew(table: Location) -> str:
    """The way out for a table of another shape."""
    return (
        f"delete the folder {table.name}/ and run `kraftlake tables {table.parent} {table.name}`, which makes it anew "
        "from what the log holds"
    )


@attrs.frozen(kw_only=True)
class DerivedTable:
    """A table derived from the lake's log; `covers` is the last offset that it covers, None for nothing yet.

    With `grows_by_offset`, rows are only appended, each file with offsets (of the column `offset`) above those of the
    previous files; other tables replace rows and order their files themselves.
    """

    name: str
    path: Location
    covers: int | None
    grows_by_offset: bool


def _log_fault(table: Location, fault: KraftlakeError) -> None:
    get_logger(__name__).warning("derived_table_unreadable", table=str(table), reason=str(fault))


def derived_tables(
    lake: Location, log: TableState, *, on_fault: Callable[[Location, KraftlakeError], None] = _log_fault
) -> list[DerivedTable]:
    """Return the tables of a lake that are derived from its log, by name.

    A table that can't be read is skipped: `on_fault` is called with its folder; the default logs the fault. The table's
    writer reports the remedy.
    """
    found = []
    for folder in folders_of(lake):
        if folder.name in (LOG_TABLE, SNAPSHOTS_TABLE) or folder.name.startswith((".", "_")):
            continue
        try:
            table = _derived(folder, log)
        except KraftlakeError as fault:
            on_fault(folder, fault)
            continue
        if table is not None:
            found.append(table)
    return sorted(found, key=lambda table: table.name)


def _derived(folder: Location, log: TableState) -> DerivedTable | None:
    try:
        if not (folder / LOG_FOLDER).is_dir():
            return None
    except OSError as fault:
        raise refused_read(folder, fault) from fault
    try:
        state = read_table(folder)
    except NotADeltaTableError:
        return None
    if state.metadata.configuration.get(SOURCE_LOG) != log.metadata.id:
        return None
    growing = state.metadata.configuration.get(APPEND_ONLY) == "true"
    return DerivedTable(
        name=folder.name,
        path=folder,
        covers=state.transactions.get(app_id_of(folder.name)),
        grows_by_offset=growing and holds_columns(state.metadata.schema_string, _GROWING, str(folder)),
    )
