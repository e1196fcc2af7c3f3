"""Configs that Kafka 4.4 ignores in a log of Kafka 3.x: what commands say of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import kraftlake
from kraftlake.replay.imports.import_log import import_source
from tests.cli.running import SAMPLE, fault, run, run_json
from tests.old_log import FORMAT, old_log

KNOWN = "note: the log sets configs that Kafka 4.4 does not know and ignores: "


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return old_log(tmp_path_factory.mktemp("old"))


@pytest.mark.parametrize("words", [("image",), ("diff", "10", "20")], ids=lambda words: words[0])
def test_a_note_names_them_once_and_the_answer_lacks_them(log: Path, words: tuple[str, ...]) -> None:
    command, *rest = words
    for form in ((), ("--json",)):
        result = run(command, log, *rest, *form)
        assert result.stderr.count(FORMAT) == 1
        assert result.stderr.startswith(f"{KNOWN}message.format.version of topic")
        assert result.stdout.count(FORMAT) == result.stdout.count(f"log.{FORMAT}")  # of brokers


def test_an_image_after_their_removal_names_what_is_left(log: Path) -> None:
    ignored = run("image", log).stderr.removeprefix(KNOWN).strip().split("; ")
    assert ignored == [
        "message.format.version of topic orders",
        "message.timestamp.difference.max.ms of topic orders",
        "a.B of broker logger 1",
        "metrics.push of client metrics m",
        "no.such.config of group g",
    ]
    assert run("image", SAMPLE).stderr == ""


def test_verify_names_them_and_the_log_is_sound(log: Path) -> None:
    report = run_json("verify", log)
    assert report["sound"]
    assert "message.format.version of topic orders; " in report["notes"][0]


def test_the_log_shows_their_records_and_blame_says_why_they_are_nothing(log: Path) -> None:
    lines = [line for line in run("log", log, "--type", "CONFIG_RECORD").stdout.splitlines() if FORMAT in line]
    assert [line.endswith("unknown to Kafka 4.4, ignored") for line in lines] == [True, True, False, False, True]
    assert "log.message.format.version=" in lines[2]
    assert "the log sets it, and Kafka 4.4" in fault("blame", log, f"config/TOPIC/orders/{FORMAT}")
    assert "There is no config/TOPIC/nothing/x.y.z" in fault("blame", log, "config/TOPIC/nothing/x.y.z")


def test_an_export_does_not_hold_them_and_a_lake_keeps_their_records(log: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    import_source(kraftlake.open(log), lake)
    result = run("export", lake, tmp_path / "a.checkpoint")
    assert result.stderr.startswith("note: configs that Kafka 4.4 does not know are not in it: message.format.version")
    assert run("image", tmp_path / "a.checkpoint").stderr.count(FORMAT) == 0
    assert run("log", lake).stdout == run("log", log).stdout


def test_a_restore_says_that_it_leaves_them_out(log: Path, tmp_path: Path) -> None:
    result = run(
        "restore", log, "--to", tmp_path / "to", "--voter", "1@127.0.0.1:9093", "--cluster-id", "x" * 22, "--yes"
    )
    assert (
        "configs that Kafka 4.4 does not know are not restored: message.format.version of topic orders;"
        in result.stderr
    )
