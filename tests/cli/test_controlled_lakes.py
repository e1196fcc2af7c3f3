"""The commands that make lakes for a controller: format and fork."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest
from deltalake import DeltaTable

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.uuid import Uuid
from tests.cli.running import DIRECTORY, fault, run, run_image, run_json
from tests.metadata_log.delta_protocol import check_commits
from tests.metadata_log.log_batches import data_batch


def test_a_formatted_lake_is_empty_and_waits_for_a_controller(tmp_path: Path) -> None:
    printed = run("format", tmp_path / "lake").stdout
    log = MetadataLog.open(tmp_path / "lake")
    assert (log.role, log.start_offset, log.end_offset, log.version) == ("controlled", 0, 0, 0)
    assert log.cluster_id is not None
    assert str(Uuid.from_string(log.cluster_id)) == log.cluster_id
    assert printed == f"{tmp_path / 'lake'}: an empty controlled lake of cluster {log.cluster_id}\n"
    assert stat.S_IMODE((tmp_path / "lake").stat().st_mode) == 0o700
    assert log.claim(1) == 1
    assert "is written by a controller" in fault("import", DIRECTORY, tmp_path / "lake")


def test_a_lake_is_formatted_with_the_id_that_is_given(tmp_path: Path) -> None:
    report = run_json("format", tmp_path / "lake", "--cluster-id", "MkU3OEVBNTcwNTJENDM2Qg")
    assert report == {
        "lake": str(tmp_path / "lake"),
        "clusterId": "MkU3OEVBNTcwNTJENDM2Qg",
        "role": "controlled",
        "metadataVersion": "4.4-IV2",
    }
    assert "is not a Kafka UUID" in run("format", tmp_path / "other", "--cluster-id", "short", code=2).stderr
    assert "There is a lake" in fault("format", tmp_path / "lake")


@pytest.mark.parametrize("kind", ["lake", "directory"])
def test_a_fork_has_the_log_up_to_its_offset_and_goes_on_by_itself(tmp_path: Path, kind: str) -> None:
    source = DIRECTORY
    if kind == "lake":
        source = tmp_path / "imported"
        run("import", DIRECTORY, source)
    report = run_json("fork", source, tmp_path / "fork", "--at-offset", 4592)
    assert (report["startOffset"], report["endOffset"], report["epoch"], report["snapshots"]) == (0, 4593, 2, 2)
    assert run_image(tmp_path / "fork") == run_image(DIRECTORY, "--at-offset", 4592)
    log = MetadataLog.open(tmp_path / "fork")
    assert (log.role, log.version, log.committed_to) == ("controlled", 0, 4593)
    epoch = log.claim(3000)
    assert epoch == 3
    log.append([data_batch(4594, epoch=epoch)], epoch=epoch)
    assert run_json("verify", tmp_path / "fork")["sound"]
    assert run_json("image", source)["offset"] == 5736
    assert DeltaTable(tmp_path / "fork" / "log").to_pyarrow_table().num_rows == 4595
    assert check_commits(tmp_path / "fork" / "log") == 3
    assert "is written by a controller" in fault("import", DIRECTORY, tmp_path / "fork")


def test_a_fork_takes_the_whole_log_by_default_and_says_what_was_never_known_to_be_committed(tmp_path: Path) -> None:
    run("import", DIRECTORY, tmp_path / "imported")
    result = run("fork", tmp_path / "imported", tmp_path / "fork")
    assert "its last 1144 records below offset 5737 were committed" in result.stderr
    assert "offsets 0 to 5736, 2 snapshots, epoch 2\n" in result.stdout
    assert run_json("fork", tmp_path / "imported", tmp_path / "other", "--at-offset", 4592)["uncommitted"] == 0


def test_a_fork_that_cannot_be_made_leaves_nothing_behind(tmp_path: Path) -> None:
    inside = fault("fork", DIRECTORY, tmp_path / "fork", "--at-offset", 4590)
    assert "Offset 4590 lies inside of a batch" in inside
    assert "fork at offset 4563 or offset 4592" in inside
    assert "has no offset 9000" in fault("fork", DIRECTORY, tmp_path / "fork", "--at-offset", 9000)
    assert not (tmp_path / "fork").exists()
    damaged = tmp_path / "__cluster_metadata-0"
    shutil.copytree(DIRECTORY, damaged)
    segment = damaged / f"{3532:020d}.log"
    segment.write_bytes(segment.read_bytes()[:3000] + b"\xff" * 60 + segment.read_bytes()[3060:])
    fault("fork", damaged, tmp_path / "fork", "--at-offset", 5736)
    assert not (tmp_path / "fork").exists()


def test_a_log_that_begins_above_0_is_forked_with_the_snapshot_that_covers_its_start(tmp_path: Path) -> None:
    directory = tmp_path / "__cluster_metadata-0"
    shutil.copytree(DIRECTORY, directory)
    for base in (0, 2027):
        (directory / f"{base:020d}.log").unlink()
    (directory / "00000000000000003038-0000000002.checkpoint").unlink()
    assert "has no snapshot at or before offset 4563" in fault("fork", directory, tmp_path / "x", "--at-offset", 4563)
    report = run_json("fork", directory, tmp_path / "fork", "--at-offset", 4639)
    assert (report["startOffset"], report["endOffset"], report["snapshots"]) == (3532, 4640, 1)
    assert run_image(tmp_path / "fork") == run_image(DIRECTORY, "--at-offset", 4639)
