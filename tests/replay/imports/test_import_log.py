"""Import: idempotent, resumable, and keeping what is known to be committed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kraftlake
from kraftlake.image.metadata_image import image_to_json
from kraftlake.kafka_files.snapshots.batches import checkpoint_batches
from kraftlake.metadata_log.append import log_commit as appending
from kraftlake.metadata_log.append.log_file import FIRST_HASH, hash_of_rows
from kraftlake.metadata_log.chain import ChainLink
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import to_rows
from kraftlake.replay.imports.import_log import ImportReport, import_source
from kraftlake.runtime.errors import (
    ImportConflictError,
    LakeError,
)
from tests.few_examples import few_examples
from tests.replay.lake_checks import holds, made, refused, tree
from tests.replay.made_logs import (
    CLUSTER,
    UNKNOWN,
    MadeLog,
    data,
    leader_change,
    log_of,
    reference_image,
    small_log,
    topic,
    trimmed,
    write_directory,
)
from tests.replay.sample_logs import copy_of, directory_of, without_first_segments


def test_a_new_lake_is_made_and_reported(lake: Path) -> None:
    report = import_source(made(trimmed(small_log(), 0, 9)), lake)
    assert report == ImportReport(
        lake=str(lake),
        source="made",
        created=True,
        from_offset=0,
        to_offset=17,
        records=18,
        batches=12,
        snapshots=1,
        already_there=0,
        before_lake=0,
        start_offset=0,
        end_offset=18,
        committed_to=9,
        cluster_id=CLUSTER,
        torn=None,
        chain=str(ChainLink(offset=17, hash=hash_of_rows(to_rows(small_log()), FIRST_HASH))),
    )
    assert report.to_json()["committed_to"] == 9
    holds(lake, small_log())
    assert lake.stat().st_mode & 0o777 == 0o700


def test_twice_is_the_same_as_once(lake: Path) -> None:
    source = made(trimmed(small_log(), 0, 9))
    import_source(source, lake)
    before = tree(lake)
    report = import_source(source, lake)
    assert tree(lake) == before
    assert (report.created, report.records, report.snapshots, report.already_there) == (False, 0, 0, 18)
    assert (report.from_offset, report.to_offset, report.committed_to) == (None, None, 9)


def test_only_what_is_new_is_appended(lake: Path) -> None:
    import_source(made(small_log()[:5]), lake)
    report = import_source(made(small_log()), lake)
    assert (report.from_offset, report.to_offset, report.records, report.already_there) == (9, 17, 9, 9)
    holds(lake, small_log())


def test_a_source_that_starts_where_the_lake_ends_goes_on(lake: Path) -> None:
    import_source(made(small_log()[:5]), lake)
    assert import_source(made(trimmed(small_log(), 9)), lake).records == 9
    holds(lake, small_log())


def test_a_source_that_the_lake_has_more_of_adds_nothing(lake: Path) -> None:
    import_source(made(small_log()), lake)
    report = import_source(made(small_log()[:5]), lake)
    assert (report.records, report.already_there, report.end_offset) == (0, 9, 18)


@pytest.mark.parametrize(
    ("batches", "snapshots", "committed_to"),
    [
        (log_of(1, [topic(1)], 2, [topic(2)]), (), 2),
        (log_of(1, [topic(1)], 2), (), 0),
        (log_of(1, [topic(1)], 2, 3, [topic(2)], 4), (), 3),
        (small_log(), (15,), 15),
        (small_log(), (6, 9), 9),
        ([leader_change(0, 1), *small_log()[1:]], (), 9),
    ],
)
def test_committed_to_is_the_newest_snapshot_or_the_last_leader_change_that_data_follows(
    batches: list[RecordBatch], snapshots: tuple[int, ...], committed_to: int, lake: Path
) -> None:
    assert import_source(made(trimmed(batches, 0, *snapshots)), lake).committed_to == committed_to


def test_a_leader_change_at_the_lakes_end_is_committed_once_data_follows(lake: Path) -> None:
    assert import_source(made(log_of(1, [topic(1)], 2)), lake).committed_to == 0
    going_on = MadeLog(records=(data(3, topic(2), epoch=2),), start_offset=3)
    assert import_source(made(going_on), lake).committed_to == 2


def test_data_of_another_epoch_does_not_commit_a_leader_change(lake: Path) -> None:
    import_source(made(log_of(1, [topic(1)], 2)), lake)
    going_on = MadeLog(records=(leader_change(3, 3), data(4, topic(2), epoch=3)), start_offset=3)
    assert import_source(made(going_on), lake).committed_to == 3


def test_a_snapshot_that_a_job_made_in_the_lake_does_not_prove_that_its_offsets_are_committed(
    lake: Path, tmp_path: Path
) -> None:
    source = made(small_log())
    committed_to = import_source(source, lake).committed_to
    image = kraftlake.open(lake).image()
    end_offset, epoch = image.provenance.offset + 1, image.provenance.epoch
    batches = checkpoint_batches(list(image.write()), epoch=epoch, timestamp=0)
    log = MetadataLog.open(lake)
    assert log.add_snapshot(SnapshotFacts(end_offset=end_offset, epoch=epoch, last_contained_log_timestamp=0), batches)
    assert committed_to < end_offset == log.end_offset
    assert import_source(source, lake).committed_to == committed_to
    assert import_source(kraftlake.open(lake), tmp_path / "copy").committed_to == committed_to


@pytest.fixture(scope="module")
def no_fsync() -> Iterator[pytest.MonkeyPatch]:
    """Spares the disk where a test isn't about power cuts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Disk, "fsync", lambda *_: None)
        yield patch


