from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import to_rows
from kraftlake.replay.log.delta_chunk import DeltaChunk
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.errors import LakeError, OffsetError
from kraftlake.tables.catch_up.background import BackgroundWorker
from kraftlake.tables.catch_up.log_fold import LogFold, TableFeed
from kraftlake.tables.catch_up.snapshot_publisher import SnapshotPublisher
from kraftlake.tables.local_changes.local_changes_table import SCHEMA
from kraftlake.tables.local_changes.local_changes_writer import LocalChangesWriter
from tests.few_examples import few_examples
from tests.replay.made_logs import abort, begin, data, end, metadata_version, partition, topic
from tests.tables.folding import CoveringTable
from tests.tables.sample_log import append_in, batches_between, image_without_spark

SNAPSHOT_BYTES = 20_000


def transaction(start: int, close: r.EndTransactionRecord | r.AbortTransactionRecord) -> Iterator[RecordBatch]:
    """A metadata transaction over many batches, longer than the bytes between two snapshots: 402 offsets."""
    yield data(start, begin(), epoch=1)
    for number in range(start + 1, start + 401, 2):
        yield data(number, topic(number), partition(number, replicas=(1, 2)), epoch=1)
    yield data(start + 401, close, epoch=1)


BATCHES = batches_between(0, 900)
ENDED = BATCHES[-1].last_offset + 1
BATCHES.extend(transaction(ENDED, end()))
ABORTED = BATCHES[-1].last_offset + 1
BATCHES.extend(transaction(ABORTED, abort()))
BATCHES.append(data(ABORTED + 402, topic(5000), partition(5000, replicas=(2, 3)), epoch=1))
LAST = BATCHES[-1].last_offset
INSIDE_TRANSACTIONS = {*range(ENDED, ENDED + 401), *range(ABORTED, ABORTED + 401)}
ROWS = to_rows(BATCHES)


class RecordingPublisher(SnapshotPublisher):
    """Writes into a list instead of a lake: where snapshots were due."""

    def __init__(self, reader: LakeReader, there: tuple[int, ...] = ()) -> None:
        super().__init__(reader, SNAPSHOT_BYTES)
        self._ends |= set(there)


class ForgettingLog(MetadataLog):
    """A lake's log that keeps no snapshot."""

    def add_snapshot(self, *_: object) -> bool:
        return True


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fold") / "lake"
    append_in(MetadataLog.create(path), 3, BATCHES)
    return path


@pytest.fixture(scope="module")
def reader(lake: Path) -> LakeReader:
    return LakeReader(ForgettingLog.open(lake))


class Folded:
    """A fold with one table, and what it has made of it."""

    def __init__(
        self,
        reader: LakeReader,
        covers: int | None = None,
        there: tuple[int, ...] = (),
        background: BackgroundWorker | None = None,
    ) -> None:
        self.writer = LocalChangesWriter()
        self.snapshots = RecordingPublisher(reader, there)
        self.fold = LogFold(reader, [TableFeed(self.writer, covers)], self.snapshots, background=background)
        self.fold.begin()
        self.fold.open([CoveringTable(covers)])  # type: ignore[list-item]

    def take_rows(self, rows: pa.Table) -> None:
        for _ in self.fold.take(rows.filter(pc.greater(rows.column("offset"), self.fold.last_offset))):
            pass

    def drain(self) -> pa.Table:
        self.fold.wait()
        return self.writer.drain().cast(SCHEMA)

    @property
    def image(self) -> MetadataImage:
        return self.fold.image

    @property
    def last_offset(self) -> int:
        return self.fold.last_offset


def fold_of(reader: LakeReader, covers: int | None = None, there: tuple[int, ...] = ()) -> Folded:
    return Folded(reader, covers, there)


@pytest.fixture(scope="module")
def whole(reader: LakeReader) -> tuple[Folded, pa.Table]:
    fold = fold_of(reader)
    fold.take_rows(ROWS)
    return fold, fold.drain()


