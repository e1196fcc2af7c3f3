"""`kraftlake availability`: its table, its warnings and its formats."""

from __future__ import annotations

import json

import pytest

from kraftlake.cli.views.availability_view import percent_words
from tests.cli.running import DIRECTORY, run


def test_the_worst_come_first_and_the_total_last() -> None:
    lines = run("availability", DIRECTORY, "--to", 1400).stdout.splitlines()
    form = json.loads(run("availability", DIRECTORY, "--to", 1400, "--json").stdout)
    seconds = [row["offlineSeconds"] for row in form["rows"]]
    assert seconds == sorted(seconds, reverse=True)
    assert lines[4].startswith(form["rows"][0]["topic"])
    (total,) = (line for line in lines if line.startswith("total "))
    assert percent_words(form["total"]["availablePercent"]) in total
    assert lines[-1].startswith(f"the longest: {form['total']['longestPartition']} was offline for ")


def test_rows_without_trouble_are_counted_and_shown_if_asked_for() -> None:
    few, every = (run("availability", DIRECTORY, "--to", 300, *more).stdout for more in ((), ("--all",)))
    assert "without any of that: --all shows them" in few
    assert "without any of that" not in every
    assert len(every.splitlines()) > len(few.splitlines())


def test_the_part_of_a_window_that_the_log_lacks_is_named() -> None:
    done = run("availability", DIRECTORY, "--from", "2026-11-20", "--to", "2026-11-22")
    assert "knows begins at 2026-11-21 07:45:27.235Z: the window starts there" in done.stderr
    assert "ends at 2026-11-21 07:50:33.079Z: the window ends there" in done.stderr


def test_a_topic_that_no_offset_knows_is_an_error() -> None:
    assert "nowhere" in run("availability", DIRECTORY, "--topic", "nowhere", code=1).stderr


@pytest.mark.parametrize(
    ("percent", "words"),
    [(100.0, "100"), (99.95, "99.95"), (99.996, "99.996"), (99.99961, "99.9996"), (0.0, "0.00"), (None, "–")],
)
def test_a_percentage_has_the_digits_that_tell_it_from_a_hundred(percent: float | None, words: str) -> None:
    assert percent_words(percent) == words
