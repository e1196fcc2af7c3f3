"""Trim: removes the beginning of the log if a snapshot covers it and no stream still has to read it."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pyarrow as pa

from kraftlake.metadata_log.append.log_file import LogEnd, hash_of_rows
from kraftlake.metadata_log.chain import Chain, ChainLink, chain_base
from kraftlake.metadata_log.delta_table.actions import TableMetadata
from kraftlake.metadata_log.delta_table.commit import commit_beside_writers, commit_info, now_ms
from kraftlake.metadata_log.delta_table.data_files import DataFileGoneError, OffsetSpan
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.delta_table.scan import check_contiguous, scan
from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.log_facts import CHAIN_BASE, START_OFFSET
from kraftlake.metadata_log.maintenance.derived_tables import APPEND_ONLY, DerivedTable
from kraftlake.metadata_log.maintenance.upkeep_policy import MAX_STREAM_LAG, max_stream_lag_ms
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.metadata_log.storage.location import Location
from kraftlake.records.rows import BATCH_COLUMNS, LOG_SCHEMA
from kraftlake.runtime.errors import LakeError, OffsetError, TooEarlyError

_MOST_FILES = 1_000
"""The maximum number of files that one commit removes: a concurrent writer has to read it."""


@attrs.frozen(kw_only=True)
class Trim:
    """The result of a trim: `files` were removed, with the offsets from `old_start` to before `new_start`."""

    files: int
    old_start: int
    new_start: int


def trim(table: Location, disk: Disk, before: int, snapshot_ends: Sequence[int]) -> Trim:
    """Remove the files of the log that hold only offsets below `before`; the log starts after them then.

    `snapshot_ends` are the end offsets of the lake's sound snapshots. Raises OffsetError for an offset outside the log,
    LakeError if no snapshot covers the new start, if rows are younger than the declared stream lag, or if the disk
    refuses. Other processes may append and compact meanwhile. The files stay on the disk until `vacuum`.
    """
    state = read_table(table)
    check_start(state, before, snapshot_ends)
    old_start = int(state.metadata.configuration[START_OFFSET])
    if before <= old_start:
        return Trim(files=0, old_start=old_start, new_start=old_start)
    files = 0
    while victims := _victims(state, before):
        _check_lag(state, victims)
        state = set_properties(disk, state, {APPEND_ONLY: "false"})
        removed = _remove(disk, state, victims[:_MOST_FILES])
        files += removed
        state = read_table(table)
    state = restore_append_only(disk, state)
    return Trim(files=files, old_start=old_start, new_start=int(state.metadata.configuration[START_OFFSET]))


def trim_preview(state: TableState, before: int) -> Trim:
    """The result that a trim would have now. Raises TooEarlyError if rows are younger than the declared stream lag."""
    old_start = int(state.metadata.configuration[START_OFFSET])
    victims = _victims(state, before) if before > old_start else []
    last = victims[-1].high if victims else None
    _check_lag(state, victims)
    return Trim(files=len(victims), old_start=old_start, new_start=old_start if last is None else last + 1)


def check_start(state: TableState, before: int, snapshot_ends: Sequence[int]) -> None:
    """Raise unless the log in `state` may start at `before`, or already starts later.

    Raises OffsetError for an offset outside the log, LakeError if no snapshot ends there or above.
    """
    lake = state.path.parent
    old_start = int(state.metadata.configuration[START_OFFSET])
    end = LogEnd.of(state).end_offset
    if not 0 <= before <= end:
        raise OffsetError(f"Offset {before} is not in {lake}, which holds offsets {old_start} to {end - 1}.")
    covering = max((snapshot for snapshot in snapshot_ends if snapshot <= end), default=0)
    if before > max(covering, old_start):
        most = f"--before {covering} is the most" if covering > old_start else "there is none that covers anything"
        raise LakeError(
            f"{lake} can't be trimmed before offset {before}: what is trimmed must be covered by a whole snapshot, "
            f"and {most}."
        )


def check_derived(state: TableState, before: int, snapshot_ends: Sequence[int], tables: Sequence[DerivedTable]) -> None:
    """Raise LakeError if a table derived from the log can be continued now, but not after a trim.

    A table continues from the image at the offset that it covers, and a trimmed log has images from the first snapshot
    that covers its start. A table that covers nothing yet begins with that snapshot.
    """
    old_start = int(state.metadata.configuration[START_OFFSET])
    victims = _victims(state, before) if before > old_start else []
    if not victims or victims[-1].high is None:
        return
    first_now, first_then = (_first_image(start, snapshot_ends) for start in (old_start, victims[-1].high + 1))
    behind = [table for table in tables if table.covers is not None and first_now <= table.covers < first_then]
    if behind:
        named = ", ".join(f"{table.name}/ (which ends at offset {table.covers})" for table in behind)
        raise TooEarlyError(
            f"{state.path.parent} can't be trimmed before offset {before}: what was made of its log would have to go "
            f"on from offset {first_then} at least, and {named} could not. Bring such tables up to date first "
            f"(`kraftlake tables`), delete their folders, or trim with --force: they then have to be deleted, and "
            f"begin with the snapshot."
        )


def _first_image(start: int, snapshot_ends: Sequence[int]) -> int:
    """The first offset with an image in a log that starts at `start`; -1, the offset before the start, for 0."""
    return min((end for end in snapshot_ends if end >= start), default=start) - 1 if start else -1


def set_properties(disk: Disk, state: TableState, properties: dict[str, str]) -> TableState:
    """Set table properties in a separate commit; unchanged ones need no commit."""
    if all(state.metadata.configuration.get(name) == value for name, value in properties.items()):
        return state
    shown = ",".join(f"{name}={value}" for name, value in properties.items())
    info = commit_info("SET TBLPROPERTIES", {"properties": shown})
    done = commit_beside_writers(disk, state, lambda now: [info, _with(now.metadata, properties).to_action()])
    assert done is not None
    return done


def restore_append_only(disk: Disk, state: TableState) -> TableState:
    """Restore the property that a trim unsets, in case a trim was killed before its end."""
    return set_properties(disk, state, {APPEND_ONLY: "true"})


def declare_stream_lag(table: Location, disk: Disk, lag_ms: int) -> None:
    """Set the table property that declares the maximum lag of the slowest stream, in milliseconds."""
    if lag_ms < 0:
        raise LakeError("A stream lags behind by 0 milliseconds at least.")
    set_properties(disk, read_table(table), {MAX_STREAM_LAG: str(lag_ms)})


def _with(metadata: TableMetadata, properties: dict[str, str]) -> TableMetadata:
    return attrs.evolve(metadata, configuration={**metadata.configuration, **properties})


def _victims(state: TableState, before: int) -> list[OffsetSpan]:
    """Return the files at the log's beginning that hold only offsets below `before`, and whole batches."""
    spans = sorted(state.files.overlapping(0, 2**63 - 1), key=lambda span: span.low)
    victims: list[OffsetSpan] = []
    for span in spans:
        if span.high is None or span.high >= before or span.low < 0:
            break
        victims.append(span)
    while victims:
        # A foreign compaction may have cut a batch in two, or left files that overlap: neither may lose a part.
        kept = spans[len(victims) :]
        start = victims[-1].high
        assert start is not None
        if all(span.low > start and span.first_batch > start for span in kept[:1]):
            break
        victims.pop()
    return victims


