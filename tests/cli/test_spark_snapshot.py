"""`kraftlake spark snapshot` says which snapshot the lake has now."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftlake.metadata_log.log import MetadataLog
from tests.cli.running import fault, run, run_json
from tests.tables.sample_log import lake_of


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_snapshot_is_built_once_and_reported_in_words_and_as_json(tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", commits=2, last=900)
    log = MetadataLog.open(tmp_path / "lake")
    report = run_json("spark", "snapshot", tmp_path / "lake", "--at-offset", 400)
    (snapshot,) = log.snapshots()
    assert report == {
        "name": snapshot.name,
        "offset": 400,
        "epoch": snapshot.epoch,
        "records": snapshot.record_count,
        "topics": report["topics"],
        "partitions": report["partitions"],
        "written": True,
        "from": None,
    }
    shown = run("spark", "snapshot", tmp_path / "lake").stdout
    assert f"from {snapshot.name} to offset {log.end_offset - 1}" in shown
    assert log.snapshots()[1].name in shown
    assert "was there already" in run("spark", "snapshot", tmp_path / "lake", "--at-offset", 400).stdout


def test_where_there_is_no_lake_no_jvm_is_started(tmp_path: Path) -> None:
    assert "nowhere" in fault("spark", "snapshot", tmp_path / "nowhere")


def test_an_offset_that_the_lake_does_not_have_is_refused_without_a_jvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # where no JVM could be started
    lake_of(tmp_path / "lake", commits=1, last=73)
    sentence = fault("spark", "snapshot", tmp_path / "lake", "--at-offset", 999_999)
    assert sentence.startswith("Offset 999999 is past the end of")
    assert "offsets 0 to 73" in sentence
    assert "the lowest is 0" in fault("spark", "snapshot", tmp_path / "lake", "--at-offset", -1, code=2)


def test_what_is_no_number_is_refused_in_words(tmp_path: Path) -> None:
    sentence = fault("spark", "all", tmp_path, "--max-records-per-trigger", "many", code=2)
    assert "'many' is not a valid whole number" in sentence
