"""A cluster of a lake answers what Kafka answers to the same requests, or docs/cluster.md says where not.

`KRAFTLAKE_TESTS=long` asks in all versions and all cases; the quick run leaves some out.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server.matrix import (
    admin_cases,
    batch_cases,
    data_cases,
    denied_cases,
    fetch_cases,
    limit_cases,
    metadata_cases,
    topic_cases,
)
from tests.server.matrix.answers import differences
from tests.server.matrix.known_differences import DIFFERENCES, unknown
from tests.server.matrix.sides import Side, Sides

pytestmark = pytest.mark.spark
_CASES = (
    *metadata_cases.CASES,
    *topic_cases.CASES,
    *batch_cases.CASES,
    *data_cases.CASES,
    *fetch_cases.CASES,
    *admin_cases.CASES,
    *limit_cases.CASES,
    *denied_cases.CASES,
)
_PAGE = Path(__file__).parents[3] / "docs" / "cluster.md"


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.__name__)
def test_answers_are_kafkas(sides: Sides, case: Callable[[Sides, Side], None]) -> None:
    for side in (sides.ours, sides.theirs):
        side.seen = {}
        case(sides, side)
    ours, theirs = sides.ours.seen, sides.theirs.seen
    assert ours.keys() == theirs.keys(), "both sides were asked the same"
    assert ours
    found = [
        (f"{case.__name__}: {label} {path}", one, other)
        for label in ours
        for path, one, other in differences(ours[label], theirs[label])
    ]
    assert not unknown(found), "\n".join(unknown(found)[:50])


def test_each_known_difference_is_in_the_docs() -> None:
    section = _PAGE.read_text("utf-8").partition("## Where it differs")[2]
    rows = {line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ")}
    assert {known.row for known in DIFFERENCES} <= rows, "each row of known_differences.py is one of docs/cluster.md"
