"""Steps as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftlake.diagnosis.trial.steps import Step, StepKind
from kraftlake.runtime.errors import UsageError


@pytest.mark.parametrize(
    ("text", "step", "words"),
    [
        ("lose-broker 2", Step(kind=StepKind.LOSE_BROKER, brokers=(2,)), "lose broker 2"),
        (" lose-broker  2, 3 ", Step(kind=StepKind.LOSE_BROKER, brokers=(2, 3)), "lose brokers 2 and 3"),
        ("lose-rack eu west", Step(kind=StepKind.LOSE_RACK, racks=("eu west",)), "lose rack eu west"),
        ("restart 7", Step(kind=StepKind.RESTART, brokers=(7,)), "restart broker 7"),
        ("catch-up", Step(kind=StepKind.CATCH_UP), "all brokers catch up"),
    ],
)
def test_a_step_is_read_and_said(text: str, step: Step, words: str) -> None:
    assert Step.parse(text) == step
    assert step.words == words
    assert step.to_json()["step"] == step.kind.value


def test_a_reassignment_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "two words.json"
    file.write_text(
        '{"version":1,"partitions":[{"topic":"a-b","partition":3,"replicas":[1,2],"log_dirs":["any","any"]}]}'
    )
    step = Step.parse(f"reassign {file}")
    assert step == Step(kind=StepKind.REASSIGN, moves={("a-b", 3): (1, 2)})
    assert step.words == "reassign 1 partition"
    assert step.to_json()["partitions"] == ["a-b-3"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no step of a what-if"),
        ("lose 2", "did you mean lose-rack"),
        ("restart", "says not of what: restart 3"),
        ("lose-broker two", "names no brokers"),
        ("lose-broker -1", "names no brokers"),
        ("lose-broker 1,,2", "names no brokers"),
        ("catch-up 2", "is for all brokers"),
        ("reassign nowhere.json", "nowhere.json can't be read: No such file"),
    ],
)
def test_what_is_no_step_is_refused_with_a_way_out(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Step.parse(text)
