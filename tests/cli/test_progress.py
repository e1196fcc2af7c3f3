"""Bars for commands that rarely take long: late, on a terminal alone, and gone at the end."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kraftlake.cli.output import progress
from kraftlake.cli.output.progress import PATIENCE_SECONDS, late_progress_bars, progress_bars
from kraftlake.cli.output.terminal import Terminal
from tests.cli.running import DIRECTORY, run, run_json


class ScreenText(io.StringIO):
    """A terminal that keeps what it was sent."""

    def isatty(self) -> bool:
        return True


def test_nothing_is_drawn_in_the_first_second_and_all_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = ScreenText()
    monkeypatch.setattr(sys, "stderr", screen)
    now = 100.0
    with late_progress_bars(Terminal("always"), lambda: now) as progress:
        assert progress is not None
        progress("replaying", 1, 3_000)
        now += PATIENCE_SECONDS - 0.01
        progress("replaying", 1_000, 3_000)
        assert screen.getvalue() == ""
        now += 0.02
        progress("replaying", 2_000, 3_000)
        assert "Replaying" in screen.getvalue()
        progress("replaying", 2_345, 3_000)  # too soon after the last to be drawn
        now += 1
        progress("replaying", 2_500, 3_000)
    drawn = screen.getvalue()
    assert "2,500 of 3,000 offsets" in drawn
    assert "2,345" not in drawn
    assert drawn.endswith("\x1b[1A\x1b[2K")  # the line of the bar is cleared


def test_jobs_name_spark_where_it_is_started_for_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    for phase, title in (("starting", "Starting "), ("folding", "Folding on Spark ")):
        screen = ScreenText()
        monkeypatch.setattr(sys, "stderr", screen)
        with progress_bars(Terminal("always")) as progress:
            progress(phase, 0, 0)
        assert title in screen.getvalue()
        assert ("Spark" in screen.getvalue()) == (phase == "folding")


def test_a_phase_that_another_follows_is_shown_as_done(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = ScreenText()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress_bars(Terminal("always")) as progress:
        progress("loading", 0, 0)
        progress("checking", 2_500, 3_000)
        progress("replaying", 100, 3_000)
    last = screen.getvalue().rpartition("Loading a snapshot")[2]
    assert re.search(r"Checking.*(?<! of )3,000 offsets", last)
    assert re.search(r"Replaying.* 100 of 3,000 offsets", last)


def test_lakes_are_counted_as_lakes(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = ScreenText()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress_bars(Terminal("always")) as progress:
        progress("lakes", 1, 3)
    assert re.search("Lake by lake on Spark .* 1 of 3 lakes", screen.getvalue())


def test_where_nobody_sits_in_front_of_it_nobody_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with late_progress_bars(Terminal("always")) as progress:
        assert progress is None


@pytest.mark.parametrize(
    ("words", "ends"),
    [
        (["image", DIRECTORY, "--at-offset", 900], {901}),
        (["diff", DIRECTORY, 500, 900], {501, 901}),
        (["local-changes", DIRECTORY, "--broker", 1, "--from", 500, "--to", 900], {501, 901}),
        (["verify", DIRECTORY], {5737}),
    ],
)
def test_commands_that_replay_report_how_far_they_are(
    monkeypatch: pytest.MonkeyPatch, words: list[object], ends: set[int]
) -> None:
    expected = run_json(*words)
    reported: list[tuple[str, int, int]] = []

    @contextmanager
    def listening(_: Terminal) -> Iterator[progress.Progress]:
        yield lambda *args: reported.append(args)

    monkeypatch.setattr(progress, "late_progress_bars", listening)
    assert run_json(*words) == expected
    assert {total for phase, _, total in reported if phase == "replaying"} == ends
    assert {done for phase, done, total in reported if phase == "replaying" and done == total} == ends


def test_what_is_piped_says_nothing() -> None:
    assert run("image", DIRECTORY, "--json").stderr == ""
    assert run("verify", DIRECTORY).stderr == ""