@few_examples
@given(choices=st.data())
def test_any_number_of_partial_steps_is_the_same_as_one_import(
    choices: st.DataObject, tmp_path_factory: pytest.TempPathFactory, no_fsync: pytest.MonkeyPatch
) -> None:
    whole = trimmed(small_log(), choices.draw(st.sampled_from([0, 4, 9])), 4, 9, 14, 15)
    folder = tmp_path_factory.mktemp("steps")
    counts = sorted(choices.draw(st.sets(st.integers(1, len(whole.records)), max_size=4)))
    for count in [*counts, len(whole.records)]:
        records = whole.records[:count]
        end = records[-1].last_offset + 1
        snapshots = tuple(s for s in whole.snapshots if s.end_offset <= end)
        import_source(made(attrs.evolve(whole, records=records, snapshots=snapshots)), folder / "steps")
    import_source(made(whole), folder / "once")
    steps, once = MetadataLog.open(folder / "steps"), MetadataLog.open(folder / "once")
    assert list(steps.batches()) == list(once.batches())
    assert (steps.start_offset, steps.end_offset, steps.epoch) == (once.start_offset, once.end_offset, once.epoch)
    assert steps.committed_to == once.committed_to
    assert [s.name for s in steps.snapshots()] == [s.name for s in once.snapshots()]
    assert kraftlake.open(folder / "steps").image() == reference_image(small_log())


def test_a_log_that_starts_above_zero_brings_its_snapshots_with_it(lake: Path) -> None:
    report = import_source(made(trimmed(small_log(), 9, 6, 9, 15)), lake)
    assert (report.start_offset, report.from_offset, report.snapshots, report.committed_to) == (9, 9, 2, 15)
    source = kraftlake.open(lake)
    assert [s.end_offset for s in source.snapshots] == [9, 15]
    assert source.image(8) == reference_image(small_log(), 8)
    assert source.image() == reference_image(small_log())


def test_a_log_that_starts_above_zero_without_a_snapshot_lists_its_records(lake: Path) -> None:
    import_source(made(trimmed(small_log(), 9)), lake)
    assert [record.offset for record in kraftlake.open(lake).records()] == list(range(9, 18))


def test_a_snapshot_alone_makes_a_lake_that_its_log_can_follow(lake: Path, tmp_path: Path) -> None:
    log = trimmed(small_log(), 9, 9)
    directory = write_directory(tmp_path, log.records, snapshots=log.snapshots)
    report = import_source(directory / log.snapshots[0].name, lake)
    assert (report.start_offset, report.end_offset, report.records, report.snapshots) == (9, 9, 0, 1)
    assert kraftlake.open(lake).image() == reference_image(small_log(), 8)
    assert import_source(directory, lake).records == 9
    assert kraftlake.open(lake).image() == reference_image(small_log())


def test_unfinished_and_bootstrap_snapshots_stay_out(lake: Path) -> None:
    log = trimmed(small_log(), 0, 9, 15)
    spoiled = tuple(
        attrs.evolve(s, **change)
        for s, change in zip(log.snapshots, ({"finished": False}, {"bootstrap": True}), strict=True)
    )
    assert import_source(made(attrs.evolve(log, snapshots=spoiled)), lake).snapshots == 0


def test_a_lake_can_be_imported_into_another_one_and_into_itself(lake: Path) -> None:
    import_source(made(trimmed(small_log(), 9, 9)), lake)
    other = lake.with_name("other")
    report = import_source(lake, other)
    assert (report.records, report.snapshots, report.cluster_id) == (9, 1, CLUSTER)
    assert report.committed_to == MetadataLog.open(lake).committed_to
    assert import_source(lake, lake).records == 0


def test_a_source_that_starts_below_the_lake_adds_only_what_is_behind_it(lake: Path) -> None:
    import_source(made(trimmed(small_log()[:8], 9, 9)), lake)
    report = import_source(made(small_log()), lake)
    assert (report.before_lake, report.already_there, report.end_offset) == (9, 5, 18)
    holds(lake, [batch for batch in small_log() if batch.base_offset >= 9])


def test_unknown_record_types_are_kept(lake: Path) -> None:
    batches = log_of(1, [topic(1), UNKNOWN])
    import_source(made(batches), lake)
    holds(lake, batches)


def test_a_torn_tail_is_left_out_and_reported(lake: Path) -> None:
    report = import_source(directory_of("crash-torn"), lake)
    assert report.to_offset == 3466
    assert report.torn is not None
    assert "00000000000000002265.log" in report.torn
    assert "61042" in report.torn
    assert "3467" in report.torn


