from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kraftlake.tables.jobs import ALL
from tests.cli.running import DIRECTORY, ROOT, fault, run, run_json
from tests.tables.sample_log import LAST_OFFSET, append_in, batches_between, lake_of


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    run("import", DIRECTORY, tmp_path / "lake")
    return tmp_path / "lake"


def test_tables_are_brought_up_to_date_and_the_counts_are_shown(lake: Path) -> None:
    form = run_json("tables", lake, "events", "partition_history")
    assert (form["from"], form["offset"], form["snapshots"]) == (-1, LAST_OFFSET, [])
    assert {*form["rows"]} == {"events", "partition_history"}
    assert form["openRows"] == {"partition_history": 221}
    printed = run("tables", lake).stdout
    assert "replayed  offsets 0 to 5736" in printed
    assert all(f"{name}/" in printed for name in ALL.tables)
    assert "all was replayed before" in run("tables", lake).stdout


def test_what_is_asked_wrongly_is_refused_in_one_sentence(lake: Path, tmp_path: Path) -> None:
    assert "'event' is no derived table: it is one of" in fault("tables", lake, "event", code=2)
    assert "--poll belongs to --follow" in fault("tables", lake, "--poll", 1, code=2)
    assert "is no lake" in fault("tables", tmp_path / "none") or "no lake" in fault("tables", tmp_path / "none")


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_following_ends_in_order_at_a_signal(tmp_path: Path, end: signal.Signals) -> None:
    lake = tmp_path / "lake"
    log = lake_of(lake, commits=1, last=3500)
    words = [
        sys.executable,
        "-m",
        "kraftlake.cli",
        "tables",
        str(lake),
        "events",
        "--follow",
        "--poll",
        "0.05",
        "--json",
    ]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ}) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        assert (first["firstOffset"], first["offset"]) == (0, log.end_offset - 1)
        append_in(log, 1, batches_between(log.end_offset, LAST_OFFSET))
        second = json.loads(process.stdout.readline())
        assert (second["firstOffset"], second["offset"]) == (first["offset"] + 1, LAST_OFFSET)
        process.send_signal(end)
        assert process.stdout.read() == ""
    assert process.returncode == 128 + end
    assert run_json("tables", lake, "events")["batches"] == 0
    made = first["rows"]["events"] + second["rows"]["events"]
    assert made == run_json("tables", lake_of(tmp_path / "other", commits=1).path, "events")["rows"]["events"]


def test_tables_are_trimmed_once_somebody_agrees(lake: Path) -> None:
    run("tables", lake, "events", "cluster_metrics")
    assert "give --yes" in fault("tables", "trim", lake, "--before", 3000, code=2)
    form = run_json("tables", "trim", lake, "events", "--before", 3000, "--yes")
    assert (form["before"], {*form["rows"]}) == (3000, {"events"})
    assert form["rows"]["events"] > 1000
    printed = run("tables", "trim", lake, "--before", "2026-11-21T07:46Z", "--yes").stdout
    assert "events/" in printed
    assert "cluster_metrics/" in printed


def test_trimming_the_log_says_which_tables_still_know_what_was_there(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    log = lake_of(lake, commits=1, last=3500)
    run("tables", lake)
    append_in(log, 1, batches_between(log.end_offset, LAST_OFFSET))
    run("tables", lake)
    form = run_json("log", "trim", lake, "--before", 3501, "--stream-lag", 0)
    assert form["startOffset"] == 3501
    assert {"events", "cluster_metrics", "partition_history"} <= {*form["tablesFrom"]}
    assert max(form["tablesFrom"].values()) < 3501
    assert form["tablesFrom"]["events"] == 0
    printed = run("log", "trim", lake, "--before", 3501).stdout
    assert "these still know what lies before: local_changes/ from" in printed
    form = run_json("tables", "trim", lake, "events", "--before", "2026-11-21T07:46Z", "--yes")
    assert 0 < form["before"] < 3501
    assert form["rows"]["events"] > 0
