"""What options mean: one value each, times and offsets kept apart, and what an image at a moment leaves out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.views.reports import show_run
from kraftlake.records import metadata_records as r
from tests.at_least_one import at_least_one
from tests.cli.made_logs import batch_of, directory_of, unreplayable_log
from tests.cli.running import DIRECTORY, fault, run
from tools.commands import commands

SINGLE = [
    (path, option)
    for path, command in commands()
    if isinstance(command, click.Command) and not isinstance(command, click.Group)
    for option in command.params
    if isinstance(option, click.Option) and not (option.multiple or option.count)
]


@pytest.mark.parametrize("command", sorted({path for path, _ in SINGLE}))
def test_no_option_of_one_value_keeps_the_last_of_two_in_silence(command: str) -> None:
    for path, option in at_least_one(SINGLE):
        if path != command or (option.is_flag and not option.secondary_opts):
            continue
        given = [option.opts[-1], option.secondary_opts[0]] if option.is_flag else [option.opts[-1], "1"] * 2
        errors = run(*path.split()[1:], *given, code=2).stderr
        assert f"{option.opts[-1]}" in errors, given
        assert "is given 2 times: give it once" in errors, given


def test_a_number_that_nothing_can_count_to_is_refused(tmp_path: Path) -> None:
    for command, option in (("events", "--limit"), ("events", "--tail"), ("log", "--limit"), ("log", "--tail")):
        assert "the largest is 9223372036854775807" in fault(command, DIRECTORY, option, 2**63, code=2)
        assert run(command, DIRECTORY, option, 2**63 - 1, "--to", 9).stderr == ""
    for odd in ("nan", "inf", "1e300"):
        for words in (["vacuum", "--older-than", odd], ["trim", "--before", 5, "--stream-lag", odd]):
            sentence = fault("log", words[0], tmp_path, *words[1:], code=2)
            assert f"'{odd}' is not a number up to 1,000,000,000" in sentence


def test_the_broker_that_is_asked_for_is_one() -> None:
    sentence = fault("replay", DIRECTORY, "--broker", 1, "--broker", 2, code=2)
    assert sentence == "--broker is given 2 times: give it once (see `kraftlake replay --help`)"
    both = fault("image", DIRECTORY, "--strict", "--lenient", code=2)
    assert both.startswith("--strict/--lenient is given 2 times")


def test_flags_and_repeatable_options_may_be_given_again() -> None:
    words = ["image", DIRECTORY, "--at-offset", 458, "--topic", "elr-*", "--topic", "t-2*", "--all", "--all"]
    assert run(*words, "--json", "--json").stderr == run(*words).stderr


def test_a_number_that_looks_like_a_time_is_refused_with_the_way_to_give_times() -> None:
    iso = "If 1800000000000 is a time, give it as ISO 8601: 2027-01-15T08:00:00.000Z."
    for command in ("log", "events"):
        assert fault(command, DIRECTORY, "--from", 1_800_000_000_000).endswith(iso)
    assert fault("diff", DIRECTORY, 5, 1_800_000_000_000).endswith(iso)
    assert fault("replay", DIRECTORY, "--broker", 1, "--to", 1_800_000_000_000).endswith(iso)
    assert fault("local-changes", DIRECTORY, "--broker", 1, "--from", 1_800_000_000_000).endswith(iso)
    sentence = fault("image", DIRECTORY, "--at-offset", 1_800_000_000_000)
    assert sentence.endswith("If 1800000000000 is a time, give it with --at-time.")
    assert "is a time" not in fault("image", DIRECTORY, "--at-offset", 99999)


def test_a_time_past_the_end_is_reported() -> None:
    sentence = (
        "__cluster_metadata-0 ends at 2026-11-21 07:50:33.079Z, before the time asked for, 2027-01-01 00:00:00.000Z"
    )
    for command in ("image", "metrics"):
        for form in ([], ["--json"]):
            assert sentence in run(command, DIRECTORY, "--at-time", "2027-01-01", *form).stderr
    assert sentence in run("diff", DIRECTORY, 5730, "2027-01-01").stderr
    assert run("image", DIRECTORY, "--at-time", "2026-11-21T07:50:33.079Z").stderr == ""
    snapshot = DIRECTORY / "00000000000000004593-0000000002.checkpoint"
    assert "ends at 2026-11-21 07:49:" in run("image", snapshot, "--at-time", "2027-01-01").stderr


def test_an_image_without_the_records_of_an_open_or_aborted_transaction_says_so(tmp_path: Path) -> None:
    log = directory_of(
        tmp_path,
        [
            batch_of(0, r.BeginTransactionRecord(name="bootstrap")),
            batch_of(1, r.FeatureLevelRecord(name="metadata.version", feature_level=19)),
            batch_of(2, r.AbortTransactionRecord()),
            batch_of(3, r.BeginTransactionRecord(name="again")),
            batch_of(4, r.FeatureLevelRecord(name="metadata.version", feature_level=19)),
            batch_of(5, r.EndTransactionRecord()),
        ],
    )
    for offset, sentence in (
        (1, "a metadata transaction is open since offset 0"),
        (2, "the image is empty: the metadata transaction of offsets 0 to 2 was aborted"),
        (4, "a metadata transaction is open since offset 3"),
    ):
        for form in ([], ["--json"]):
            assert sentence in run("image", log, "--at-offset", offset, *form).stderr
    assert run("image", log).stderr == ""


def test_a_run_over_a_log_that_starts_above_0_names_its_first_offset(capsys: pytest.CaptureFixture[str]) -> None:
    summary = {"from": -1, "firstOffset": 54479, "offset": 60000, "batches": 3, "deltas": 0, "rows": {}, "openRows": {}}
    show_run(Terminal(), summary | {"snapshots": []})
    assert capsys.readouterr().out == "replayed  offsets 54479 to 60000: 3 batches\n"


def test_an_import_of_a_log_that_can_not_be_replayed_says_so(tmp_path: Path) -> None:
    log, lake = unreplayable_log(tmp_path / "log"), tmp_path / "lake"
    warnings = run("import", log, lake, "--json").stderr
    assert "it is imported as it is, but can't be replayed: offset 2, " in warnings
    assert f"`kraftlake verify {lake}` lists what is wrong" in warnings
    run("verify", lake, code=1)
    assert run("import", log, lake).stderr == ""
    assert run("import", DIRECTORY, tmp_path / "sound").stderr == ""


def keys_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, held in value.items():
            yield key
            yield from keys_of(held)
    for one in value if isinstance(value, list) else ():
        yield from keys_of(one)


def test_keys_are_spelt_one_way_in_all_commands(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for words in (
        ["import", DIRECTORY, lake],
        ["events", DIRECTORY, "--from", 400, "--to", 500],
        ["metrics", DIRECTORY, "--broker", 1],
        ["replay", DIRECTORY, "--broker", 1, "--to", 300],
        ["verify", lake],
        ["quorum", DIRECTORY],
        ["log", "compact", lake],
        ["export", DIRECTORY, tmp_path / "out.checkpoint"],
    ):
        for line in run(*words, "--json").stdout.splitlines():
            odd = [key for key in keys_of(json.loads(line)) if not re.fullmatch(r"[a-z][a-zA-Z0-9]*", key)]
            assert odd == (["committed_to"] if words[0] == "import" else []), words
