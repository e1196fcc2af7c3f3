"""Which assertions the check of the tests' own syntax tree takes as certain, and which as skippable."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent

import pytest

from tests.at_least_one import at_least_one
from tools.skippable_assertions import ROOT, Sources, findings_in

SKIPPABLE = {
    "a loop over what is found": "for one in things():\n    assert one",
    "a loop over a variable": "found = things()\nfor one in found:\n    assert one",
    "a loop beside another assertion": "assert things\nfound = [*things()]\nfor one in found:\n    assert one.name",
    "a loop over the places of what is found": "for one in range(len(things())):\n    assert one",
    "a loop over a part": "for one in NAMES[1:]:\n    assert one",
    "a loop over what is chosen": "for one in [name for name in NAMES if name]:\n    assert one",
    "a loop whose turns end early": "for one in NAMES:\n    if one:\n        continue\n    assert one",
    "a condition": "if things():\n    assert True",
    "one branch": "if things():\n    assert True\nelse:\n    print()",
    "a loop with a condition": "while things():\n    assert True",
    "an early end": "if things():\n    return\nassert True",
    "an error that is caught": "try:\n    assert things()\nexcept Exception:\n    pass",
    "a handler": "try:\n    things()\nexcept ValueError as fault:\n    assert fault",
    "an error that is suppressed": "with suppress(ValueError):\n    assert things()",
    "all of what is found": "assert all(one for one in things())",
    "a function with a loop": "check(things())",
    "pytest's own": "for one in things():\n    with pytest.raises(ValueError):\n        one()",
    "a marker without a reason": "for one in things():  # may assert nothing\n    assert one",
}
CERTAIN = {
    "an assertion": "assert things()",
    "an expected error": "with pytest.raises(ValueError):\n    things()",
    "a literal": "for one in (1, 2):\n    assert one",
    "a constant": "for one, two in zip(NAMES, things(), strict=True):\n    assert one == two",
    "an enumeration": "for one in Kind:\n    assert one",
    "a range": "for one in range(3):\n    assert one < 3",
    "a loop of loops": "for one in NAMES:\n    for two in (one, one):\n        assert two",
    "at least one": "for one in at_least_one(things()):\n    assert one",
    "what is looped over is asserted": "found = things()\nassert found\nfor one in found:\n    assert one",
    "what the loop has seen is asserted": "seen = 0\nfor one in things():\n    assert one\n    seen += 1\nassert seen",
    "both branches": "if things():\n    assert True\nelse:\n    pytest.fail()",
    "a branch that asserts and ends": "if things():\n    assert True\n    return\nassert not things()",
    "an error or not": "try:\n    things()\nexcept ValueError:\n    assert True\nelse:\n    assert not things()",
    "a function": "hold(things())",
    "a marker": "for one in things():  # may assert nothing: few logs have any\n    assert one",
    "no assertion at all": "for one in things():\n    one.run()",
}
MODULE = """
NAMES = ("a", "b")

class Kind(Enum):
    ONE = 1

def check(found):
    for one in found:
        assert one

def hold(found):
    assert found

def test_it(things):
"""


def findings(tmp_path: Path, body: str, decorator: str = "") -> list[str]:
    file = tmp_path / "test_made.py"
    file.write_text(
        MODULE.replace("def test_it", f"{decorator}def test_it") + indent(dedent(body), "    ") + "\n", "utf-8"
    )
    return [*findings_in(file, Sources(ROOT))]


@pytest.mark.parametrize("body", SKIPPABLE.values(), ids=SKIPPABLE)
def test_what_may_be_skipped_is_found(tmp_path: Path, body: str) -> None:
    (found,) = findings(tmp_path, body)
    assert "test_made.py:" in found
    assert "test_it" in found


@pytest.mark.parametrize("body", CERTAIN.values(), ids=CERTAIN)
def test_what_is_certain_is_not(tmp_path: Path, body: str) -> None:
    assert findings(tmp_path, body) == []


def test_of_what_hypothesis_draws_few_examples_are_empty(tmp_path: Path) -> None:
    body = "found = things[1:]\nfor one in found:\n    assert one"
    assert len(findings(tmp_path, body)) == 1
    assert findings(tmp_path, body, "@given(lists)\n") == []


def test_the_command_names_the_line_and_fails(tmp_path: Path) -> None:
    (tmp_path / "test_made.py").write_text(MODULE + "    for one in things:\n        assert one\n", "utf-8")
    script = ROOT / "tools" / "skippable_assertions.py"
    done = subprocess.run(
        [sys.executable, script, tmp_path / "test_made.py"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert ":15: the loop over `things` may have no turn" in done.stdout


def test_a_loop_over_nothing_fails() -> None:
    assert list(at_least_one(iter("ab"))) == ["a", "b"]
    with pytest.raises(AssertionError, match="nothing was asserted"):
        list(at_least_one([]))
