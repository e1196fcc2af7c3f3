"""`kraftlake upgrade-check`: its lines, its exit code and its refusals of a wrong target."""

from __future__ import annotations

from tests.cli.running import DIRECTORY, run


def test_what_nothing_refuses_is_one_line() -> None:
    (line,) = run("upgrade-check", DIRECTORY, "--to", "4.4").stdout.splitlines()
    assert line == "Kafka 4.4, metadata.version 33 (4.4-IV2) → 33 (4.4-IV2)  at offset 5736: nothing refuses it"


def test_each_obstacle_has_its_record_and_what_mends_it() -> None:
    lines = run("upgrade-check", DIRECTORY, "--metadata-version", 34, code=3).stdout.splitlines()
    assert lines[0].endswith("refused")
    assert lines[1].startswith("✗ controller 3000 supports metadata.version 7 (3.3-IV3) to 33 (4.4-IV2)  offset 1087, ")
    assert lines[2] == "    restart controller 3000 with a release that supports 34 (4.5-IV0)"


def test_a_target_is_needed_and_known() -> None:
    assert "has one target" in run("upgrade-check", DIRECTORY, code=2).stderr
    assert "'9.9' is no release" in run("upgrade-check", DIRECTORY, "--to", "9.9", code=2).stderr
