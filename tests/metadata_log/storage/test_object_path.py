"""Lakes in an object store that is kept in memory: what is asked of the store, without a server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kraftlake.metadata_log.delta_table import delta_log
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.delta_table.table_state import commit_path
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.checkpointing import checkpoint_if_due
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.metadata_log.storage.disk import ObjectStoreDisk
from kraftlake.metadata_log.storage.object_path import ObjectPath
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.reading.replay_base import choose_base
from kraftlake.runtime.errors import LakeError
from tests.metadata_log.log_batches import TIME, data_batch, snapshot_batches

PLACE = "s3://bucket/lakes/lake"


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[MetadataLog]:
    """A lake of eight appends with a checkpoint behind the fourth."""
    from obstore.store import MemoryStore

    store = MemoryStore()
    monkeypatch.setattr(ObjectPath, "store", property(lambda _: store))
    log = MetadataLog.create(PLACE)
    for offset in range(8):
        if offset == 4:
            checkpoint_if_due(log.path / "log", ObjectStoreDisk(), UpkeepPolicy(), force=True)
        log.append([data_batch(offset)])
    return log


def test_names_are_listed_from_one_on(log: MetadataLog) -> None:
    folder = log.path / "log" / "_delta_log"
    assert isinstance(folder, ObjectPath)
    after = [path.name for path in folder.iterdir(after=f"{6:020d}.json")]
    assert after == [f"{7:020d}.json", f"{8:020d}.json", "_last_checkpoint"]
    assert delta_log.list_log(folder, after=6) == ([7, 8], {})
    assert len(list(folder.iterdir())) == 9 + 2


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_commits_lost_in_a_row_in_an_object_store_are_named(log: MetadataLog, lost: int) -> None:
    for version in range(5, 5 + lost):
        ObjectStoreDisk().unlink(commit_path(log.path / "log", version))
    with pytest.raises(LakeError, match=r"Version 5 of the Delta table .* is missing although a later one exists"):
        read_table(log.path / "log")


def test_opening_in_an_object_store_lists_what_follows_the_newest_version_only(
    log: MetadataLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    list_log = delta_log.list_log

    def noted(folder: ObjectPath, *, after: int = -1) -> object:
        asked.append(after)
        return list_log(folder, after=after)

    monkeypatch.setattr(delta_log, "list_log", noted)
    assert MetadataLog.open(PLACE).end_offset == 8
    assert asked == [8]


def test_a_handle_can_read_its_checkpoint_after_that_was_cleaned_up(
    log: MetadataLog,
) -> None:
    disk, table = ObjectStoreDisk(), log.path / "log"
    reader, writer = MetadataLog.open(PLACE), MetadataLog.open(PLACE)
    for checkpoint in delta_log.list_log(table / "_delta_log")[1][4]:
        disk.unlink(checkpoint)
    for version in range(5):
        disk.unlink(commit_path(table, version))
    assert reader.rows().num_rows == 8
    writer.append([data_batch(8)])
    assert reader.refresh() == 1
    assert reader.rows().num_rows == 9


def test_a_listing_of_snapshots_takes_no_request_for_each_of_them(
    log: MetadataLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = [2, 4, 6, 8]
    for end_offset in ends:
        facts = SnapshotFacts(end_offset=end_offset, epoch=1, last_contained_log_timestamp=TIME)
        log.add_snapshot(facts, snapshot_batches(end_offset))
    asked: list[str] = []
    for request in ("_head", "open"):
        made = getattr(ObjectPath, request)
        monkeypatch.setattr(
            ObjectPath, request, lambda path, *more, made=made: asked.append(path.name) or made(path, *more)
        )
    reader = LakeReader(MetadataLog.open(PLACE))
    assert [found.end_offset for found in reader.snapshots] == ends
    assert not [name for name in asked if name.endswith(".parquet")]
    (newest,) = reader.snapshots[-1].data_paths
    ObjectStoreDisk().unlink(newest)
    base = choose_base(reader, 7)
    assert base is not None
    assert base.end_offset == 6
