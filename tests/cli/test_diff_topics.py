"""`kraftlake diff --topic`: what became of some topics."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import pytest

from tests.cli.running import DIRECTORY, fault, run, run_json


def topic_of(part: str, key: str) -> str | None:
    if part == "configs":
        kind, _, name = key.partition(":")
        return name if kind == "TOPIC" else None
    if part == "partitions":
        return key.rpartition("-")[0]
    return key if part == "topics" else None


def cut(form: dict[str, Any], *patterns: str) -> dict[str, Any]:
    """What the form of a whole diff says of these topics."""
    made: dict[str, Any] = {key: value for key, value in form.items() if not isinstance(value, dict)}
    for part, kinds in form.items():
        for kind, entries in kinds.items() if isinstance(kinds, dict) else ():
            for key, entry in entries.items():
                topic = topic_of(part, key)
                if topic is not None and any(fnmatchcase(topic, pattern) for pattern in patterns):
                    made.setdefault(part, {}).setdefault(kind, {})[key] = entry
    return made


@pytest.mark.parametrize("patterns", [["elr-a"], ["t-2*"], ["big-?", "elr-*"], ["*"]])
@pytest.mark.parametrize("ends", [(260, 5736), (5736, -1), (4592, 4639)])
def test_it_says_what_the_whole_diff_says_of_these_topics(patterns: list[str], ends: tuple[int, int]) -> None:
    options = [word for pattern in patterns for word in ("--topic", pattern)]
    assert run_json("diff", DIRECTORY, *ends, *options) == cut(run_json("diff", DIRECTORY, *ends), *patterns)


def test_topics_configs_and_partitions_are_drawn_in_full_and_nothing_else() -> None:
    said = run("diff", DIRECTORY, 260, 4639, "--topic", "elr-a").stdout
    assert "+ elr-a  3 partitions" in said
    assert "+ elr-a-2  leader 2" in said
    assert "+ topic elr-a  min.insync.replicas 1" in said
    assert "broker" not in said
    assert "t-21-w0f-0" in run("diff", DIRECTORY, 4592, 5736, "--topic", "t-21-*").stdout


def test_topics_that_the_log_never_had_are_reported_and_those_that_did_not_change_are_not() -> None:
    sentence = fault("diff", DIRECTORY, 3, 260, "--topic", "nope", "--topic", "none*")
    assert (
        sentence == "no topic matches nope at any offset of this log; no topic matches none* at any offset of this log"
    )
    other = DIRECTORY / "00000000000000004593-0000000002.checkpoint"
    assert "no topic matches nope" in fault("diff", DIRECTORY, "--with", other, "--topic", "nope")
    unchanged = run("diff", DIRECTORY, 5735, 5736, "--topic", "elr-a")
    assert (unchanged.stdout.splitlines()[-1].split()[-2:], unchanged.stderr) == (["no", "difference"], "")
    assert run("diff", DIRECTORY, 4592, 5736, "--topic", "t-21-w0f").stderr == ""
