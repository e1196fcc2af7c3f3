"""Checks a lake: its tables, and the rows of its log.

Of tables lost or torn versions, checkpoints and files, foreign rows, columns and snapshots; of the log its chain of
hashes, and a link that an operator kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.records.batch import gathered
from kraftlake.replay.reading.open_reader import LakeReader, LogReader
from kraftlake.replay.verify.findings import Findings
from kraftlake.runtime.errors import KraftlakeError, UsageError

if TYPE_CHECKING:
    from kraftlake.metadata_log.chain import ChainLink
    from kraftlake.metadata_log.log import MetadataLog
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
        findings.add(f"{reason}; it is not used.", snapshot=snapshot)


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


def check_chain(reader: LogReader, findings: Findings, at_least: ChainLink | None) -> None:
    """Report rows that are not those of the lake's chain, and a log that is shorter than it once was.

    `at_least` is an offset that the log held, with the hash there, as an import printed them. Raises UsageError for a
    hash where the source is not a lake.
    """
    log = reader.log if isinstance(reader, LakeReader) else None
    if at_least is not None:
        if at_least.hash is not None and log is None:
            raise UsageError(f"{reader.name} is no lake, and has no chain of hashes: give --at-least an offset alone.")
        if at_least.offset >= reader.end_offset:
            findings.add(
                f"the log once held offset {at_least.offset}, and ends before {reader.end_offset} now: records "
                f"were lost.",
                offset=reader.end_offset,
            )
            at_least = None
    if log is not None:
        try:
            _check_rows(log, findings, at_least)
        except KraftlakeError:
            return  # the replay of the log raises the same error and reports it


def _check_rows(log: MetadataLog, findings: Findings, at_least: ChainLink | None) -> None:
    from kraftlake.metadata_log.append.log_file import hash_of_rows
    from kraftlake.records.rows import BATCH_COLUMNS

    chain, base = log.chain, log.chain_base
    if chain is None:
        _cannot_check(findings, at_least, "this lake has no chain of hashes yet, it begins with the next append.")
        return
    first = max(chain.start, log.start_offset)
    if chain.start > log.start_offset:
        findings.note(f"The lake's chain of hashes begins at offset {chain.start}: it binds no rows before that.")
    if base is None:
        _cannot_check(findings, at_least, "this log was trimmed by a release that kept no hash of what it took away.")
        return
    wanted = None if at_least is None else at_least.hash
    end = None if at_least is None else at_least.offset + 1
    if wanted is not None and end is not None and end < first:
        findings.add(
            f"the hash at offset {end - 1} can't be checked: the log's chain starts at {first} now. Use a link "
            f"that a later import printed.",
            offset=end - 1,
        )
    found, at = base, first
    for table in log.tables(first, log.end_offset - 1, BATCH_COLUMNS):
        rows = table
        if wanted is not None and end is not None and at <= end <= at + rows.num_rows:
            found = hash_of_rows(rows.slice(0, end - at), found)
            _check_link(found, wanted, end, findings)
            rows = rows.slice(end - at)
            wanted = None
        found = hash_of_rows(rows, found)
        at += table.num_rows
    if wanted is not None and end == first == at:
        _check_link(found, wanted, end, findings)
    if found != chain.hash:
        findings.add(
            f"the rows of offsets {first} to {chain.end - 1} are not those that were appended: their hash is "
            f"{found % 2**64:016x}, and the lake's chain ends with {chain.hash % 2**64:016x}. Rows were lost or "
            f"replaced, or files of several lakes were mixed up; restore the lake from a copy, or import anew."
        )


def _check_link(found: int, wanted: int, end: int, findings: Findings) -> None:
    if found != wanted:
        findings.add(
            f"the rows up to offset {end - 1} have changed: their hash is {found % 2**64:016x}, not "
            f"{wanted % 2**64:016x}.",
            offset=end - 1,
        )


def _cannot_check(findings: Findings, at_least: ChainLink | None, why: str) -> None:
    """Add a note, or a problem if a hash was given."""
    if at_least is None or at_least.hash is None:
        findings.note(f"Nothing binds the rows of this log to each other: {why}")
    else:
        findings.add(f"the hash at offset {at_least.offset} can't be checked: {why}", offset=at_least.offset)
