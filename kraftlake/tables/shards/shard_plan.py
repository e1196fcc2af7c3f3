"""The plan of work by shards: the pieces that tasks read, and the number of shards. Needs no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import attrs
import pyarrow as pa

from kraftlake.image.provenance import MetadataProvenance
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.reading.pieces import SnapshotPiece, log_pieces, read_piece, snapshot_pieces
from kraftlake.metadata_log.snapshots.snapshot_rows import joined_checksum, payload_checksum
from kraftlake.metadata_log.snapshots.snapshot_table import LakeSnapshot
from kraftlake.metadata_log.storage.location import lake_location
from kraftlake.records.rows import BATCH_COLUMNS
from kraftlake.replay.reading.open_reader import LakeReader, SnapshotReader
from kraftlake.replay.reading.replay_base import choose_base, snapshot_provenance
from kraftlake.runtime.arrow import pc
from kraftlake.runtime.log import get_logger
from kraftlake.tables.shards.chunks import Chunk, Part
from kraftlake.tables.shards.routing import Router

ROWS_OF_A_PIECE = 1_000_000
ROWS_OF_A_SHARD = 500_000
_LEAST_ROWS = 65_536


@attrs.frozen(kw_only=True)
class LogPiece:
    """The batches that begin in the offsets `first` to `last`, of which a part of the log is read: `low` to `high`.

    The first piece has the rest of the batch that `low` is in.
    """

    part: Part
    first: int
    last: int
    low: int
    high: int

    def rows(self, log: MetadataLog) -> Iterator[pa.Table]:
        """The piece's rows with BATCH_COLUMNS, in tables of whole batches."""
        for rows in log.batch_rows(self.first, self.last, columns=BATCH_COLUMNS):
            offsets = rows.column("offset")
            begins = pc.max_element_wise(rows.column("batch"), self.low)
            inside = pc.and_(pc.greater_equal(offsets, self.low), pc.less_equal(offsets, self.high))
            yield rows.filter(pc.and_(inside, pc.greater_equal(begins, self.first)))


Piece: TypeAlias = LogPiece | SnapshotPiece
Check: TypeAlias = tuple[int, int, int, int]
"""The first offset of a piece of a snapshot, the number of its rows, and the checksum and bytes of their values."""


@attrs.frozen(kw_only=True)
class SnapshotBase:
    """A snapshot, as those who read it side by side know it: its provenance and what its commit states."""

    name: str
    at: MetadataProvenance
    record_count: int
    checksum: int | None

    @classmethod
    def of(cls, base: LakeSnapshot) -> SnapshotBase:
        """The base that a lake's snapshot is."""
        return cls(name=base.name, at=snapshot_provenance(base), record_count=base.record_count, checksum=base.checksum)


@attrs.frozen(kw_only=True)
class ShardPlan:
    """The input of shards: the snapshot `base` and the log after it make their states, or files do; then comes a step.

    `pieces` are read side by side; the records of the step are of `Part.STEP`. `all_shards`: each shard gets an empty
    chunk of the step, so that it has a task. `topics_only` is that of Router. It can be sent to other processes.
    """

    lake: str
    shards: int
    pieces: tuple[Piece, ...] = ()
    base: SnapshotBase | None = None
    topics_only: bool = False
    all_shards: bool = False

    @property
    def piece_count(self) -> int:
        """The number of pieces for `read_chunks`."""
        return len(self.pieces) + self.all_shards

    @property
    def base_at(self) -> MetadataProvenance:
        """The end of the base."""
        return MetadataProvenance.EMPTY if self.base is None else self.base.at

    def is_sound(self, checks: Iterable[Check]) -> bool:
        """Whether there is no base, or its pieces have the checksum and the record count that its commit states."""
        if self.base is None:
            return True
        _, counts, checksums, sizes = zip(*sorted(checks), strict=True)
        checksum = joined_checksum(zip(checksums, sizes, strict=True))
        return sum(counts) == self.base.record_count and self.base.checksum in (None, checksum)

    def with_log(self, log: MetadataLog, part: Part, first: int, last: int, rows: int) -> ShardPlan:
        """The same with a part of the log, in pieces of about `rows` records."""
        ranges = log_pieces(log, first, last, rows) if first <= last else ()
        pieces = [LogPiece(part=part, first=begin, last=end, low=first, high=last) for begin, end in ranges]
        return attrs.evolve(self, pieces=(*self.pieces, *pieces))


