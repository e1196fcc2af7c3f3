"""The plan of a distributed fold: the pieces that tasks read, and the number of shards. Needs no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.image import MetadataProvenance
from kraftlake.metadata_log import LakeSnapshot, MetadataLog
from kraftlake.metadata_log.reading.pieces import SnapshotPiece, log_pieces, read_piece, snapshot_pieces
from kraftlake.metadata_log.snapshots.snapshot_rows import joined_checksum, payload_checksum
from kraftlake.records.rows import BATCH_COLUMNS
from kraftlake.replay.reading.log_reader import SnapshotReader
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.reading.replay_base import choose_base
from kraftlake.runtime.log import get_logger
from kraftlake.tables.shards.chunks import Chunk, Part
from kraftlake.tables.shards.routing import Router

Piece: TypeAlias = tuple[int, int] | SnapshotPiece

ROWS_OF_A_PIECE = 1_000_000
ROWS_OF_A_SHARD = 500_000
_LEAST_ROWS = 65_536


@attrs.frozen(kw_only=True)
class FoldPlan:
    """A fold of the lake's log up to `at`: `pieces` (ranges of offsets, pieces of the base) are read side by side.

    `base` is the snapshot that it starts from, `split_at` and `topics_only` are those of ShardFold and Router. It can
    be sent to other processes.
    """

    lake: str
    at: int
    pieces: tuple[Piece, ...]
    shards: int
    base_last: int = -1
    base_name: str | None = None
    split_at: int | None = None
    topics_only: bool = False


def plan_fold(
    log: MetadataLog,
    at: int,
    *,
    parallelism: int,
    base_at: int | None = None,
    shards: int | None = None,
    split_at: int | None = None,
    topics_only: bool = False,
    from_snapshot: bool | None = None,
    sound: Callable[[SnapshotReader], bool] = lambda _: True,
) -> tuple[FoldPlan, LakeSnapshot | None]:
    """The plan of a fold up to `at`, from the newest snapshot at or before `base_at` (`at` where None).

    `sound` says which snapshots may be a base. Raises OffsetError where there is no image to be had.
    """
    reader = LakeReader(log)
    base = choose_base(reader, at if base_at is None else base_at, from_snapshot=from_snapshot, known_as_sound=sound)
    assert base is None or isinstance(base, LakeSnapshot), "a lake's snapshots"
    first = base.end_offset if base else log.start_offset
    rows = max(0, at - first + 1) + (base.record_count if base else 0)
    piece = min(ROWS_OF_A_PIECE, max(_LEAST_ROWS, rows // max(1, parallelism)))
    pieces: list[Piece] = list(snapshot_pieces(base, piece)) if base else []
    if first <= at:
        pieces += log_pieces(log, first, at, piece)
    plan = FoldPlan(
        lake=str(log.path),
        at=at,
        pieces=tuple(pieces),
        shards=shards or max(min(parallelism, 1 + rows // _LEAST_ROWS), -(-rows // ROWS_OF_A_SHARD)),
        base_last=base.end_offset - 1 if base else -1,
        base_name=base.name if base else None,
        split_at=split_at,
        topics_only=topics_only,
    )
    return plan, base


def plans(plan: Callable[..., tuple[FoldPlan, LakeSnapshot | None]]) -> Iterator[tuple[FoldPlan, LakeSnapshot | None]]:
    """Plans of one fold, each with its base. Asking for another plan skips the last base, with a warning.

    The caller does so if the base is damaged. `plan` is `plan_fold` with all arguments but `sound`.
    """
    damaged: set[str] = set()
    while True:
        made, base = plan(sound=lambda snapshot: snapshot.name not in damaged)
        yield made, base
        assert base is not None, "without a base nothing is damaged"
        assert base.name not in damaged, "a snapshot is tried once"
        damaged.add(base.name)
        get_logger(__name__).warning(
            "snapshot_skipped", snapshot=base.name, lake=made.lake, reason="its checksum is another one"
        )


def read_chunks(plan: FoldPlan, number: int) -> Iterator[list[Chunk]]:
    """Read one of the plan's pieces and route its records, in lists of chunks of bounded size.

    The last chunk of a piece of the base is its checksum.
    """
    piece = plan.pieces[number]
    if isinstance(piece, SnapshotPiece):
        rows = read_piece(piece)
        router = Router(plan.shards, Part.BASE, topics_only=plan.topics_only)
        yield [*router.take(rows.select(BATCH_COLUMNS)), *router.flush(), _check_of(piece, rows, plan.shards)]
        return
    router = Router(plan.shards, Part.LOG, topics_only=plan.topics_only)
    log = MetadataLog.open(plan.lake)
    for table in log.tables(*piece, BATCH_COLUMNS):
        chunks = list(router.take(table))
        if chunks:
            yield chunks
    if chunks := list(router.flush()):
        yield chunks


def check_piece(plan: FoldPlan, number: int) -> Chunk:
    """The checksum of a piece of the base."""
    piece = plan.pieces[number]
    assert isinstance(piece, SnapshotPiece), "the log needs no check"
    return _check_of(piece, read_piece(piece), plan.shards)


def _check_of(piece: SnapshotPiece, rows: pa.Table, shards: int) -> Chunk:
    total, size = payload_checksum(rows)
    facts = np.array([rows.num_rows, size, total], np.int64).tobytes()
    return Chunk(shard=shards, part=Part.CHECK, first=piece.first_offset, payload=facts)


def base_is_sound(base: LakeSnapshot, checks: Sequence[Chunk]) -> bool:
    """Whether the pieces of a base have the checksum and the record count that its commit states."""
    facts = [np.frombuffer(chunk.payload, np.int64).tolist() for chunk in sorted(checks, key=lambda c: c.first)]
    checksum = joined_checksum((total, size) for _, size, total in facts)
    count = sum(rows for rows, _, _ in facts)
    return count == base.record_count and base.checksum in (None, checksum)


def provenance_at(log: MetadataLog, offset: int) -> MetadataProvenance:
    """The provenance of the image at an offset of the log, or at the end of a snapshot outside of the log."""
    for snapshot in log.snapshots() if not log.start_offset <= offset < log.end_offset else ():
        if snapshot.end_offset == offset + 1:
            return MetadataProvenance(
                offset=offset, epoch=snapshot.epoch, timestamp=snapshot.last_contained_log_timestamp
            )
    batch = next(iter(log.batches(offset, offset)))
    return MetadataProvenance(
        offset=offset, epoch=batch.epoch, timestamp=batch.timestamp, batch_aligned=batch.last_offset == offset
    )
