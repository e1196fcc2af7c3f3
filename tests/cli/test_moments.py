"""A time in place of an offset, wherever a range or two moments are asked for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.running import DIRECTORY, fault, run

SINCE, UNTIL = "2026-11-21T07:46:16.25Z", "2026-11-21T07:46:16.5+00:00"
"""Offsets 403 to 458 are of 07:46:16.256; 402 is of 07:46:16.227, 459 of later."""


@pytest.mark.parametrize("command", [["log"], ["events"], ["replay", "--broker", 2]], ids=lambda c: c[0])
def test_a_range_begins_after_what_is_before_its_time_and_ends_with_what_is_not_after_it(command: list[object]) -> None:
    by_time = run(*command, DIRECTORY, "--from", SINCE, "--to", UNTIL, "--json").stdout
    assert by_time == run(*command, DIRECTORY, "--from", 403, "--to", 458, "--json").stdout
    assert by_time


def test_two_moments_are_the_images_at_these_times() -> None:
    assert run("diff", DIRECTORY, SINCE, UNTIL, "--json").stdout == run("diff", DIRECTORY, 402, 458, "--json").stdout
    changes = ["local-changes", DIRECTORY, "--broker", 2, "--json"]
    assert run(*changes, "--from", SINCE, "--to", UNTIL).stdout == run(*changes, "--from", 402, "--to", 458).stdout


def test_a_time_that_the_log_does_not_reach_is_reported() -> None:
    assert "The last batch of __cluster_metadata-0 is of 2026-11-21 07:50:33.079Z" in fault(
        "log", DIRECTORY, "--from", "2027-01-01"
    )
    assert "after the time asked for, 2020-01-01 00:00:00.000Z" in fault("diff", DIRECTORY, "2020-01-01", 5)


def test_a_range_of_times_without_a_record_is_reported_with_its_neighbours() -> None:
    words = ["--from", "2026-11-21T07:46:15.9Z", "--to", "2026-11-21T07:46:16Z"]
    assert "offset 400 is of before them, 401 of after them" in fault("log", DIRECTORY, *words)


def test_times_that_run_backwards_are_named_as_times() -> None:
    sentence = fault("events", DIRECTORY, "--from", UNTIL, "--to", SINCE, code=2)
    assert sentence.endswith("from 2026-11-21 07:46:16.500Z to 2026-11-21 07:46:16.250Z runs backwards.")


def test_a_time_in_seconds_is_seen_to_be_read_as_milliseconds() -> None:
    assert "after the time asked for, 1970-01-21 09:55:11.190Z" in fault("image", DIRECTORY, "--at-time", 1763711190)


def test_times_of_before_a_log_that_begins_later_than_its_snapshots_are_reported(tmp_path: Path) -> None:
    for file in DIRECTORY.glob("*3532.log"), DIRECTORY.glob("*5488.log"), DIRECTORY.glob("*.checkpoint"):
        for one in file:
            shutil.copy(one, tmp_path)
    words = ["--from", "2026-11-21T07:49:20Z", "--to", "2026-11-21T07:49:25Z"]
    assert "it begins with offset 3532" in fault("events", tmp_path, *words)


def test_changes_after_an_offset_past_the_end_are_no_range_backwards() -> None:
    assert "Offset 9999 is past the end" in fault("local-changes", DIRECTORY, "--broker", 1, "--from", 9999)


def test_a_whole_number_is_an_offset_and_never_a_time() -> None:
    assert "Offset 20261121 is not in" in fault("log", DIRECTORY, "--from", 20261121)
