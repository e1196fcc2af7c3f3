from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, write_deltalake

from kraftlake.metadata_log.delta_table.commit import UnknownOutcomeError
from kraftlake.metadata_log.delta_table.table_state import commit_path
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import LeaderChangeMessage
from kraftlake.records.rows import to_rows
from kraftlake.runtime.errors import CorruptDataError, EndOffsetError, FencedEpochError, LakeError, UsageError
from tests.metadata_log.log_batches import TIME, data_batch

HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    MetadataLog.create(tmp_path / "lake", "cluster", role="controlled")
    return tmp_path / "lake"


def claimed(lake: Path, node_id: int = 1, disk: Disk | None = None) -> tuple[MetadataLog, int]:
    log = MetadataLog.open(lake, disk=disk)
    return log, log.claim(node_id)


def bases(lake: Path) -> list[tuple[int, int]]:
    return [(batch.base_offset, batch.epoch) for batch in MetadataLog.open(lake).batches()]


def commit_by_hand(lake: Path, *actions: dict[str, Any]) -> None:
    version = MetadataLog.open(lake).version + 1
    commit_path(lake / "log", version).write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def metadata_with(lake: Path, **changes: str) -> dict[str, Any]:
    first = (lake / "log" / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    (metadata,) = [json.loads(line) for line in first if '"metaData"' in line]
    metadata["metaData"]["configuration"].update({name.replace("__", "."): value for name, value in changes.items()})
    return metadata


def test_a_claim_commits_the_leader_change_of_the_next_epoch(lake: Path) -> None:
    log = MetadataLog.open(lake)
    assert log.claim(7, timestamp=TIME) == 1
    (batch,) = MetadataLog.open(lake).batches()
    assert (batch.base_offset, batch.epoch, batch.control, batch.timestamp) == (0, 1, True, TIME)
    (message,) = [part.message for part in batch.messages()]
    assert isinstance(message, LeaderChangeMessage)
    assert (message.leader_id, [voter.voter_id for voter in message.voters]) == (7, [7])
    assert log.claim(8) == 2
    assert bases(lake) == [(0, 1), (1, 2)]


def test_a_claimed_epoch_appends_where_the_log_ends(lake: Path) -> None:
    log, epoch = claimed(lake)
    log.append([data_batch(1, 3, epoch=epoch)], epoch=epoch, expected_end_offset=1)
    log.append([data_batch(4, epoch=epoch), data_batch(5, epoch=epoch)], epoch=epoch)
    assert bases(lake) == [(0, 1), (1, 1), (4, 1), (5, 1)]
    assert log.committed_to == log.end_offset == 6


@pytest.mark.parametrize("stale", [True, False])
def test_a_fenced_writer_gets_both_epochs_and_never_writes_again(lake: Path, stale: bool) -> None:
    log, epoch = claimed(lake)
    other, higher = claimed(lake, 2)
    if not stale:
        log.refresh()
    other.append([data_batch(2, epoch=higher)], epoch=higher)
    before = bases(lake)
    for offset in (1, 2, 3, MetadataLog.open(lake).end_offset):
        with pytest.raises(FencedEpochError, match="Epoch 1 is fenced: epoch 2 was claimed after it") as caught:
            log.append([data_batch(offset, epoch=epoch)], epoch=epoch, expected_end_offset=offset)
        assert (caught.value.epoch, caught.value.current_epoch) == (1, 2)
    with pytest.raises(FencedEpochError):
        log.append([], epoch=epoch)
    with pytest.raises(FencedEpochError):
        MetadataLog.open(lake).append([data_batch(3, epoch=epoch)], epoch=epoch)
    assert bases(lake) == before


def test_a_fenced_append_leaves_no_file_behind(lake: Path) -> None:
    log, epoch = claimed(lake)
    claimed(lake, 2)
    files = sorted((lake / "log").glob("*.parquet"))
    with pytest.raises(FencedEpochError):
        log.append([data_batch(1, epoch=epoch)], epoch=epoch, expected_end_offset=1)
    assert sorted((lake / "log").glob("*.parquet")) == files


def test_an_epoch_that_nobody_claimed_appends_nothing(lake: Path) -> None:
    log, _ = claimed(lake)
    with pytest.raises(LakeError, match="Epoch 2 was never claimed"):
        log.append([data_batch(1, epoch=2)], epoch=2)
    with pytest.raises(LakeError, match="A writer of epoch 1 can't append batches of epoch 2"):
        log.append([data_batch(1, epoch=1), data_batch(2, epoch=2)], epoch=1)
    assert bases(lake) == [(0, 1)]


@pytest.mark.parametrize("epochs", [(2,), (1, 2), (2, 2)])
@pytest.mark.parametrize("form", [list, to_rows])
def test_batches_of_a_higher_epoch_than_the_claimed_one_are_refused_in_every_form(
    lake: Path, form: Callable[[list[RecordBatch]], Any], epochs: tuple[int, ...]
) -> None:
    log, epoch = claimed(lake)
    batches = [data_batch(offset, epoch=of) for offset, of in enumerate(epochs, 1)]
    with pytest.raises(LakeError, match="A writer of epoch 1 can't append batches of epoch 2"):
        log.append(form(batches), epoch=epoch)
    assert bases(lake) == [(0, 1)]
    assert (MetadataLog.open(lake).epoch, log.claim(1)) == (1, 2)


def test_a_writer_that_is_wrong_about_the_end_learns_where_it_is(lake: Path) -> None:
    log, epoch = claimed(lake)
    twin = MetadataLog.open(lake)
    twin.append([data_batch(1, 2, epoch=epoch)], epoch=epoch)
    with pytest.raises(EndOffsetError, match="begin at offset 1, but the log ends at 3") as caught:
        log.append([data_batch(1, epoch=epoch)], epoch=epoch, expected_end_offset=1)
    assert (caught.value.expected, caught.value.actual) == (1, 3)
    log.append([data_batch(3, epoch=epoch)], epoch=epoch, expected_end_offset=3)
    assert MetadataLog.open(lake).end_offset == 4


def test_a_claim_may_insist_on_the_end_of_the_log_and_maintenance_does_not_move_it(lake: Path) -> None:
    other, epoch = claimed(lake)
    late = MetadataLog.open(lake)
    other.append([data_batch(1, 2, epoch=epoch)], epoch=epoch)
    with pytest.raises(EndOffsetError) as caught:
        late.claim(2, expected_end_offset=1)
    assert (caught.value.expected, caught.value.actual) == (1, 3)
    commit_by_hand(lake, metadata_with(lake, delta__logRetentionDuration="interval 7 days"))
    assert late.claim(2, expected_end_offset=3) == 2


def test_a_claim_that_insists_on_the_end_of_the_log_gives_up_when_another_is_first(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MetadataLog.open(lake)
    refresh = log.refresh

    def overtaken() -> int:
        found = refresh()
        monkeypatch.undo()
        claimed(lake, 2)
        return found

    monkeypatch.setattr(log, "refresh", overtaken)
    with pytest.raises(EndOffsetError):
        log.claim(1, expected_end_offset=0)
    assert bases(lake) == [(0, 1)]


def test_each_role_has_its_own_way_to_append(tmp_path: Path, lake: Path) -> None:
    with pytest.raises(LakeError, match="is a controlled lake: an append states the epoch"):
        MetadataLog.open(lake).append([data_batch(0)])
    imported = MetadataLog.create(tmp_path / "imported")
    with pytest.raises(LakeError, match=r"is an imported lake.*`kraftlake fork` makes a controlled copy"):
        imported.claim(1)
    with pytest.raises(LakeError, match="is an imported lake"):
        imported.append([data_batch(0)], epoch=1)
    assert (imported.refresh(), MetadataLog.open(lake).end_offset) == (0, 0)


def compact(lake: Path) -> None:
    table = DeltaTable(lake / "log")
    table.optimize.compact(post_commithook_properties=HOOKS)


def set_a_property(lake: Path) -> None:
    commit_by_hand(lake, metadata_with(lake, delta__logRetentionDuration="interval 7 days"))


def trim(lake: Path) -> None:
    first = json.loads(next(line for line in commit_path(lake / "log", 1).read_text().splitlines() if '"add"' in line))[
        "add"
    ]
    commit_by_hand(lake, metadata_with(lake, delta__appendOnly="false", kraftlake__log_start_offset="1"))
    remove = {"path": first["path"], "deletionTimestamp": TIME, "dataChange": True}
    commit_by_hand(lake, {"remove": remove})
    commit_by_hand(lake, metadata_with(lake, kraftlake__log_start_offset="1"))


def clean_up(lake: Path) -> None:
    compact(lake)
    table = DeltaTable(lake / "log")
    table.create_checkpoint()
    for version in range(table.version() + 1):
        commit_path(lake / "log", version).unlink()


@pytest.mark.parametrize("maintain", [compact, set_a_property, trim, clean_up])
def test_maintenance_in_between_is_no_conflict(lake: Path, maintain: Callable[[Path], None]) -> None:
    log, epoch = claimed(lake)
    log.append([data_batch(1, epoch=epoch)], epoch=epoch)
    before = MetadataLog.open(lake).version
    maintain(lake)
    made = MetadataLog.open(lake).version - before
    assert made > 0
    log.append([data_batch(2, epoch=epoch)], epoch=epoch, expected_end_offset=2)
    assert MetadataLog.open(lake).version == before + made + 1
    assert bases(lake)[-2:] == [(1, 1), (2, 1)]


def foreign_append(lake: Path) -> None:
    write_deltalake(lake / "log", to_rows([data_batch(2)]), mode="append")


def foreign_transaction(lake: Path) -> None:
    rows = to_rows([data_batch(2)]).slice(0, 0)
    properties = CommitProperties(app_transactions=[])
    write_deltalake(lake / "log", rows, mode="append", commit_properties=properties)
    commit_by_hand(lake, {"txn": {"appId": "somebody", "version": 1, "lastUpdated": TIME}})


def another_role(lake: Path) -> None:
    commit_by_hand(lake, metadata_with(lake, kraftlake__role="imported"))


def another_cluster(lake: Path) -> None:
    commit_by_hand(lake, metadata_with(lake, kraftlake__cluster_id="other"))


def a_start_beyond_the_end(lake: Path) -> None:
    commit_by_hand(lake, metadata_with(lake, kraftlake__log_start_offset="100"))


def a_live_file_removed(lake: Path) -> None:
    (add,) = [
        json.loads(line)["add"] for line in commit_path(lake / "log", 2).read_text().splitlines() if '"add"' in line
    ]
    commit_by_hand(lake, {"remove": {"path": add["path"], "deletionTimestamp": TIME, "dataChange": True}})


@pytest.mark.parametrize(
    "meddle",
    [foreign_append, foreign_transaction, another_role, another_cluster, a_start_beyond_the_end, a_live_file_removed],
)
def test_anything_else_in_between_stops_the_append(lake: Path, meddle: Callable[[Path], None]) -> None:
    log, epoch = claimed(lake)
    log.append([data_batch(1, epoch=epoch)], epoch=epoch)
    meddle(lake)
    version = DeltaTable(lake / "log").version()
    with pytest.raises(LakeError):
        log.append([data_batch(2, epoch=epoch)], epoch=epoch, expected_end_offset=2)
    assert DeltaTable(lake / "log").version() == version


def rows_at(*offsets: int) -> pa.Table:
    return pa.concat_tables([to_rows([data_batch(offset)]) for offset in offsets])


def rows_below_the_start(lake: Path) -> None:
    commit_by_hand(lake, metadata_with(lake, kraftlake__log_start_offset="2"))
    first = json.loads(next(line for line in commit_path(lake / "log", 1).read_text().splitlines() if '"add"' in line))
    second = json.loads(next(line for line in commit_path(lake / "log", 2).read_text().splitlines() if '"add"' in line))
    commit_by_hand(lake, *({"remove": {"path": each["add"]["path"], "dataChange": True}} for each in (first, second)))
    write_deltalake(lake / "log", rows_at(1), mode="append")


FOREIGN = {
    "behind the end": lambda lake: write_deltalake(lake / "log", rows_at(2), mode="append"),
    "far behind the end": lambda lake: write_deltalake(lake / "log", rows_at(1_000), mode="append"),
    "at the end, overlapping it": lambda lake: write_deltalake(lake / "log", rows_at(1, 2), mode="append"),
    "a second time": lambda lake: write_deltalake(lake / "log", rows_at(1), mode="append"),
    "below the start": rows_below_the_start,
}


@pytest.mark.parametrize("stats", [True, False])
@pytest.mark.parametrize("checkpointed", [True, False])
@pytest.mark.parametrize("where", FOREIGN)
def test_nothing_is_claimed_or_appended_over_the_rows_of_another_writer(
    lake: Path, where: str, checkpointed: bool, stats: bool
) -> None:
    log, epoch = claimed(lake)
    log.append([data_batch(1, epoch=epoch)], epoch=epoch)
    refreshed = MetadataLog.open(lake)
    refreshed.append([], epoch=epoch)
    FOREIGN[where](lake)
    if not stats:
        path = commit_path(lake / "log", DeltaTable(lake / "log").version())
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            action.get("add", {}).pop("stats", None)
        path.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    refreshed.refresh()
    if checkpointed:
        DeltaTable(lake / "log").create_checkpoint()
    version = DeltaTable(lake / "log").version()
    opened = MetadataLog.open(lake)
    assert opened.end_offset == 2
    batch = data_batch(2, epoch=epoch)
    for write in (
        lambda: opened.claim(2),
        lambda: MetadataLog.open(lake).append([batch], epoch=epoch, expected_end_offset=2),
        lambda: refreshed.append([batch], epoch=epoch, expected_end_offset=2),
        lambda: refreshed.claim(1),
    ):
        with pytest.raises(CorruptDataError, match="something else than kraftlake wrote to it"):
            write()
    assert DeltaTable(lake / "log").version() == version


def test_a_table_that_asks_for_more_of_its_writers_in_between_stops_the_append(lake: Path) -> None:
    log, epoch = claimed(lake)
    commit_by_hand(lake, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}})
    with pytest.raises(LakeError, match="asks its writers for Delta protocol 4"):
        log.append([data_batch(1, epoch=epoch)], epoch=epoch)
    assert bases(lake) == [(0, 1)]


