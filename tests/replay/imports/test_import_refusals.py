"""Import refuses by name and offset what does not belong into the lake, and then has changed nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

import kraftlake
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.imports.import_log import import_source
from kraftlake.runtime.errors import (
    CorruptDataError,
    ImportConflictError,
    LakeError,
    NotASourceError,
)
from tests.replay.lake_checks import made, refused
from tests.replay.made_logs import (
    CLUSTER,
    MadeLog,
    begin,
    data,
    leader_change,
    log_of,
    no_op,
    reference_image,
    small_log,
    topic,
    trimmed,
    write_directory,
)
from tests.replay.sample_logs import copy_of, directory_of


def test_a_gap_is_refused_naming_what_is_missing(lake: Path) -> None:
    import_source(made(small_log()[:4]), lake)
    refused(made(trimmed(small_log(), 9)), lake, ImportConflictError, "ends at offset 7.*offsets 8 to 8 are missing")


def test_a_source_that_ends_before_the_lake_starts_is_refused(lake: Path) -> None:
    import_source(made(trimmed(small_log(), 9, 9)), lake)
    for count in (4, 5):
        refused(made(small_log()[:count]), lake, ImportConflictError, "before the lake.*starts at offset 9")


def changed(batches: Sequence[RecordBatch], index: int, **fields: object) -> list[RecordBatch]:
    return [attrs.evolve(b, **fields) if i == index else b for i, b in enumerate(batches)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        (changed(small_log(), 4, epoch=2), r"at offset 8 \(epoch 2 in the source, epoch 1 in the lake\)"),
        (
            changed(small_log(), 6, values=data(10, begin("other"), topic(3)).values),
            r"at offset 10 \(other bytes\)",
        ),
        (changed(small_log(), 2, values=data(4, topic(1), topic(5)).values), r"at offset 5 \(other bytes\)"),
        (changed(small_log(), 3, timestamps=(5, 6)), r"at offset 6 \(another timestamp\)"),
        ([*small_log()[:2], data(4, topic(1)), *small_log()[2:]], r"at offset 5 \("),
        ([no_op(0), *small_log()[1:]], r"at offset 0 \(other record types\)"),
    ],
)
def test_any_disagreement_in_the_overlap_is_refused_naming_its_offset(
    batches: list[RecordBatch], message: str, lake: Path
) -> None:
    import_source(made(small_log()), lake)
    refused(made(batches), lake, ImportConflictError, message)


def test_a_batch_that_ends_elsewhere_is_refused_at_the_first_offset_that_only_one_has(lake: Path) -> None:
    import_source(made(log_of(1, [topic(1), topic(2)])), lake)
    refused(made(log_of(1, [topic(1)])), lake, ImportConflictError, r"at offset 2 \(the batch ends there")
    refused(made(log_of(1, [topic(1), topic(2), topic(3)])), lake, ImportConflictError, r"at offset 3 \(the batch ends")


def parted(index: int) -> list[RecordBatch]:
    """The small log, with other times from one of its batches on."""
    batches = small_log()
    for later in range(index, len(batches)):
        times = (1,) * batches[later].record_count
        batches = changed(batches, later, timestamp=1, timestamps=times)
    return batches


def test_two_histories_are_reported_with_what_each_shows_of_its_commits(lake: Path) -> None:
    import_source(made(small_log()), lake)
    assert MetadataLog.open(lake).committed_to == 9
    both = (
        r"two histories, with the same batches up to offset 7: the source alone has offsets 8 to 17 .*, committed by "
    )
    both += r"its own quorum up to offset 9 at least, and the lake alone has .*, committed .* 9 at least; keep both"
    refused(made(parted(4)), lake, ImportConflictError, both)
    neither = (
        "the source alone has .* nothing in it shows .*, and the lake alone has .* nothing in it shows .*; keep both"
    )
    refused(made(parted(6)), lake, ImportConflictError, neither)
    refused(made(parted(0)), lake, ImportConflictError, "with no batch in common")


def test_a_lake_that_took_what_a_deposed_leader_wrote_is_reported(lake: Path) -> None:
    start = log_of(1, [topic(1)])
    import_source(made([*start, no_op(2), no_op(3)]), lake)
    later = made([*start, leader_change(2, 2), no_op(3, epoch=2)])
    refused(later, lake, ImportConflictError, "at offset 2 .*the lake may end with what a deposed leader wrote")


def test_nothing_right_after_a_snapshot_is_known_to_be_committed(lake: Path) -> None:
    import_source(made(trimmed(small_log(), 0, 15)), lake)
    alone = "the lake alone has offsets {} .*, {}"
    for index, offset, shown in ((9, 15, "nothing in it"), (8, 14, "committed by its own quorum up to offset 14")):
        refused(made(parted(index)), lake, ImportConflictError, alone.format(f"{offset} to 17", shown))


def test_a_batch_that_was_changed_after_it_was_written_is_no_second_history(lake: Path) -> None:
    import_source(made(small_log()), lake)
    for index, offset, again in ((1, 1, 4), (4, 8, 9), (6, 10, 12)):
        other = changed(small_log(), index, timestamp=1, timestamps=(1,) * small_log()[index].record_count)
        message = f"at offset {offset} .*the same again from offset {again} on, so one of them was changed"
        refused(made(other), lake, ImportConflictError, message)


def test_an_epoch_below_the_lakes_is_refused(lake: Path) -> None:
    import_source(made(log_of(5, [topic(1)])), lake)
    older = MadeLog(records=(no_op(2, epoch=4),), start_offset=2)
    refused(made(older), lake, ImportConflictError, "epoch 4 at offset 2, but the lake has epoch 5")


def test_another_cluster_is_refused_by_its_id(lake: Path, tmp_path: Path) -> None:
    import_source(made(small_log()), lake)
    other = made(small_log(), cluster_id="other")
    refused(other, lake, ImportConflictError, f"of cluster other, but the lake.*of cluster {CLUSTER}")
    nameless = kraftlake.open(write_directory(tmp_path, small_log(), cluster_id=None))
    refused(nameless, lake, ImportConflictError, "of cluster other", cluster_id="other")
    assert import_source(nameless, lake).cluster_id == CLUSTER


def test_another_snapshot_of_the_same_offsets_is_refused(lake: Path) -> None:
    log = trimmed(small_log(), 9, 9)
    import_source(made(log), lake)
    other = attrs.evolve(log, snapshots=(attrs.evolve(log.snapshots[0], epoch=2),))
    refused(made(other), lake, ImportConflictError, "offsets below 9 is of epoch 2.*epoch 1 in the lake")


def test_a_snapshot_whose_epoch_is_not_the_logs_is_unsound(lake: Path) -> None:
    log = trimmed(small_log(), 0, 9)
    other = attrs.evolve(log, snapshots=(attrs.evolve(log.snapshots[0], epoch=7),))
    refused(made(other), lake, CorruptDataError, "offset 8 is of epoch 7, but the log has it in epoch 1")


def test_two_snapshots_of_the_same_offsets_are_unsound(lake: Path) -> None:
    log = trimmed(small_log(), 9, 9)
    twins = (log.snapshots[0], attrs.evolve(log.snapshots[0], epoch=2))
    refused(made(attrs.evolve(log, snapshots=twins)), lake, CorruptDataError, "two snapshots of the offsets below 9")


def test_a_controlled_lake_takes_no_imports(lake: Path) -> None:
    MetadataLog.create(lake, cluster_id=CLUSTER, role="controlled")
    refused(made(small_log()), lake, LakeError, r"is written by a controller \(controlled\)")


def test_an_unsound_source_makes_no_lake_and_leaves_an_old_one_alone(lake: Path, tmp_path: Path) -> None:
    directory = copy_of("kafka-4.4", tmp_path / "copy")
    segment = directory / "00000000000000002027.log"
    spoiled = bytearray(segment.read_bytes())
    spoiled[40_000] ^= 1
    segment.write_bytes(bytes(spoiled))
    refused(kraftlake.open(directory), lake, CorruptDataError, "00000000000000002027.log")
    import_source(directory_of("kafka-4.4").parent / "__cluster_metadata-0" / "00000000000000000000.log", lake)
    refused(kraftlake.open(directory), lake, CorruptDataError, "00000000000000002027.log")


def test_a_missing_segment_is_a_gap_naming_the_offsets(lake: Path, tmp_path: Path) -> None:
    directory = copy_of("kafka-4.4", tmp_path / "copy")
    (directory / "00000000000000003532.log").unlink()
    refused(kraftlake.open(directory), lake, CorruptDataError, "offsets 3532 to 5487 are missing")


def test_a_record_that_is_no_metadata_record_makes_no_lake(lake: Path) -> None:
    refused(made(log_of(1, [topic(1), b"\x07junk"])), lake, CorruptDataError, "offset 2 is no metadata record")


def test_what_is_no_source_is_refused(lake: Path, tmp_path: Path) -> None:
    for place in (tmp_path / "missing", tmp_path):
        with pytest.raises(NotASourceError):
            import_source(place, lake)
    assert not lake.exists()


def test_a_snapshot_without_its_name_has_an_image_but_makes_no_lake(lake: Path, tmp_path: Path) -> None:
    log = trimmed(small_log(), 9, 9)
    path = write_directory(tmp_path, log.records, snapshots=log.snapshots) / log.snapshots[0].name
    renamed = kraftlake.open(path.rename(tmp_path / "copy.bin"))
    assert renamed.image().topics == reference_image(small_log(), 8).topics
    refused(renamed, lake, NotASourceError, r"copy.bin holds nothing to make a lake of.*END-EPOCH.checkpoint")
    bootstrap = directory_of("kafka-4.4") / "00000000000000000000-0000000000.checkpoint"
    refused(kraftlake.open(bootstrap), lake, NotASourceError, "no bootstrap input")


def test_an_empty_log_makes_no_lake(lake: Path) -> None:
    refused(made([]), lake, NotASourceError, "holds nothing to make a lake of")


def test_a_place_where_no_lake_can_be_made_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("precious")
    read: list[int] = []

    class Unread(MadeLog):
        def batches(self, from_offset: int = 0, to_offset: int | None = None):  # type: ignore[no-untyped-def]
            read.append(from_offset)
            return super().batches(from_offset, to_offset)

    source = made(Unread(records=tuple(small_log())))
    for place in (tmp_path / "full", tmp_path / "full" / "file"):
        refused(source, place, LakeError, "is in the way and no lake")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "log").symlink_to(tmp_path / "full")
    with pytest.raises(LakeError, match="is in the way and no lake"):
        import_source(source, tmp_path / "linked")
    with pytest.raises(LakeError, match=r"the folder .*nowhere does not exist"):
        import_source(source, tmp_path / "nowhere" / "lake")
    assert read == []
