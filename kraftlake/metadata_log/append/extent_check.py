"""Checks that the files of a log hold exactly its offsets, by statistics and footers: finds foreign writers' rows."""

from __future__ import annotations

from kraftlake.metadata_log.delta_table.data_files import integer_bounds, open_live
from kraftlake.metadata_log.delta_table.live_files import Extent
from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.log_facts import START_OFFSET, LogEnd
from kraftlake.runtime.errors import CorruptDataError


def check_rows(state: TableState) -> None:
    """Raise CorruptDataError unless the files hold rows of the log's offsets only, and as many as it has.

    By what their adds say of them, and their footers where an add says nothing. What is appended to such a log could
    not be read.
    """
    if (fault := misplaced_rows(state)) is not None:
        raise CorruptDataError(f"{fault} Nothing is appended to it: `kraftlake verify` tells more.")


def misplaced_rows(state: TableState) -> str | None:
    """What is wrong with the rows of a log's files, as a sentence; None where nothing is. Raises CorruptDataError."""
    start, end = int(state.metadata.configuration[START_OFFSET]), LogEnd.of(state).end_offset
    extent = _whole_extent(state)
    if extent.records and extent.lowest < start:
        return _sentence(state, extent.lowest, f"its log starts at {start}")
    if extent.highest >= end:
        return _sentence(state, extent.highest, f"its log ends before {end}")
    if extent.records != end - start:
        return (
            f"{state.path} holds {extent.records} rows in place of the {end - start} from offset {start} to {end - 1}: "
            f"something else than kraftlake wrote to it."
        )
    return None


def _whole_extent(state: TableState) -> Extent:
    """What all files hold, those that don't say it by their footers."""
    extent = state.files.extent()
    ends, records = [], extent.records
    for path in extent.vague:
        parquet = open_live(state.path / path)
        records += parquet.metadata.num_rows
        for bounds in integer_bounds(parquet, "offset"):
            if bounds is None:
                raise CorruptDataError(f"{state.path / path} doesn't say which offsets it holds, nor does its commit.")
            ends.append(bounds)
    if extent.highest >= 0:
        ends.append((extent.lowest, extent.highest))
    lowest, highest = min((low for low, _ in ends), default=-1), max((high for _, high in ends), default=-1)
    return Extent(lowest=lowest, highest=highest, records=records, vague=())


def _sentence(state: TableState, offset: int, but: str) -> str:
    spans = state.files.overlapping(offset, offset)
    named = f" (in {spans[0].file.path})" if len(spans) == 1 else ""
    return f"{state.path} holds offset {offset}{named}, but {but}: something else than kraftlake wrote to it."
