"""Checks the tables of a lake as files: lost or torn versions and checkpoints, foreign rows, damaged snapshots."""

from __future__ import annotations

from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.verify.findings import Findings
from kraftlake.runtime.errors import KraftlakeError


def check_tables(reader: LakeReader, findings: Findings) -> None:
    """Report problems of the tables' Delta logs, and rows that do not belong there."""
    from kraftlake.metadata_log.append.extent_check import misplaced_rows
    from kraftlake.metadata_log.delta_table.table_state import NotADeltaTableError, read_table
    from kraftlake.metadata_log.log_facts import LOG_TABLE, SNAPSHOTS_TABLE
    from kraftlake.metadata_log.maintenance.table_check import table_problems

    lake = reader.log.path
    for name in (LOG_TABLE, SNAPSHOTS_TABLE):
        try:
            for file, message in table_problems(lake / name):
                findings.add(message, file=file)
            if name == LOG_TABLE and (fault := misplaced_rows(read_table(lake / name))) is not None:
                findings.add(fault)
        except NotADeltaTableError:
            continue
        except KraftlakeError as error:
            findings.add(str(error))
    for snapshot, reason in reader.log.damaged_snapshots():
        findings.add(f"{reason}; it is not used.", file=snapshot, in_snapshot=True)