@st.composite
def micro_batches(draw: st.DrawFn) -> list[pa.Table]:
    """The rows cut between log batches."""
    ends = draw(st.sets(st.sampled_from([batch.last_offset + 1 for batch in BATCHES]), max_size=6))
    pieces = []
    start = 0
    for stop in sorted({*ends, ROWS.num_rows}):
        pieces.append(ROWS.slice(start, stop - start))
        start = stop
    return pieces


def snapshots_of(fold: Folded) -> list[int]:
    return fold.snapshots.written


@few_examples
@given(pieces=micro_batches(), ahead=st.integers(0, 4))
def test_every_cut_of_the_rows_gives_the_same(
    reader: LakeReader,
    whole: tuple[Folded, pa.Table],
    pieces: list[pa.Table],
    ahead: int,
) -> None:
    rows = []
    with BackgroundWorker(max(ahead, 1)) as background:
        fold = Folded(reader, background=background if ahead else None)
        for piece in pieces:
            fold.take_rows(piece)
            rows.append(fold.drain())
    expected, expected_rows = whole
    assert fold.image == expected.image
    assert pa.concat_tables(rows).equals(expected_rows)
    assert snapshots_of(fold) == snapshots_of(expected)
    assert len(snapshots_of(fold)) > 1
    assert (fold.fold.batches, fold.fold.deltas) == (expected.fold.batches, expected.fold.deltas)


@few_examples
@given(published_to=st.sampled_from([batch.last_offset for batch in BATCHES]))
def test_a_run_that_begins_anew_anywhere_goes_on_the_same(
    reader: LakeReader, whole: tuple[Folded, pa.Table], published_to: int
) -> None:
    expected, expected_rows = whole
    there = tuple(end_offset for end_offset in snapshots_of(expected) if end_offset <= published_to + 1)
    fold = fold_of(reader, published_to, there)
    assert fold.last_offset == published_to
    fold.take_rows(ROWS)
    later = [row for row in expected_rows.to_pylist() if row["offset"] > published_to]
    assert fold.image == expected.image
    assert [*there, *snapshots_of(fold)] == snapshots_of(expected)
    assert fold.drain().to_pylist() == later


def test_the_image_is_the_one_replayed_without_the_fold(lake: Path, whole: tuple[Folded, pa.Table]) -> None:
    assert whole[0].image == image_without_spark(lake)


def test_the_log_itself_can_be_taken_in_place_of_rows(reader: LakeReader, whole: tuple[Folded, pa.Table]) -> None:
    fold = fold_of(reader)
    sizes = [size for rows in reader.log.batch_rows() for size in fold.fold.take(rows)]
    assert sum(sizes) == sum(len(value) for batch in BATCHES for value in batch.values)
    assert fold.image == whole[0].image
    assert fold.drain().equals(whole[1])


