"""Forks a log: makes a controlled copy up to an offset, which a controller may continue."""

from __future__ import annotations

import os
from typing import Any

import attrs

from kraftlake.replay.imports.kept_snapshot import facts_of
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.chunks import chunks_of, chunks_of_snapshot
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.reading.replay_base import check_unbroken, has_beginning, usable_snapshots
from kraftlake.runtime.errors import OffsetError
from kraftlake.runtime.json_names import fields_as_json
from kraftlake.runtime.moments import Moment


@attrs.frozen(kw_only=True)
class ForkReport:
    """A fork that was made.

    `uncommitted` counts the records at its end that are not known to be committed in the source; None where the source
    does not say.
    """

    lake: str
    source: str
    cluster_id: str | None
    start_offset: int
    end_offset: int
    epoch: int
    snapshots: int
    uncommitted: int | None

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        return fields_as_json(self)


def fork_source(source: LogSource, lake: str | os.PathLike[str], at: Moment | None = None) -> ForkReport:
    """Make a controlled lake with the log of `source` up to and including `at`, by default all of it.

    The lake is created whole or not at all. Raises OffsetError where `at` is not the last offset of a batch, naming its
    neighbours that are, or is below the first image; BrokenFileError where the log up to there lacks offsets; LakeError
    where the lake can't be created.
    """
    from kraftlake.metadata_log.append.creation import Contents
    from kraftlake.metadata_log.log import MetadataLog

    reader = source.reader
    offset = source.offset_at(at) if at is not None else reader.end_offset - 1
    if not reader.start_offset <= offset < reader.end_offset:
        raise OffsetError(
            f"{reader.name} has no offset {offset} to fork at: its log holds offsets {reader.start_offset} to "
            f"{reader.end_offset - 1}."
        )
    check_unbroken(reader, reader.start_offset, offset)
    last = next(batch for batch in reader.batches(offset, offset) if batch.last_offset >= offset)
    if last.last_offset != offset:
        before = f"offset {last.base_offset - 1} or " if last.base_offset > reader.start_offset else ""
        raise OffsetError(
            f"Offset {offset} lies inside of a batch, which can't be cut: fork at {before}offset {last.last_offset}."
        )
    snapshots = [snapshot for snapshot in usable_snapshots(reader) if snapshot.end_offset <= offset + 1]
    if not has_beginning(reader) and not any(snapshot.end_offset >= reader.start_offset for snapshot in snapshots):
        raise OffsetError(f"{reader.name} has no snapshot at or before offset {offset}, so a fork there has no image.")
    log = MetadataLog.create(
        lake if isinstance(lake, str) else os.fspath(lake),
        source.cluster_id,
        "controlled",
        start_offset=reader.start_offset,
        contents=Contents(
            batches=chunks_of(reader, reader.start_offset, offset),
            snapshots=[(facts_of(snapshot), chunks_of_snapshot(snapshot)) for snapshot in snapshots],
        ),
    )
    committed_to = reader.log.committed_to if isinstance(reader, LakeReader) else None
    return ForkReport(
        lake=str(log.path),
        source=source.path,
        cluster_id=log.cluster_id,
        start_offset=log.start_offset,
        end_offset=log.end_offset,
        epoch=log.epoch,
        snapshots=len(snapshots),
        uncommitted=None if committed_to is None else max(0, log.end_offset - committed_to),
    )
