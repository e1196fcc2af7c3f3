"""A plan reads every offset once, in pieces that don't overlap, and knows a damaged base by its checksum."""

from __future__ import annotations

from pathlib import Path

import attrs
import pyarrow as pa
from google_crc32c import value as crc32c
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.kafka_files.snapshots.batches import checkpoint_batches
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.reading.pieces import SnapshotPiece, cut, read_piece, snapshot_pieces
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts, joined_checksum
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.tables.shards.results import NAMES_SCHEMA
from kraftlake.tables.shards.shard_plan import check_of, plan_fold, provenance_at
from kraftlake.tables.shards.snapshot_layout import ranges_of
from tests.tables.sample_log import lake_of


@given(st.sets(st.integers(0, 500)), st.integers(0, 300), st.integers(-1, 300), st.integers(1, 80))
def test_pieces_hold_each_offset_once_and_none_is_too_long(begins: set[int], low: int, size: int, rows: int) -> None:
    pieces = list(cut(sorted(begins), low, low + size, rows))
    assert [offset for first, last in pieces for offset in range(first, last + 1)] == [*range(low, low + size + 1)]
    assert all(last - first + 1 <= rows + rows // 2 for first, last in pieces)


@given(st.lists(st.binary(max_size=300), max_size=8))
def test_checksums_of_pieces_make_that_of_the_whole(pieces: list[bytes]) -> None:
    assert joined_checksum((crc32c(piece), len(piece)) for piece in pieces) == crc32c(b"".join(pieces))


@given(st.dictionaries(st.text(max_size=5), st.integers(0, 30), max_size=40), st.integers(1, 40), st.integers(0, 9))
def test_ranges_of_topics_follow_each_other_by_name(topics: dict[str, int], records: int, first: int) -> None:
    names = pa.table([pa.array(list(topics), pa.string()), pa.array(topics.values(), pa.int32())], NAMES_SCHEMA)
    ranges = ranges_of(names, first, records)
    ordered = sorted(topics)
    assert [each.first_offset for each in ranges] == [
        first + sum(topics[name] + 1 for name in ordered[: ordered.index(each.first_name)]) for each in ranges
    ]
    assert sum(each.records for each in ranges) == sum(count + 1 for count in topics.values())
    assert [each.number for each in ranges] == [*range(len(ranges))]


def with_snapshot(path: Path) -> MetadataLog:
    log = lake_of(path, commits=2, last=2_000)
    image = image_at(LakeReader(log), log.end_offset - 1, from_snapshot=False).image
    at = image.provenance
    batches = checkpoint_batches(image.write(), epoch=at.epoch, timestamp=at.timestamp)
    log.add_snapshot(
        SnapshotFacts(end_offset=log.end_offset, epoch=at.epoch, last_contained_log_timestamp=at.timestamp), batches
    )
    return log


def test_the_pieces_of_a_snapshot_are_its_rows(tmp_path: Path) -> None:
    log = with_snapshot(tmp_path / "lake")
    (snapshot,) = log.snapshots()
    rows = pa.concat_tables([read_piece(piece) for piece in snapshot_pieces(snapshot, 10)])
    assert rows["payload"].to_pylist() == [value for batch in snapshot.batches() for value in batch.values]


def test_a_base_is_sound_when_what_was_read_has_its_count_and_checksum(tmp_path: Path) -> None:
    log = with_snapshot(tmp_path / "lake")
    plan = plan_fold(log, log.end_offset - 1, parallelism=2)
    assert plan.base is not None
    assert plan.base_at == provenance_at(log, log.end_offset - 1)
    checks = [check_of(piece, read_piece(piece)) for piece in plan.pieces if isinstance(piece, SnapshotPiece)]
    assert plan.is_sound(checks)
    assert not attrs.evolve(plan, base=attrs.evolve(plan.base, checksum=1)).is_sound(checks)
    assert not attrs.evolve(plan, base=attrs.evolve(plan.base, record_count=1)).is_sound(checks)
    assert attrs.evolve(plan, base=None).is_sound(())