def _check_lag(state: TableState, victims: Sequence[OffsetSpan]) -> None:
    lag = max_stream_lag_ms(state.metadata.configuration)
    young = next((span for span in victims if span.file.modification_time > now_ms() - lag), None)
    if young is not None:
        raise TooEarlyError(
            f"The offsets from {young.low} on were appended to {state.path.parent} less than the declared maximum "
            f"stream lag of {lag / 60_000:g} minutes ago: a stream may have still to read them. Trim --before "
            f"{young.low} at most, or declare a shorter lag with --stream-lag."
        )


def _remove(disk: Disk, state: TableState, victims: Sequence[OffsetSpan]) -> int:
    """Remove files and move the log's start after them, in one commit; 0 if they were compacted meanwhile."""
    paths = [span.file.path for span in victims]
    last = victims[-1].high
    assert last is not None
    try:
        properties = {START_OFFSET: str(last + 1), **_chain_base(state, victims, last)}
    except DataFileGoneError as gone:
        if gone.path.name in read_table(state.path).files:
            raise gone.as_loss() from gone
        return 0
    removed_at = now_ms()
    removes = [span.file.to_remove(removed_at, data_change=True) for span in victims]
    info = commit_info("DELETE", {"predicate": f'["offset <= {last}"]'})
    done = commit_beside_writers(
        disk,
        state,
        lambda now: (
            [info, _with(now.metadata, properties).to_action(), *removes]
            if now.files.holds_all(paths) and now.metadata.configuration.get(APPEND_ONLY) == "false"
            else None
        ),
    )
    return 0 if done is None else len(paths)


def _chain_base(state: TableState, victims: Sequence[OffsetSpan], last: int) -> dict[str, str]:
    """Return the property that keeps the hash at the log's new start; empty if the chain begins after it.

    Raises DataFileGoneError if a file was compacted and vacuumed meanwhile.
    """
    chain, base = Chain.of(state), chain_base(state)
    if chain is None or base is None or chain.start > last:
        return {}
    expected = max(chain.start, int(state.metadata.configuration[START_OFFSET]))
    schema = pa.schema([LOG_SCHEMA.field(name) for name in BATCH_COLUMNS])
    for rows in scan(state.path, victims, expected, last, schema):
        check_contiguous(rows, expected, state.path)
        base, expected = hash_of_rows(rows, base), expected + rows.num_rows
    return {CHAIN_BASE: str(ChainLink(offset=last, hash=base))}
