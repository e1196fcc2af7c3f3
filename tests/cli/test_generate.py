"""kraftlake generate: what is printed, and what can be asked of the lake afterwards."""

from __future__ import annotations

from pathlib import Path

from kraftlake.cli.commands import generate
from kraftlake.generate.plan import PATTERNS
from tests.cli.running import fault, run, run_json

SMALL = ("--topics", 4, "--partitions", 3, "--records", 900, "--quiet", 1)


def test_the_choices_are_the_patterns_there_are() -> None:
    assert generate._PATTERNS == PATTERNS


def test_what_happens_is_reported_with_its_offsets_and_can_be_looked_at(tmp_path: Path) -> None:
    report = run_json("generate", tmp_path / "lake", *SMALL)
    outage = next(episode for episode in report["episodes"] if episode["name"] == "zone-outage")
    changed = run_json("diff", tmp_path / "lake", outage["firstOffset"] - 1, outage["firstOffset"] + 5)
    assert changed["partitions"]["changed"]
    assert run_json("verify", tmp_path / "lake")["sound"]
    assert run_json("log", tmp_path / "lake", "--to", 0)["timestamp"] == 1_767_225_600_000


def test_a_person_sees_a_table_of_what_happens(tmp_path: Path) -> None:
    shown = run("generate", tmp_path / "lake", *SMALL, "--pattern", "zone-outage", "--pattern", "isr-flaps").stdout
    assert "a controlled lake of cluster" in shown
    assert "6 brokers in 3 racks, 4 topics of 3 partitions" in shown
    assert "zone-outage" in shown
    assert "rolling-restart" not in shown


def test_the_start_is_as_given(tmp_path: Path) -> None:
    report = run_json("generate", tmp_path / "lake", *SMALL, "--start", "2026-11-21T08:00:00Z")
    assert report["firstTimestamp"] == 1_795_248_000_000


def test_a_cluster_that_cannot_be_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    said = fault("generate", tmp_path / "lake", "--replication-factor", 9, code=2)
    assert said == "--replication-factor 9 needs as many brokers; --brokers is 6."
    (tmp_path / "file").touch()
    assert "is in the way" in fault("generate", tmp_path, "--topics", 1)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