def plan_fold(
    log: MetadataLog,
    at: int,
    *,
    parallelism: int,
    to: int | None = None,
    shards: int | None = None,
    topics_only: bool = False,
    from_snapshot: bool | None = None,
    sound: Callable[[SnapshotReader], bool] = lambda _: True,
) -> ShardPlan:
    """The plan of a fold up to `at`, from the newest snapshot at or before it, and of a step from there up to `to`.

    `sound` says which snapshots may be a base. Raises OffsetError where there is no image to be had.
    """
    base = choose_base(LakeReader(log), at, from_snapshot=from_snapshot, known_as_sound=sound)
    assert base is None or isinstance(base, LakeSnapshot), "a lake's snapshots"
    first, to = base.end_offset if base else log.start_offset, at if to is None else to
    rows = max(0, to - first + 1) + (base.record_count if base else 0)
    piece = min(ROWS_OF_A_PIECE, max(_LEAST_ROWS, rows // max(1, parallelism)))
    plan = ShardPlan(
        lake=str(log.path),
        shards=shards or max(min(parallelism, 1 + rows // _LEAST_ROWS), -(-rows // ROWS_OF_A_SHARD)),
        pieces=tuple(snapshot_pieces(base, piece)) if base else (),
        base=SnapshotBase.of(base) if base else None,
        topics_only=topics_only,
    )
    return plan.with_log(log, Part.LOG, first, at, piece).with_log(log, Part.STEP, at + 1, to, piece)


def plans(plan: Callable[..., ShardPlan]) -> Iterator[ShardPlan]:
    """Plans of one fold. Asking for another plan skips the base of the last one, with a warning.

    The caller does so if the base is damaged. `plan` is `plan_fold` with all arguments but `sound`.
    """
    damaged: set[str] = set()
    while True:
        made = plan(sound=lambda snapshot: snapshot.name not in damaged)
        yield made
        assert made.base is not None, "without a base nothing is damaged"
        assert made.base.name not in damaged, "a snapshot is tried once"
        damaged.add(made.base.name)
        get_logger(__name__).warning(
            "snapshot_skipped", snapshot=made.base.name, lake=made.lake, reason="its checksum is another one"
        )


def read_chunks(plan: ShardPlan, number: int) -> Iterator[list[Chunk]]:
    """Read one of the plan's pieces and route its records, in lists of chunks of bounded size.

    The last chunk of a piece of the base is its checksum.
    """
    if number == len(plan.pieces):
        yield [Chunk.of(shard, Part.STEP, None, -1) for shard in range(plan.shards)]
        return
    piece = plan.pieces[number]
    router = Router(plan.shards, Part.BASE if isinstance(piece, SnapshotPiece) else piece.part, plan.topics_only)
    if isinstance(piece, SnapshotPiece):
        rows = read_piece(piece)
        check = Chunk.of(plan.shards, Part.CHECK, check_of(piece, rows))
        yield [*router.take(rows.select(BATCH_COLUMNS)), *router.flush(), check]
        return
    for table in piece.rows(MetadataLog.open(lake_location(plan.lake))):
        if chunks := list(router.take(table)):
            yield chunks
    if chunks := list(router.flush()):
        yield chunks


def check_of(piece: SnapshotPiece, rows: pa.Table) -> Check:
    """The facts about a piece of the base and its rows that `is_sound` takes."""
    return piece.first_offset, rows.num_rows, *payload_checksum(rows)


def provenance_at(log: MetadataLog, offset: int) -> MetadataProvenance:
    """The provenance of the image at an offset of the log, or at the end of a snapshot outside of the log."""
    for snapshot in log.snapshots() if not log.start_offset <= offset < log.end_offset else ():
        if snapshot.end_offset == offset + 1:
            return snapshot_provenance(snapshot)
    batch = next(iter(log.batches(offset, offset)))
    return MetadataProvenance(
        offset=offset, epoch=batch.epoch, timestamp=batch.timestamp, batch_aligned=batch.last_offset == offset
    )
