"""The files of a restore: whole, for their owner, and in place of nothing."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

import kraftlake
from kraftlake.image.diff import diff_images
from kraftlake.kafka_files.node.meta_properties import find_properties
from kraftlake.replay.restore import restore_files
from kraftlake.replay.restore.restore_files import write_restore
from kraftlake.replay.restore.restore_plan import RestorePlan, plan_restore
from kraftlake.runtime.errors import EnvironmentFaultError
from tests.replay.sample_logs import directory_of

VOTERS = [(number, f"c{number}", 9093) for number in (1, 2, 3)]


@pytest.fixture(scope="module")
def plan() -> RestorePlan:
    return plan_restore(kraftlake.open(directory_of("kafka-4.4")), 458, voters=VOTERS)


def test_each_voter_gets_its_identity_and_the_same_snapshot(plan: RestorePlan, tmp_path: Path) -> None:
    target = tmp_path / "restored"
    size = write_restore(plan, target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["restored"]
    assert sorted(path.name for path in target.iterdir()) == ["1", "2", "3"]
    contents = set()
    for voter in plan.voters:
        folder = target / str(voter.id)
        properties = find_properties(folder)
        assert (properties.cluster_id, properties.node_id) == (plan.cluster_id, voter.id)
        assert properties.directory_id == voter.directory_id
        assert (folder / "meta.properties").read_text().endswith("version=1\n")
        (checkpoint,) = (folder / "__cluster_metadata-0").iterdir()
        assert checkpoint.name == plan.checkpoint_name
        assert checkpoint.stat().st_size == size
        contents.add(checkpoint.read_bytes())
        assert {path.stat().st_mode & 0o077 for path in (target, folder, checkpoint.parent, checkpoint)} == {0}
    assert len(contents) == 1
    back = kraftlake.open(target / "2")
    assert diff_images(back.image(), plan.image).is_empty()
    assert back.image().provenance == plan.image.provenance
    assert back.verify().sound


def test_the_voters_of_a_dynamic_quorum_read_back(plan: RestorePlan, tmp_path: Path) -> None:
    dynamic = attrs.evolve(plan, kraft_version=1)
    write_restore(dynamic, tmp_path / "restored")
    quorum = kraftlake.open(tmp_path / "restored" / "1").replay().quorum
    assert quorum.kraft_version == 1
    assert quorum.voters == dynamic.voters_record


@pytest.mark.parametrize("what", ["file", "folder", "link"])
def test_nothing_is_overwritten(plan: RestorePlan, tmp_path: Path, what: str) -> None:
    target = tmp_path / "restored"
    match what:
        case "file":
            target.write_text("mine")
        case "folder":
            (target / "mine").mkdir(parents=True)
        case _:
            target.symlink_to(tmp_path / "nowhere")
    with pytest.raises(EnvironmentFaultError, match="exists already"):
        write_restore(plan, target)
    assert [path.name for path in tmp_path.iterdir()] == ["restored"]


def test_an_empty_folder_is_filled(plan: RestorePlan, tmp_path: Path) -> None:
    (tmp_path / "restored").mkdir()
    assert write_restore(plan, tmp_path / "restored")


def test_a_disk_that_fills_up_leaves_nothing_behind(
    plan: RestorePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(restore_files, "write_whole", full)
    with pytest.raises(EnvironmentFaultError, match="restored can't be written: No space left"):
        write_restore(plan, tmp_path / "restored")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_does_not_exist_is_named(plan: RestorePlan, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFaultError, match="does not exist"):
        write_restore(plan, tmp_path / "nowhere" / "restored")