def test_rows_are_made_while_the_next_deltas_are(reader: LakeReader, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer waits with the first rows until the fold takes the ones behind them."""
    monkeypatch.setattr("kraftlake.tables.catch_up.log_fold._PIECE_ROWS", 300)
    pieces, second = count(), threading.Event()
    with BackgroundWorker(3) as background:
        fold = Folded(reader, background=background)
        take, make = LogReplay.take, fold.writer.take_deltas

        def take_later(replay: LogReplay, rows: pa.Table) -> list[DeltaChunk]:
            if next(pieces):
                second.set()
            return take(replay, rows)

        def make_later(chunk: DeltaChunk) -> None:
            assert second.wait(60)
            make(chunk)

        monkeypatch.setattr(LogReplay, "take", take_later)
        monkeypatch.setattr(fold.writer, "take_deltas", make_later)
        fold.take_rows(ROWS)
        assert fold.last_offset == LAST
        assert fold.drain().num_rows


def test_a_table_that_is_ahead_of_the_log_is_of_another_one(reader: LakeReader) -> None:
    with pytest.raises(
        LakeError, match=f"local_changes/ of .* holds offsets up to {LAST + 50}, but the log ends before"
    ):
        fold_of(reader, LAST + 50)


def test_a_log_whose_start_no_snapshot_covers_has_no_image(tmp_path: Path) -> None:
    log = MetadataLog.create(tmp_path / "lake", start_offset=BATCHES[9].base_offset)
    log.append(BATCHES[9:])
    with pytest.raises(OffsetError, match="has no snapshot that covers that start"):
        fold_of(LakeReader(log))


def test_no_snapshot_and_no_local_change_stands_inside_of_a_transaction(whole: tuple[Folded, pa.Table]) -> None:
    assert INSIDE_TRANSACTIONS.isdisjoint(whole[1].column("offset").to_pylist())
    assert INSIDE_TRANSACTIONS.isdisjoint(end_offset - 1 for end_offset in snapshots_of(whole[0]))
    assert ABORTED - 1 in whole[1].column("offset").to_pylist(), "the whole transaction takes effect at its end"
    assert ABORTED in snapshots_of(whole[0])


def test_an_aborted_transaction_leaves_no_trace(whole: tuple[Folded, pa.Table]) -> None:
    assert whole[0].image.topics.get_topic(f"topic-{ENDED + 1}") is not None
    assert whole[0].image.topics.get_topic(f"topic-{ABORTED + 1}") is None
    assert ABORTED + 401 not in whole[1].column("offset").to_pylist()


@st.composite
def busy_and_quiet(draw: st.DrawFn) -> list[RecordBatch]:
    """Batches of no-op records among others, and of both."""
    batches: list[RecordBatch] = []
    offset = 0
    for number, kinds in enumerate(draw(st.lists(st.lists(st.booleans(), min_size=1, max_size=4), min_size=1))):
        messages = [topic(100 * number + place) if busy else r.NoOpRecord() for place, busy in enumerate(kinds)]
        batches.append(data(offset, metadata_version(), *messages) if not number else data(offset, *messages))
        offset = batches[-1].last_offset + 1
    return batches


@few_examples
@given(batches=busy_and_quiet(), every=st.integers(1, 200), knows=st.data())
def test_snapshots_are_due_at_the_same_places_when_batches_are_replayed_at_once(
    reader: LakeReader, batches: list[RecordBatch], every: int, knows: st.DataObject
) -> None:
    """Also where snapshots are there already, be it inside of batches."""
    there = knows.draw(st.sets(st.integers(1, batches[-1].last_offset + 1), max_size=4))
    cut = knows.draw(st.integers(0, len(batches)))
    pieces = (batches[:cut], batches[cut:])
    assert folded(reader, pieces, there, every) == folded(reader, [[batch] for batch in batches], there, every)


def folded(
    reader: LakeReader, pieces: Sequence[Sequence[RecordBatch]], there: set[int], every: int
) -> tuple[object, ...]:
    """What became of a log: snapshots, the bytes since the last one, image and counts."""
    fold = fold_of(reader, there=tuple(there))
    fold.snapshots._every_bytes = every
    for piece in pieces:
        if piece:
            fold.take_rows(to_rows(piece))
    return snapshots_of(fold), fold.snapshots._bytes, fold.image, fold.fold.deltas, fold.fold.batches


@pytest.mark.parametrize(("end_offset", "counted"), [(3, 2), (5, 0), (7, 1)])
def test_bytes_count_from_a_snapshot_that_ends_inside_of_a_batch_of_no_op_records(
    reader: LakeReader, end_offset: int, counted: int
) -> None:
    no_op = r.NoOpRecord()
    log = [
        data(0, metadata_version(), topic(1)),
        data(2, no_op, no_op, no_op),
        data(5, topic(2)),
        data(6, no_op, no_op),
    ]
    last = sum(map(len, log[2].values)) if end_offset < 6 else 0
    quiet = len(log[1].values[0])
    expected = counted * quiet + last + (0 if end_offset == 7 else 2 * quiet)
    assert folded(reader, [log], {end_offset}, 1 << 30)[1] == expected
