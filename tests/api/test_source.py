"""The door: `kraftlake.open` and what a source answers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import attrs
import numpy as np
import pytest

import kraftlake
from kraftlake.api import Source
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.faults import BrokenFileError
from kraftlake.kafka_files.file_names import segment_name
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import encode_batch
from kraftlake.replay.imports.import_log import import_source
from kraftlake.runtime.errors import CorruptDataError, OffsetError, ReplayError, UsageError
from tests.replay.made_logs import (
    CLUSTER,
    TIME,
    MadeLog,
    leader_change,
    log_of,
    metadata_version,
    no_op,
    partition,
    reference_image,
    small_log,
    snapshot_of,
    topic,
    trimmed,
    uuid_of,
    write_directory,
)


def made(log: MadeLog) -> Source:
    return Source(log, SourceKind.DIRECTORY, "made", None)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return kraftlake.open(write_directory(tmp_path, small_log(), cuts=[9]))


def at(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)


def test_records_are_given_in_offset_order_with_both_ends_included(source: Source) -> None:
    assert [record.offset for record in source.records()] == list(range(18))
    assert [record.offset for record in source.records(2, 5)] == [2, 3, 4, 5]
    assert [record.type for record in source.records(4, 5)] == ["TOPIC_RECORD", "PARTITION_RECORD"]


def test_records_are_chosen_by_type(source: Source) -> None:
    assert [record.offset for record in source.records(types=["TOPIC_RECORD"])] == [4, 6, 11]
    assert [record.offset for record in source.records(types=["leader_change", "NO_OP_RECORD"])] == [0, 8, 9, 15, 17]
    with pytest.raises(UsageError, match="TOPICRECORD is no record type; did you mean TOPIC_RECORD"):
        source.records(types=["TopicRecord"])


@pytest.mark.parametrize(("first", "last"), [(-1, None), (18, None), (None, 18), (0, 10**18), (None, -1)])
def test_records_outside_of_the_log_are_an_error_naming_the_range(
    source: Source, first: int | None, last: int | None
) -> None:
    with pytest.raises(OffsetError, match="holds offsets 0 to 17"):
        source.records(first, last)


def test_a_range_that_runs_backwards_is_a_usage_error(source: Source) -> None:
    with pytest.raises(UsageError, match="from offset 5 to 4"):
        source.records(5, 4)
    with pytest.raises(UsageError, match="from offset 5 to 4"):
        source.local_changes(1, 5, 4)


@pytest.mark.parametrize("offset", [-1, -5, 18, 10**18])
def test_an_image_outside_of_the_log_is_an_error_naming_the_range(source: Source, offset: int) -> None:
    with pytest.raises(OffsetError, match=rf"Offset {offset} is .*holds offsets 0 to 17"):
        source.image(offset)


def test_the_image_is_that_at_the_end_unless_asked_otherwise(source: Source) -> None:
    assert source.image().provenance.offset == 17
    assert source.image() == reference_image(small_log())
    assert set(source.image(7).topics.topics_by_name()) == {"topic-1", "topic-2"}


def test_a_time_means_the_last_offset_whose_batch_is_not_later(source: Source) -> None:
    for offset in (0, 3, 5, 7, 9, 13, 17):
        batch_time = max(b.timestamp for b in small_log() if b.last_offset <= offset)
        assert source.offset_at(at(batch_time)) == offset
    assert source.offset_at(at(TIME + 2)) == 3
    assert source.offset_at(at(TIME + 10**9)) == 17
    assert source.image(at(TIME + 6)).provenance.offset == 7


def test_a_time_before_the_first_batch_is_an_error_naming_the_first_time(source: Source) -> None:
    with pytest.raises(OffsetError, match=r"2023-11-14 22:13:20\.000Z"):
        source.image(at(TIME - 1))


def test_what_happened_since_a_time_begins_after_the_last_batch_before_it(source: Source, tmp_path: Path) -> None:
    import_source(source, tmp_path / "lake")
    for either in (source, kraftlake.open(tmp_path / "lake")):
        assert either.offset_since(at(0)) == 0
        for millis in range(TIME, TIME + 17):
            assert either.offset_since(at(millis + 1)) == either.offset_at(at(millis)) + 1
        assert either.offset_since(at(TIME + 6) + timedelta(microseconds=1)) == either.offset_at(at(TIME + 6)) + 1
        with pytest.raises(OffsetError, match=r"last batch .* is of 2023-11-14 22:13:20\.017Z"):
            either.offset_since(at(TIME + 10**9))


def test_since_a_time_is_what_was_written_at_it_though_the_clock_has_run_backwards_since() -> None:
    log = MadeLog(records=(no_op(0, time=50), no_op(1, time=90), no_op(2, time=60)))
    assert [made(log).offset_since(at(time)) for time in (50, 51, 60, 61, 90)] == [0, 1, 1, 1, 1]
    with pytest.raises(OffsetError, match="before the time asked for"):
        made(log).offset_since(at(91))


def test_nothing_is_since_a_time_where_no_batch_has_one() -> None:
    with pytest.raises(OffsetError, match="no batch with a time"):
        made(MadeLog(records=(no_op(0, time=-1),))).offset_since(at(5))


def test_a_time_without_a_zone_is_utc_and_another_zone_is_converted(source: Source) -> None:
    naive = at(TIME + 6).replace(tzinfo=None)
    elsewhere = at(TIME + 6).astimezone(timezone(timedelta(hours=5)))
    assert source.offset_at(naive) == source.offset_at(elsewhere) == 7


def test_times_that_go_back_find_the_last_offset_and_missing_times_are_passed_over() -> None:
    log = MadeLog(records=(no_op(0, time=50), no_op(1, time=90), no_op(2, time=60), no_op(3, time=-1)))
    assert [made(log).offset_at(at(time)) for time in (50, 59, 60, 100)] == [0, 0, 2, 2]
    with pytest.raises(OffsetError, match="no batch with a time"):
        made(MadeLog(records=(no_op(0, time=-1),))).offset_at(at(5))


def test_a_damaged_batch_is_passed_over_where_the_time_is_another(tmp_path: Path) -> None:
    batches = [no_op(offset, time=TIME + offset) for offset in range(6)]
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    written = [bytearray(encode_batch(batch)) for batch in batches]
    written[3][-1] ^= 1
    (folder / segment_name(0)).write_bytes(b"".join(written))
    source = kraftlake.open(folder)
    assert [source.offset_at(at(TIME + offset)) for offset in (0, 1, 4, 5)] == [0, 1, 4, 5]
    assert [source.offset_since(at(TIME + offset)) for offset in (0, 1, 2, 5)] == [0, 1, 2, 5]
    for unknown in (source.offset_at, source.offset_since):
        with pytest.raises(BrokenFileError, match="offset 3: a batch whose CRC"):
            unknown(at(TIME + 2 if unknown == source.offset_at else TIME + 3))


def test_a_lake_finds_the_same_offsets_by_time(source: Source, tmp_path: Path) -> None:
    import_source(source, tmp_path / "lake")
    lake = kraftlake.open(tmp_path / "lake")
    for millis in range(TIME, TIME + 20):
        assert lake.offset_at(at(millis)) == source.offset_at(at(millis))
    with pytest.raises(OffsetError):
        lake.offset_at(at(TIME - 1))


def test_minus_one_is_the_empty_image_for_local_changes_and_diff(source: Source) -> None:
    changes = source.local_changes(1, -1, 17)
    assert {str(p) for p in changes.changes.leaders} == {"topic-3-0"}
    assert {str(p) for p in changes.changes.followers} == {"topic-2-0"}
    assert source.diff(-1, 17).from_offset == -1
    assert not source.diff(-1, 17).is_empty()
    assert source.diff(-1, -1).is_empty()


def test_a_diff_goes_in_both_directions(source: Source) -> None:
    there, back = source.diff(8, 17), source.diff(17, 8)
    assert len(there.changes) == len(back.changes) > 0
    assert source.diff(8, 8).is_empty()


def test_local_changes_of_no_offsets_are_empty(source: Source) -> None:
    assert source.local_changes(1, 8, 8).to_json()["hasTopicsDelta"] is False
    assert source.local_changes(1, 8, 9).to_json()["hasTopicsDelta"] is False
    assert source.local_changes(1, 8).to_offset == 17


def test_a_transaction_open_at_the_first_offset_takes_effect_in_the_delta_at_its_end(source: Source) -> None:
    assert {str(p) for p in source.local_changes(1, 11, 12).changes.leaders} == set()
    assert {str(p) for p in source.local_changes(1, 11, 13).changes.leaders} == {"topic-3-0"}
    assert {str(p) for p in source.local_changes(1, 12, 13).changes.leaders} == {"topic-3-0"}


def test_an_image_inside_of_a_batch_holds_the_records_up_to_there(source: Source) -> None:
    image = source.image(4)
    topic_1 = image.topics.get_topic("topic-1")
    assert topic_1 is not None
    assert not topic_1.partitions
    assert (image.provenance.offset, image.provenance.batch_aligned) == (4, False)


def test_from_snapshot_forces_the_base() -> None:
    log = small_log()
    source = made(trimmed(log, 0, 9, 15))
    for offset in range(8, 18):
        replays = [source.replay(offset, from_snapshot=choice) for choice in (None, False, True)]
        newest = max(end for end in (9, 15) if end - 1 <= offset)
        assert [replay.base and int(replay.base[:20]) for replay in replays] == [newest, None, newest]
        assert replays[0].image == replays[1].image == replays[2].image
    with pytest.raises(OffsetError, match="no finished snapshot at or before offset 7"):
        source.image(7, from_snapshot=True)


def test_a_log_that_starts_above_zero_has_images_from_the_snapshot_that_covers_its_start() -> None:
    source = made(trimmed(small_log(), 9, 9))
    assert source.image(8) == reference_image(small_log(), 8)
    assert source.image(17) == reference_image(small_log())
    for offset in (0, 7):
        with pytest.raises(OffsetError, match=r"starts at offset 9, and the first image from there on is .* offset 8"):
            source.image(offset)
    with pytest.raises(OffsetError, match="can't be replayed from the log alone"):
        source.image(17, from_snapshot=False)


def test_offsets_that_neither_log_nor_snapshot_covers_name_the_first_that_is() -> None:
    source = made(trimmed(small_log(), 9, 6, 15))
    assert source.image(5) == reference_image(small_log(), 5)
    for offset in (6, 9, 13):
        with pytest.raises(OffsetError, match=r"first image from there on is the one at offset 14\b"):
            source.image(offset)
    assert source.image(16) == reference_image(small_log(), 16)


def test_without_a_snapshot_that_covers_the_start_there_are_records_but_no_image() -> None:
    source = made(trimmed(small_log(), 9))
    assert [record.offset for record in source.records()] == list(range(9, 18))
    with pytest.raises(OffsetError, match=r"no finished snapshot covers that start.*from offset 9 on"):
        source.image()


def test_unfinished_snapshots_and_bootstrap_input_are_never_a_base() -> None:
    good = trimmed(small_log(), 9, 9).snapshots[0]
    for spoiled in (attrs.evolve(good, finished=False), attrs.evolve(good, bootstrap=True)):
        log = attrs.evolve(trimmed(small_log(), 9), snapshots=(spoiled,))
        with pytest.raises(OffsetError, match="no finished snapshot"):
            made(log).image()


def test_a_snapshot_ahead_of_its_log_still_has_its_image() -> None:
    log = attrs.evolve(trimmed(small_log(), 0, 15), records=tuple(small_log()[:5]))
    source = made(log)
    assert source.image() == reference_image(small_log(), 14)
    with pytest.raises(OffsetError, match="offset 14"):
        source.image(12)


def test_local_changes_need_the_log_between_the_two_offsets() -> None:
    source = made(trimmed(small_log(), 9, 6, 15))
    with pytest.raises(OffsetError, match=r"log of a made log holds offsets 9 to 17.*after offset 5 up to 16"):
        source.local_changes(1, 5, 16)
    assert source.local_changes(1, 14, 17).changes.is_empty()


def test_from_the_empty_image_a_trimmed_log_gives_a_fresh_broker_the_same() -> None:
    whole, cut = made(MadeLog(records=tuple(small_log()))), made(trimmed(small_log(), 9, 9))
    assert whole.local_changes(1, -1, 17).to_json() == cut.local_changes(1, -1, 17).to_json()


def test_a_snapshot_file_has_one_image_and_lists_its_own_records(tmp_path: Path) -> None:
    snapshot = snapshot_of(reference_image(small_log(), 8))
    directory = write_directory(tmp_path, small_log(), snapshots=[snapshot])
    source = kraftlake.open(directory / snapshot.name)
    assert source.kind is SourceKind.SNAPSHOT
    assert source.image() == source.image(8) == reference_image(small_log(), 8)
    assert source.image(at(TIME + 10)).provenance.offset == 8
    records = [record.type for record in source.records()]
    assert (records[0], records[-1]) == ("SNAPSHOT_HEADER", "SNAPSHOT_FOOTER")
    assert [record.offset for record in source.records(1, 2)] == [1, 2]
    for offset in (7, 9):
        with pytest.raises(OffsetError, match="one image, the one at offset 8"):
            source.image(offset)
    with pytest.raises(OffsetError, match="no changes"):
        source.local_changes(1, 0, 8)
    with pytest.raises(OffsetError, match=f"offsets 0 to {len(records) - 1}"):
        source.records(len(records))


def test_a_snapshot_file_without_footer_lists_records_and_has_no_image(tmp_path: Path) -> None:
    snapshot = snapshot_of(reference_image(small_log(), 8))
    path = write_directory(tmp_path, small_log(), snapshots=[snapshot]) / snapshot.name
    footer = next(b for b in kraftlake.open(path).batches() if b.position > 0 and b.control)
    path.write_bytes(path.read_bytes()[: footer.position])
    source = kraftlake.open(path)
    assert next(iter(source.records())).type == "SNAPSHOT_HEADER"
    with pytest.raises(CorruptDataError, match=f"{snapshot.name} has no footer"):
        source.image()


def test_a_torn_tail_is_named_and_everything_before_it_is_there(tmp_path: Path) -> None:
    directory = write_directory(tmp_path, small_log(), cuts=[9])
    segment = directory / f"{9:020d}.log"
    segment.write_bytes(segment.read_bytes()[:-7])
    source = kraftlake.open(directory)
    assert source.torn is not None
    assert (source.torn.file, source.torn.offset) == (segment.name, 17)  # type: ignore[attr-defined]
    assert source.image().provenance.offset == 16
    with pytest.raises(OffsetError, match="holds offsets 0 to 16"):
        source.image(17)


def test_the_cluster_id_comes_from_beside_the_log_or_from_the_caller(tmp_path: Path) -> None:
    known = write_directory(tmp_path / "known", small_log())
    unknown = write_directory(tmp_path / "unknown", small_log(), cluster_id=None)
    assert kraftlake.open(known).cluster_id == kraftlake.open(known, cluster_id=CLUSTER).cluster_id == CLUSTER
    assert kraftlake.open(unknown).cluster_id is None
    assert kraftlake.open(unknown, cluster_id="other").cluster_id == "other"
    with pytest.raises(UsageError, match=f"is of cluster {CLUSTER}, not of cluster other"):
        kraftlake.open(known, cluster_id="other")


def test_strict_stops_and_lenient_skips_counts_and_marks_the_image_as_diverged(tmp_path: Path) -> None:
    batches = log_of(1, [metadata_version(), topic(1), partition(7)], [topic(2), partition(2)])
    source = kraftlake.open(write_directory(tmp_path, batches))
    with pytest.raises(ReplayError, match=r"(?i)offset 3"):
        source.image()
    assert source.image(2).provenance.offset == 2
    replay = source.replay(lenient=True)
    assert replay.diverged
    assert [skipped.offset for skipped in replay.skipped] == [3]
    assert set(replay.image.topics.topics_by_name()) == {"topic-1", "topic-2"}
    assert not source.replay(2, lenient=True).diverged
    changes = source.local_changes(1, 2, 5, lenient=True)
    assert ([s.offset for s in changes.skipped], len(changes.changes.leaders)) == ([3], 1)
    assert source.diff(2, 5, lenient=True).changes


def test_the_quorum_is_what_the_control_records_said_last() -> None:
    source = made(MadeLog(records=(leader_change(0, 1), no_op(1), leader_change(2, 2))))
    assert source.replay(1).quorum.leader_id == 3000
    assert source.replay(1).quorum.kraft_version == 0


def test_removed_and_created_again_is_another_topic() -> None:
    again = r.TopicRecord(name="topic-1", topic_id=uuid_of(9))
    batches = log_of(1, [topic(1), partition(1)], [r.RemoveTopicRecord(topic_id=uuid_of(1)), again])
    source = made(MadeLog(records=tuple(batches)))
    assert {str(p) for p in source.local_changes(1, 2, 4).changes.deletes} == {"topic-1-0"}


def test_an_empty_image_is_what_an_empty_log_has() -> None:
    source = made(MadeLog(records=()))
    assert list(source.records()) == []
    with pytest.raises(OffsetError, match="holds no offsets"):
        source.image(0)
    assert source.diff(-1, -1).is_empty()
    assert MetadataImage.EMPTY.is_empty()


def test_opening_imports_no_spark_and_naming_the_package_no_arrow() -> None:
    heavy = "('pyarrow', 'pyspark', 'rich')"
    code = f"import sys, kraftlake, kraftlake.replay; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "ask",
    [
        lambda source: source.image("tomorrow"),
        lambda source: source.image(1.5),
        lambda source: source.offset_at(np.datetime64("2023-11-14")),
        lambda source: source.records("1"),
        lambda source: source.changes(1, "2"),
        lambda source: source.local_changes("2", 1, 2),
        lambda source: source.diff(1, "2"),
    ],
)
def test_what_is_neither_an_offset_nor_a_time_is_refused_in_a_sentence(
    source: Source, ask: Callable[[Source], object]
) -> None:
    with pytest.raises(UsageError, match=r" is (neither an offset nor a time|not an offset|not a broker)"):
        ask(source)


def test_offsets_may_come_out_of_a_data_frame(source: Source) -> None:
    assert source.image(np.int64(7)).provenance.offset == 7
    assert [record.offset for record in source.records(np.int64(7), np.int32(8))] == [7, 8]
