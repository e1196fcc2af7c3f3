"""Times as people write them: counted from the end of the log, of a day, of a zone; and the zone of those shown."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import kraftlake
from kraftlake.replay.imports.import_log import import_source
from tests.at_least_one import at_least_one
from tests.cli.running import DIRECTORY, fault, run, run_json
from tests.cli.test_interactive import ANSI, on_terminal

END = "2026-11-21 07:50:33.079Z"

RANGES = [
    (["--last", "20s"], ["--from", "2026-11-21T07:50:13.079Z"]),
    (
        ["--last", "1m30s", "--to", "now-10s"],
        ["--from", "2026-11-21T07:49:03.079Z", "--to", "2026-11-21T07:50:23.079Z"],
    ),
    (["--from", "07:46", "--to", "07:46:16.256"], ["--from", "2026-11-21T07:46Z", "--to", "2026-11-21T07:46:16.256Z"]),
    (
        ["--from", "08:46", "--to", "08:47", "--tz", "Europe/Berlin"],
        ["--from", "2026-11-21T07:46", "--to", "2026-11-21T07:47"],
    ),
    (["--tz", "+05:30", "--from", "2026-11-21T13:20"], ["--from", "2026-11-21T07:50"]),
    (["--from", "today", "--to", "460"], ["--from", "0", "--to", "460"]),
]


@pytest.mark.parametrize(
    ("command", "words", "plain"),
    [(["events"], *one) for one in RANGES]
    + [([*command], *RANGES[0]) for command in (["log"], ["replay", "--broker", 2])],
    ids=str,
)
def test_a_range_is_that_of_the_times_that_are_meant(command: list[object], words: list[str], plain: list[str]) -> None:
    meant = run(*command, DIRECTORY, *plain, "--json").stdout
    assert run(*command, DIRECTORY, *words, "--json").stdout == meant
    assert meant


@pytest.mark.parametrize("time", ["now-3m", "07:47:33.079", "2026-11-21T08:47:33.079+01:00"])
def test_one_moment_is_the_same_in_every_command(time: str, tmp_path: Path) -> None:
    at = "2026-11-21T07:47:33.079Z"
    for command in ("image", "metrics"):
        assert (
            run(command, DIRECTORY, "--at-time", time, "--json").stdout
            == run(command, DIRECTORY, "--at-time", at, "--json").stdout
        )
    expected = run("diff", DIRECTORY, at, 5736, "--json").stdout
    assert run("diff", DIRECTORY, time, "now", "--json").stdout == expected
    assert run("diff", DIRECTORY, "--last", "3m", "--json").stdout == expected
    changes = ["local-changes", DIRECTORY, "--broker", 2, "--json"]
    assert (
        run(*changes, "--from", time).stdout
        == run(*changes, "--last", "3m").stdout
        == run(*changes, "--from", at).stdout
    )
    assert kraftlake.open(DIRECTORY).image(time).offset == kraftlake.open(DIRECTORY).image(at).offset == 1319
    import_source(DIRECTORY, tmp_path / "lake")
    assert kraftlake.open(tmp_path / "lake").offset_at(at_time=time) == 1319


def test_a_lakes_tables_take_the_same_texts(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    run("import", DIRECTORY, lake)
    run("tables", lake, "broker_history")
    at = kraftlake.state_at(lake, "now-3m", "broker_history", columns=["broker", "fenced"])
    assert (
        at.sort_by("broker").to_pylist()
        == kraftlake.state_at(lake, 1319, "broker_history", columns=["broker", "fenced"]).sort_by("broker").to_pylist()
    )


def test_what_is_counted_from_the_end_is_shown_with_the_end() -> None:
    result = run("image", DIRECTORY, "--at-time", "now-3m", "--json")
    assert result.stderr == f"note: now-3m is 2026-11-21 07:47:33.079Z (__cluster_metadata-0 ends at {END})\n"
    assert json.loads(result.stdout)["offset"] == 1319
    both = run("events", DIRECTORY, "--from", "07:46", "--to", "now").stderr
    assert both == f"note: 07:46 is 2026-11-21 07:46:00.000Z, now is {END} (__cluster_metadata-0 ends at {END})\n"
    assert run("events", DIRECTORY, "--from", "2026-11-21T07:46Z").stderr == ""


def test_times_are_shown_in_the_zone_that_is_asked_for_and_in_json_never() -> None:
    words = ("log", DIRECTORY, "--from", 458, "--to", 458)
    assert "  2026-11-21 08:46:16.256+01:00  BROKER" in run(*words, "--tz", "Europe/Berlin").stdout
    assert run(*words, "--json", "--tz", "Europe/Berlin").stdout == run(*words, "--json").stdout
    assert (
        "at  offset 458, epoch 1, 2026-11-21 16:46:16.256+09:00"
        in run("image", DIRECTORY, "--at-offset", 458, "--tz", "Asia/Tokyo").stdout
    )
    assert run(*words).stdout == run(*words, TZ="Asia/Tokyo").stdout, "a pipe does not depend on the environment"


def test_a_terminal_shows_the_times_of_its_zone() -> None:
    words = ("log", DIRECTORY, "--from", "2026-11-21T07:46:16Z", "--to", 458, "--type", "broker_registration_change")
    received = ANSI.sub("", on_terminal(*words, width=140, TZ="Asia/Tokyo"))
    assert "note: 2026-11-21 07:46:16.000Z is 2026-11-21 16:46:16.000+09:00\n" in received
    assert "  2026-11-21 16:46:16.256+09:00  BROKER" in received
    narrow = ANSI.sub("", on_terminal(*words, width=100, TZ="Asia/Tokyo")).splitlines()
    assert narrow[1] == "── 2026-11-21 +09:00"
    assert narrow[2].startswith("     458   1  16:46:16.256   BROKER")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--last", "15"], "'15' is not a length of time: give a number and s, m, h or d, as in 15m"),
        (["--last", "5m", "--from", "3"], "Give either --last or where the range begins, not both"),
        (["--tz", "Europe/Berln"], "'Europe/Berln' is not a time zone: did you mean Europe/Berlin"),
        (["--tz", "../etc/passwd"], "is not a time zone"),
        (["--tz", "+25:00"], "is not a time zone"),
        (["--from", "now+3m"], "'now+3m' is neither an offset nor a time"),
    ],
)
def test_a_wrong_time_is_named(words: list[str], sentence: str) -> None:
    assert sentence in fault("events", DIRECTORY, *words, code=2)


def test_a_history_that_is_made_up_begins_at_a_time_that_no_log_gives(tmp_path: Path) -> None:
    assert "counts from the end of a log" in fault("generate", tmp_path / "lake", "--start", "now-1h", code=2)


def test_a_moment_is_given_once_and_a_whole_number_is_an_offset() -> None:
    expected = run("metrics", DIRECTORY, "--at-time", "07:47:33.079", "--json").stdout
    for words in (["--at", "now-3m"], ["--at-offset", "07:47:33.079"], ["--at", 1319], ["--at-offset", 1319]):
        assert run("metrics", DIRECTORY, *words, "--json").stdout == expected
    assert "not both" in fault("image", DIRECTORY, "--at", 5, "--at-time", "07:46", code=2)
    assert "is given 2 times" in fault("image", DIRECTORY, "--at", 5, "--at-offset", 5, code=2)
    assert "'soon' is neither an offset nor a time" in fault("image", DIRECTORY, "--at", "soon", code=2)
    assert "Offset 20261121 is past the end" in fault("image", DIRECTORY, "--at", 20261121)
    assert (
        "12:47 is 2026-11-21 12:47:00.000+05:00"
        in run("blame", DIRECTORY, "broker/3", "--at", "12:47", "--tz", "+05:00").stderr
    )


def test_a_log_is_trimmed_before_what_was_written_since_a_time(tmp_path: Path) -> None:
    directory = tmp_path / DIRECTORY.name
    directory.mkdir()
    for file in at_least_one(sorted(DIRECTORY.glob("*.log"))):  # a file of the log for each segment
        shutil.copy(file, directory)
        run("import", directory, tmp_path / "lake")
    run("import", DIRECTORY, tmp_path / "lake")
    words = ("log", "trim", tmp_path / "lake", "--stream-lag", 0, "--before")
    result = run(*words, "08:49:37.4", "--tz", "+01:00")  # the first offset since then lies behind 3532, in its file
    assert "offsets 0 to 3531, " in result.stdout
    assert "08:49:37.4 is 2026-11-21 08:49:37.400+01:00" in result.stderr
    assert run_json(*words, "now-1h")["filesRemoved"] == 0
    assert "lake is of 2026-11-21 07:50:33.079Z, which is before the time asked for" in fault(*words, "2027-01-01")