class DoubtfulDisk(Disk):
    """A disk whose next link reports a time-out, done or not, after which the commit can't be read for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden: Path | None = None
        self.doubt: str | None = None

    def link(self, source: Path, target: Path) -> None:
        doubt, self.doubt = self.doubt, None
        if doubt != "not done":
            super().link(source, target)
        if doubt is not None:
            if doubt == "unreadable":
                self.hidden = target.rename(target.with_suffix(".hidden"))
                target.mkdir()
            raise OSError(errno.ETIMEDOUT, "Connection timed out")

    def show(self) -> None:
        assert self.hidden is not None
        target = self.hidden.with_suffix(".json")
        target.rmdir()
        self.hidden.rename(target)


def test_a_commit_that_timed_out_but_was_made_counts_as_made(lake: Path) -> None:
    disk = DoubtfulDisk()
    log, epoch = claimed(lake, disk=disk)
    disk.doubt = "done"
    log.append([data_batch(1, epoch=epoch)], epoch=epoch)
    assert bases(lake) == [(0, 1), (1, 1)]


def test_a_commit_that_timed_out_and_was_not_made_is_refused(lake: Path) -> None:
    disk = DoubtfulDisk()
    log, epoch = claimed(lake, disk=disk)
    disk.doubt = "not done"
    with pytest.raises(LakeError, match="Connection timed out; the lake is as it was"):
        log.append([data_batch(1, epoch=epoch)], epoch=epoch)
    assert bases(lake) == [(0, 1)]
    log.append([data_batch(1, epoch=epoch)], epoch=epoch)
    assert bases(lake) == [(0, 1), (1, 1)]


def test_an_outcome_that_is_unknown_at_first_is_found_by_the_commits_id_later(lake: Path) -> None:
    disk = DoubtfulDisk()
    log, epoch = claimed(lake, disk=disk)
    disk.doubt = "unreadable"
    with pytest.raises(UnknownOutcomeError, match="may have been written") as caught:
        log.append([data_batch(1, epoch=epoch)], epoch=epoch)
    with pytest.raises(LakeError, match="can't be read"):
        log.outcome(caught.value)
    disk.show()
    assert log.outcome(caught.value) is True
    with pytest.raises(EndOffsetError):
        log.append([data_batch(1, epoch=epoch)], epoch=epoch, expected_end_offset=1)
    other = UnknownOutcomeError(commit_path(lake / "log", 1), "an id of nobody", OSError("no reply"))
    assert log.outcome(other) is False
    other = UnknownOutcomeError(commit_path(lake / "log", 3), "an id of nobody", OSError("no reply"))
    assert log.outcome(other) is None


def test_a_last_fsync_that_fails_leaves_the_outcome_unknown(lake: Path) -> None:
    class Failing(Disk):
        is_linked = False

        def link(self, source: Path, target: Path) -> None:
            super().link(source, target)
            self.is_linked = True

        def fsync(self, path: Path) -> None:
            if self.is_linked:
                raise OSError(errno.EIO, "Input/output error")
            super().fsync(path)

    _, epoch = claimed(lake)
    log = MetadataLog.open(lake, disk=Failing())
    with pytest.raises(UnknownOutcomeError, match="Input/output error"):
        log.append([data_batch(1, epoch=epoch)], epoch=epoch)


def test_the_durability_is_stated_and_known(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr("os.fsync", synced.append)
    log = MetadataLog.open(lake, durability="os")
    epoch = log.claim(1)
    log.append([data_batch(1, epoch=epoch)], epoch=epoch)
    assert not synced
    MetadataLog.open(lake, durability="fsync").append([data_batch(2, epoch=epoch)], epoch=epoch)
    assert len(synced) == 5, "the rows, their folder, the commits of others, this commit, and its name"
    with pytest.raises(UsageError, match="'none' is no durability: it is one of fsync, os"):
        MetadataLog.open(lake, durability="none")  # type: ignore[arg-type]


def test_a_claim_between_another_claims_read_and_commit_gets_the_later_epoch(lake: Path) -> None:
    class Overtaken(Disk):
        overtaken = False

        def link(self, source: Path, target: Path) -> None:
            if not self.overtaken:
                self.overtaken = True
                claimed(lake, 2)
            super().link(source, target)

    _, epoch = claimed(lake, disk=Overtaken())
    assert epoch == 2
    assert bases(lake) == [(0, 1), (1, 2)]


def test_rows_of_an_arrow_table_can_be_appended_too(lake: Path) -> None:
    log, epoch = claimed(lake)
    rows: pa.Table = to_rows([data_batch(1, 2, epoch=epoch)])
    log.append(rows, epoch=epoch)
    assert MetadataLog.open(lake).rows(1, 2).equals(rows)
