"""Help for a quorum keeps every log that may be the only one: what replaces one names the logs that have all of it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from kraftlake.diagnosis.doctor.diagnosis import diagnose
from kraftlake.diagnosis.doctor.help import Help, HelpRisk
from kraftlake.records.batch import RecordBatch
from tests.cli.running import DIRECTORY
from tests.diagnosis.doctor.made import by_check, change, log_of
from tests.docs.broken_logs import restored
from tests.replay.queries.test_quorum_report import elected, no_ops, node_at

LOG = [elected(0, 1, 1, 2, 3), *no_ops(3, 20)]
NEWEST, OLDER = "00000000000000004593-0000000002.checkpoint", "00000000000000003038-0000000002.checkpoint"


def helps(check: str, *sources: str | Path) -> Sequence[Help]:
    return by_check(diagnose(list(sources)))[check].helps


def flip(file: Path, at: int) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(content)


def damaged(folder: Path, node: int, log: Sequence[RecordBatch] = LOG) -> str:
    """A node with one wrong bit in the batch of offset 10."""
    made = node_at(folder, node, log)
    flip(Path(made) / "__cluster_metadata-0" / "00000000000000000000.log", log[8].position + 800)
    return made


def test_voters_that_are_missing_are_started_first(tmp_path: Path) -> None:
    start, restore = helps("quorum_election", node_at(tmp_path, 1, LOG), node_at(tmp_path, 101, LOG))
    assert start.action == "Start voters 2 and 3, or give their directories too."
    assert restore.risk is HelpRisk.RESTORE
    assert restore.evidence[0].things == ("voter 2", "voter 3")
    assert str(tmp_path / "node-1-None") in restore.action
    assert restore.cost.startswith("What these voters committed after offset 20 is lost.")


def test_a_damaged_log_is_fetched_again_where_a_majority_has_all_of_it(tmp_path: Path) -> None:
    (again,) = helps("unsound_log", damaged(tmp_path, 1), node_at(tmp_path, 2, LOG), node_at(tmp_path, 3, LOG))
    assert again.risk is HelpRisk.DELETE
    assert str(tmp_path / "node-1-None") in again.action
    assert [(one.things, one.reason) for one in again.evidence] == [
        (("voter 2", "voter 3"), "sound, with all offsets up to 20")
    ]


@pytest.mark.parametrize("other", [LOG[:8], LOG], ids=["one is behind", "one alone"])
def test_a_damaged_log_is_kept_where_no_majority_has_all_of_it(other: list[RecordBatch], tmp_path: Path) -> None:
    sources = [damaged(tmp_path, 1), node_at(tmp_path, 2, LOG)]
    if other is not LOG:
        sources.append(node_at(tmp_path, 3, other))
    (keep,) = helps("unsound_log", *sources)
    assert keep.action.startswith("Keep a copy of the directory")
    assert keep.risk is HelpRisk.SAFE


def test_a_damaged_log_of_which_nothing_can_be_read_is_kept(tmp_path: Path) -> None:
    """It might be the log of another quorum."""
    sources = [node_at(tmp_path, node, LOG) for node in (1, 2, 3)]
    flip(Path(sources[0]) / "__cluster_metadata-0" / "00000000000000000000.log", 70)
    (keep,) = helps("unsound_log", *sources)
    assert keep.action.startswith("Keep a copy of the directory")


def test_another_directory_is_added_as_a_voter_only_where_the_others_can_elect(tmp_path: Path) -> None:
    sources = [node_at(tmp_path, 1, LOG), node_at(tmp_path, 2, LOG), node_at(tmp_path, 3, LOG, directory=9)]
    look, remove = helps("voter_directory", *sources)
    assert look.action.startswith("Look for directory ")
    assert remove.risk is HelpRisk.REMOVE_VOTER
    assert remove.evidence[0].things == ("node 3",)
    assert "in between there are 2 voters" in remove.cost
    (look,) = helps("voter_directory", sources[2], node_at(tmp_path, 102, LOG))
    assert look.risk is HelpRisk.SAFE


def test_a_copy_of_a_lost_voters_log_gets_its_identity_where_no_leader_can_be_elected(tmp_path: Path) -> None:
    restored(tmp_path, "")
    look, name = helps("voter_directory", tmp_path / "md")
    assert look.action.startswith("Look for directory ClQ37eiQv2tWavOtD_g41g")
    assert name.risk is HelpRisk.RESTORE
    assert "directory.id=ClQ37eiQv2tWavOtD_g41g" in name.action
    assert "committed records among it" in name.cost


@pytest.mark.parametrize(
    ("missing", "base"),
    [((), OLDER), ((OLDER,), "its beginning"), ((OLDER, "00000000000000000000.log"), None)],
    ids=["an older snapshot", "the log from its beginning", "neither"],
)
def test_a_damaged_snapshot_is_moved_away_where_the_log_is_whole_without_it(
    missing: tuple[str, ...], base: str | None, tmp_path: Path
) -> None:
    md = tmp_path / "md"
    shutil.copytree(DIRECTORY, md)
    flip(md / NEWEST, (md / NEWEST).stat().st_size // 2)
    for name in missing:
        (md / name).unlink()
    diagnosis = diagnose(md)
    (help_,) = by_check(diagnosis)["unsound_log" if base else "log_stops"].helps[:1]
    assert not help_.risk.is_destructive
    if base is None:
        assert diagnosis.image is None
    else:
        assert diagnosis.offset == 5736
        assert f"is replayed from {base} on" in help_.action
        assert "move it out of the directory of the stopped node" in help_.action


def test_a_record_that_cannot_be_replayed_is_in_every_log(tmp_path: Path) -> None:
    (only,) = helps("log_stops", log_of(tmp_path, change(7, leader=1)))
    assert only.action.startswith("All nodes hold these records: no other log helps")