def test_an_empty_folder_becomes_the_lake(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    assert import_source(made(small_log()), tmp_path / "lake").created
    holds(tmp_path / "lake", small_log())


def test_commits_are_cut_between_batches(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appending, "MAX_COMMIT_ROWS", 4)
    steps: list[tuple[str, int, int]] = []
    import_source(made(small_log()), lake, progress=lambda *args: steps.append(args))
    assert [done for phase, done, _ in steps if phase == "writing"] == [4, 8, 12, 16, 18]
    assert steps[0] == ("checking", 18, 18)
    holds(lake, small_log())
    monkeypatch.setattr(appending, "MAX_COMMIT_ROWS", 10**6)
    monkeypatch.setattr(appending, "MAX_COMMIT_BYTES", 1)
    import_source(made(small_log()), lake.with_name("by-bytes"))
    holds(lake.with_name("by-bytes"), small_log())
    assert MetadataLog.open(lake.with_name("by-bytes")).version >= len(small_log())


def test_a_disk_that_refuses_the_first_append_leaves_no_new_lake(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise LakeError("the disk is full")

    monkeypatch.setattr(MetadataLog, "append", refuse)
    refused(made(trimmed(small_log(), 9, 9)), lake, LakeError, "disk is full")
    lake.mkdir()
    refused(made(small_log()), lake, LakeError, "disk is full")


def test_a_disk_that_refuses_later_leaves_a_whole_prefix(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appending, "MAX_COMMIT_ROWS", 4)

    def stop(phase: str, done: int, total: int) -> None:
        if phase == "writing" and done == 8:
            raise LakeError("the disk is full")

    with pytest.raises(LakeError, match="disk is full"):
        import_source(made(small_log()), lake, progress=stop)
    holds(lake, small_log()[:4])
    assert import_source(made(small_log()), lake).from_offset == 8
    holds(lake, small_log())


def test_an_import_that_another_one_overtakes_is_refused_and_breaks_nothing(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appending, "MAX_COMMIT_ROWS", 4)
    inner: list[ImportReport] = []

    def overtake(phase: str, done: int, total: int) -> None:
        if phase == "writing" and not inner:
            inner.append(import_source(made(small_log()), lake))

    with pytest.raises(LakeError, match="Another writer appended"):
        import_source(made(small_log()), lake, progress=overtake)
    assert inner[0].from_offset == 4
    holds(lake, small_log())


def test_a_lake_that_another_import_has_filled_meanwhile_is_not_removed(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = MetadataLog.create.__func__  # type: ignore[attr-defined]

    def overtaken(cls: type[MetadataLog], *args: object, **options: object) -> MetadataLog:
        log: MetadataLog = create(cls, *args, **options)
        monkeypatch.undo()
        import_source(made(small_log()), lake)
        return log

    monkeypatch.setattr(MetadataLog, "create", classmethod(overtaken))
    with pytest.raises(LakeError, match="Another writer appended"):
        import_source(made(small_log()), lake)
    holds(lake, small_log())


def test_the_samples_directory_in_growing_parts_is_the_same_as_at_once(lake: Path, tmp_path: Path) -> None:
    once = lake.with_name("once")
    import_source(directory_of("kafka-4.4"), once)
    growing = copy_of("kafka-4.4", tmp_path / "growing")
    later = [growing / f"{base:020d}.log" for base in (2027, 3532, 5488)]
    held = [(path, path.read_bytes()) for path in later]
    for path in [*later, *(p for p in growing.glob("*.checkpoint") if not p.name.startswith("0" * 20))]:
        path.unlink()
    for path, content in held:
        for part in (len(content) // 3, len(content)):
            path.write_bytes(content[:part])
            import_source(growing, lake)
    import_source(directory_of("kafka-4.4"), lake)
    first, second = MetadataLog.open(once), MetadataLog.open(lake)
    assert first.rows().equals(second.rows())
    assert first.committed_to == second.committed_to == 4593
    assert [s.name for s in first.snapshots()] == [s.name for s in second.snapshots()]
    shown = [image_to_json(kraftlake.open(path).image(), show_secrets=True) for path in (once, lake)]
    assert shown[0] == shown[1]


def test_a_directory_that_lost_its_first_segments_goes_on_with_the_lake_it_was_imported_into(
    lake: Path, tmp_path: Path
) -> None:
    import_source(directory_of("kafka-4.4") / "00000000000000000000.log", lake, cluster_id="VXUoBgBGTaWWfCM4Toybuw")
    report = import_source(without_first_segments("kafka-4.4", tmp_path / "copy", 2027), lake)
    assert (report.from_offset, report.start_offset, report.committed_to) == (2027, 0, 4593)
    other = lake.with_name("other")
    import_source(directory_of("kafka-4.4") / "00000000000000000000.log", other)
    later = kraftlake.open(without_first_segments("kafka-4.4", tmp_path / "copy2", 3532))
    refused(later, other, ImportConflictError, "offsets 2027 to 3531 are missing")
