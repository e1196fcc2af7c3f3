"""The scripts of a page find the numbers and lists of a partition's state where the page has them."""

from __future__ import annotations

import re

from kraftlake.diagnosis.page.row_states import FLAGS, LISTS
from kraftlake.image.topics.row_lists import LISTS as LISTS_OF_ROWS
from tests.wheel import REPOSITORY

SCRIPT = (REPOSITORY / "kraftlake/diagnosis/page/browser/history.js").read_text("utf-8")


def constants(first: str) -> dict[str, int]:
    """The constants of the script that are declared together with one, by name."""
    (line,) = re.findall(rf"^const ({first} = .*);$", SCRIPT, re.MULTILINE)
    return {name: int(number) for name, number in re.findall(r"(\w+) = (\d+)", line)}


def test_the_script_knows_the_place_of_each_list_of_a_state() -> None:
    names = ["leader", *LISTS, "flags"]
    places = constants("LEADER")
    assert [*places.values()] == [*range(len(names))]
    assert [name for name, short in zip(names, places, strict=True) if not name.startswith(short.lower())] == []
    assert {*LISTS} <= {*LISTS_OF_ROWS}


def test_the_script_knows_the_bit_of_each_condition() -> None:
    shortened = {"being_reassigned": "MOVING"}
    assert constants("OFFLINE") == {shortened.get(name, name.upper()): 1 << bit for bit, name in enumerate(FLAGS)}
