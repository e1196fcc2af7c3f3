"""Checks the tables of a lake: lost or torn versions, checkpoints and files, foreign rows, columns, snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.records.batch import gathered
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.verify.findings import Findings
from kraftlake.runtime.errors import KraftlakeError

if TYPE_CHECKING:
    from kraftlake.metadata_log.storage.location import Location

_RECORDS_AT_ONCE = 50_000


def check_tables(reader: LakeReader, findings: Findings) -> None:
    """Report problems of the tables' Delta logs, and rows that do not belong there."""
    from kraftlake.metadata_log.delta_table.delta_log import NotADeltaTableError
    from kraftlake.metadata_log.log_facts import LOG_TABLE, SNAPSHOTS_TABLE
    from kraftlake.metadata_log.maintenance.table_check import table_problems

    lake = reader.log.path
    for name in (LOG_TABLE, SNAPSHOTS_TABLE):
        try:
            for file, message in table_problems(lake / name):
                findings.add(message, file=file)
            if name == LOG_TABLE and (fault := reader.log.misplaced_rows()) is not None:
                findings.add(fault)
        except NotADeltaTableError:
            continue
        except KraftlakeError as error:
            findings.add(str(error))
    for snapshot, reason in reader.log.damaged_snapshots():
        findings.add(f"{reason}; it is not used.", file=snapshot, in_snapshot=True)


def check_derived_tables(reader: LakeReader, findings: Findings) -> None:
    """Report problems of the derived tables' Delta logs, and their data files that are missing or damaged."""
    from kraftlake.metadata_log.delta_table.delta_log import read_table
    from kraftlake.metadata_log.log_facts import LOG_TABLE
    from kraftlake.metadata_log.maintenance.derived_tables import derived_tables
    from kraftlake.metadata_log.maintenance.table_check import damaged_files, table_problems

    def report(table: Location, fault: KraftlakeError) -> None:
        findings.add(f"{str(fault).rstrip('.')}: {_way_out(table)}")

    try:
        tables = derived_tables(reader.log.path, read_table(reader.log.path / LOG_TABLE), on_fault=report)
    except KraftlakeError:
        return  # `check_tables` reports what is wrong with the log's table
    for table in tables:
        try:
            for file, message in table_problems(table.path):
                findings.add(message, file=file)
            for name in damaged_files(table.path):
                findings.add(f"{table.path / name} is missing or damaged: {_way_out(table.path)}")
        except KraftlakeError as fault:
            report(table.path, fault)


def _way_out(table: Location) -> str:
    return (
        f"delete the folder {table.name}/ and run `kraftlake tables {table.parent} {table.name}`, which makes it again "
        "from what the log still holds."
    )


def check_columns(reader: LakeReader, findings: Findings) -> None:
    """Report the first offset in each group of batches where a column (type, version, …) contradicts the payload."""
    from kraftlake.records.rows import LOG_SCHEMA, to_rows

    try:
        for batches in gathered(reader.batches(reader.start_offset), _RECORDS_AT_ONCE):
            first, last = batches[0].base_offset, batches[-1].last_offset
            stored, made = reader.log.rows(first, last), to_rows(batches)
            for name in LOG_SCHEMA.names:
                if not stored.column(name).equals(made.column(name)):
                    pairs = zip(stored.column(name).to_pylist(), made.column(name).to_pylist(), strict=True)
                    index, (old, new) = next((i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1])
                    findings.add(f"column {name} says {old}, but the payload {new}.", offset=first + index)
    except KraftlakeError:
        return  # the replay of the log raises the same error and reports it
