"""The figures of a lake by its Delta tables: its log's end and size, its tables' lag, and its chain of hashes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from kraftlake.metadata_log.append.log_file import hash_of_rows
from kraftlake.metadata_log.delta_table.delta_log import NotADeltaTableError, read_table
from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.log_facts import LOG_TABLE, SNAPSHOTS_TABLE
from kraftlake.metadata_log.maintenance.derived_tables import derived_tables
from kraftlake.metadata_log.storage.location import lake_location
from kraftlake.records.rows import BATCH_COLUMNS
from kraftlake.runtime.arrow import pc
from kraftlake.runtime.errors import CorruptDataError, sentence_of
from kraftlake.runtime.log import get_logger
from kraftlake.server.newest_time import newest_ms

_ROWS_AT_ONCE: Final = 100_000
"""The number of rows whose hashes are checked in one measurement; more wait for the next one."""


@attrs.frozen(kw_only=True)
class TableFigures:
    """The number of live files of a table, their bytes, and its commits since its last checkpoint."""

    files: int
    bytes: int
    unchecked_commits: int

    @classmethod
    def of(cls, state: TableState) -> TableFigures:
        """The figures of a table at a version."""
        sizes = state.files.to_table().column("size")
        return cls(
            files=len(sizes),
            bytes=pc.sum(sizes).as_py() or 0,
            unchecked_commits=state.version - max(0, state.checkpoint_version),
        )


@attrs.frozen(kw_only=True)
class LakeFigures:
    """The figures of a lake at one moment; `timestamp` (epoch ms, -1 for none) is that of its newest record.

    `commits` is the number of versions of the log; `covered` are the last offsets that the derived tables cover.
    `chain_end` is the offset below which the rows are those that were appended, as far as this process has read them
    again; `shortened` counts how often the log ended before an offset that it had held.
    """

    start_offset: int
    end_offset: int
    timestamp: int
    commits: int
    tables: Mapping[str, TableFigures]
    covered: Mapping[str, int]
    chain_end: int
    chain_checks: int
    chain_faults: int
    shortened: int


class LakeMeter:
    """Measures one lake, with nothing kept but a few numbers; for one thread.

    Each measurement hashes the rows that were appended since the last one, as a reader gets them, and compares the
    hash with the chain's; what came before the first one is `kraftlake verify`'s to check.
    """

    def __init__(self, lake: str) -> None:
        self._lake = lake
        self._checked: tuple[str, int, int] | None = None
        """The id of the log's table, the offset up to which its rows are checked, and the hash there."""
        self._ended = -1
        self._checks = self._faults = self._shortened = 0
        self._log = get_logger(__name__).bind(lake=lake)

    def measure(self) -> LakeFigures:
        """Read the lake's Delta logs, and its new rows. Raises LakeError, and CorruptDataError."""
        log = MetadataLog.open(self._lake)
        if log.end_offset < self._ended:
            self._shortened += 1
            self._log.error("lake_shortened", held=self._ended - 1, end_offset=log.end_offset)
        self._ended = log.end_offset
        self._check_chain(log)
        tables, covered = self._tables(log)
        return LakeFigures(
            start_offset=log.start_offset,
            end_offset=log.end_offset,
            timestamp=_newest_timestamp(log),
            commits=log.version + 1,
            tables=tables,
            covered=covered,
            chain_end=-1 if self._checked is None else self._checked[1],
            chain_checks=self._checks,
            chain_faults=self._faults,
            shortened=self._shortened,
        )

    def _tables(self, log: MetadataLog) -> tuple[dict[str, TableFigures], dict[str, int]]:
        place = lake_location(self._lake)
        derived = derived_tables(place, log.table)
        tables = {LOG_TABLE: TableFigures.of(log.table)}
        for name in (SNAPSHOTS_TABLE, *(table.name for table in derived)):
            try:
                tables[name] = TableFigures.of(read_table(place / name))
            except NotADeltaTableError:
                continue
        return tables, {table.name: log.start_offset - 1 if table.covers is None else table.covers for table in derived}

    def _check_chain(self, log: MetadataLog) -> None:
        chain = log.chain
        if chain is None:
            self._checked = None
            return
        table, at, hash_ = self._checked or ("", 0, 0)
        if table != log.table_id or not log.start_offset <= at <= chain.end:
            self._checked = log.table_id, chain.end, chain.hash
            return
        end = log.batches_end(at, _ROWS_AT_ONCE) if at < chain.end else at
        self._checks += 1
        try:
            for rows in log.tables(at, end - 1, BATCH_COLUMNS) if at < end else ():
                hash_ = hash_of_rows(rows, hash_)
            why = "" if end < chain.end or hash_ == chain.hash else "other rows were appended"
        except CorruptDataError as fault:
            why = sentence_of(fault)
        if why:
            self._faults += 1
            self._log.error("chain_broken", first_offset=at, last_offset=end - 1, reason=why)
            end, hash_ = chain.end, chain.hash
        self._checked = table, end, hash_


def _newest_timestamp(log: MetadataLog) -> int:
    """The time of the newest row, in epoch milliseconds; -1 for none, and where it can't be read."""
    try:
        return newest_ms(log)
    except CorruptDataError:
        return -1


Measured = Callable[[], Mapping[str, LakeFigures]]
"""Returns the last figures of lakes by cluster."""
