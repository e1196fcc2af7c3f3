"""Every kind of commit that is made, and the checkpoints, by the Delta protocol's own requirements."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance import trimming
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from tests.metadata_log.delta_protocol import check_commits
from tests.metadata_log.log_batches import UnsyncedDisk, data_batch, snapshot_batches

DISK = UnsyncedDisk()
POLICY = UpkeepPolicy(checkpoint_after=10, keep_commits=3, compact_from=4, orphan_age_ms=0, exclusive=True)


@pytest.fixture
def log(tmp_path: Path) -> MetadataLog:
    log = MetadataLog.create(tmp_path / "lake", "cluster", "controlled", disk=DISK)
    for node in (1, 2):
        epoch = log.claim(node)
        for _ in range(10):
            log.append([data_batch(log.end_offset, 1 + log.end_offset % 3, epoch=epoch)], epoch=epoch)
    trimming.declare_stream_lag(log.path / "log", DISK, 0)
    return MetadataLog.open(log.path, disk=DISK)


def test_upkeep_trims_checkpoints_and_a_vacuum_leave_a_correct_table_at_every_stage(log: MetadataLog) -> None:
    table = log.path / "log"
    upkeep = Upkeep(log.path, attrs.evolve(POLICY, keep_commits=1_000), disk=DISK)
    commits = check_commits(table)
    for kept in (10, 20):
        batches = snapshot_batches(kept)
        log.add_snapshot(SnapshotFacts(end_offset=kept, epoch=1, last_contained_log_timestamp=kept), batches)
    assert upkeep.trim(20).files > 0
    assert check_commits(table) == commits + 3, "append-only off, the removes, append-only on"
    assert upkeep.run(force_checkpoint=True).compaction.made > 0
    assert check_commits(table) == commits + 4
    assert check_commits(log.path / "snapshots") == 3
    upkeep.vacuum()
    check_commits(table)
    epoch = MetadataLog.open(log.path, disk=DISK).claim(3)
    assert Upkeep(log.path, POLICY, disk=DISK).run(force_checkpoint=True).cleaned_up.commits > 0
    again = MetadataLog.open(log.path, disk=DISK)
    again.append([data_batch(again.end_offset, epoch=epoch)], epoch=epoch)
    assert check_commits(table) < commits
    check_commits(log.path / "snapshots")


def change(kind: str, **fields: Any) -> Callable[[list[dict[str, Any]]], None]:
    """Set fields of every action of a kind; None takes one away."""

    def change_all(actions: list[dict[str, Any]]) -> None:
        for found in (action[kind] for action in actions if kind in action):
            for name, value in fields.items():
                if value is None:
                    found.pop(name)
                else:
                    found[name] = value

    return change_all


@pytest.mark.parametrize(
    "spoil",
    [
        change("commitInfo", operation=None),
        change("add", dataChange=True),
        change("add", size="1"),
        change("add", stats='{"numRecords":1,"minValues":{"offset":0},"maxValues":{"offset":0},"nullCount":{}}'),
        change("remove", dataChange=True),
        change("remove", path="nothing"),
        change("remove", deletionTimestamp=None),
        lambda actions: actions.append(actions[-1]),
        lambda actions: actions.reverse(),
    ],
)
def test_a_compaction_that_is_not_as_the_protocol_asks_is_found(
    log: MetadataLog, spoil: Callable[[list[dict[str, Any]]], None]
) -> None:
    Upkeep(log.path, attrs.evolve(POLICY, checkpoint_after=1_000), disk=DISK).run()
    table = log.path / "log"
    check_commits(table)
    path = max((table / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    spoil(actions)
    path.write_text("\n".join(map(json.dumps, actions)))
    with pytest.raises((AssertionError, KeyError)):
        check_commits(table)


@pytest.mark.parametrize("wrong", [{"version": 1}, {"size": 2}, {"numOfAddFiles": 0}, {"sizeInBytes": 1}])
def test_a_hint_that_counts_wrongly_is_found(log: MetadataLog, wrong: dict[str, int]) -> None:
    Upkeep(log.path, POLICY, disk=DISK).run(force_checkpoint=True)
    check_commits(log.path / "log")
    hint = log.path / "log" / "_delta_log" / "_last_checkpoint"
    hint.write_text(json.dumps({**json.loads(hint.read_text()), **wrong}))
    with pytest.raises((AssertionError, KeyError)):
        check_commits(log.path / "log")
