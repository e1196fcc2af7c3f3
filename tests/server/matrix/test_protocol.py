"""A cluster of a lake answers what Kafka answers to the same requests, or docs/cluster.md says where not.

So do Kafka's command-line tools. `KRAFTLAKE_TESTS=long` asks in all versions and cases, and takes all steps with the
tools; the quick run leaves some out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.kafka_tools import KafkaTools
from tests.server.matrix import (
    access_cases,
    admin_cases,
    batch_cases,
    data_cases,
    denied_cases,
    fetch_cases,
    heeding_cases,
    limit_cases,
    metadata_cases,
    setting_cases,
    topic_cases,
)
from tests.server.matrix.answers import differences
from tests.server.matrix.known_differences import DIFFERENCES, TOOL_DIFFERENCES, unknown
from tests.server.matrix.sides import LONG, Side, Sides, started_sides
from tests.server.matrix.tool_steps import steps

pytestmark = pytest.mark.spark
_CASES = (
    *metadata_cases.CASES,
    *topic_cases.CASES,
    *setting_cases.CASES,
    *heeding_cases.CASES,
    *batch_cases.CASES,
    *data_cases.CASES,
    *fetch_cases.CASES,
    *admin_cases.CASES,
    *access_cases.CASES,
    *limit_cases.CASES,
    *denied_cases.CASES,
)
_PAGE = Path(__file__).parents[3] / "docs" / "cluster.md"


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """Both clusters; each test uses topics of its own."""
    with started_sides(tmp_path_factory.mktemp("matrix")) as sides:
        yield sides


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


@pytest.fixture
def tools() -> Iterator[KafkaTools]:
    tools = KafkaTools()
    yield tools
    tools.close()


def test_tools_say_what_they_say_of_kafka(sides: Sides, tools: KafkaTools, tmp_path: Path) -> None:
    ours, theirs = sides.ours, sides.theirs
    problems: list[str] = []
    count = 0
    for one, other in zip(steps(ours, tmp_path), steps(theirs, tmp_path), strict=True):
        assert one.label == other.label
        said, wanted = one.run(tools, ours), other.run(tools, theirs)
        count += 1
        missing, more = [line for line in wanted if line not in said], [line for line in said if line not in wanted]
        problems += [
            f"{one.label}: {'Kafka' if line in missing else 'we'} alone: {line[:300]}"
            for line in (*missing, *more)
            if not any(known.holds(f"{one.label}: {line}") for known in TOOL_DIFFERENCES)
        ]
    assert not problems, "\n".join(problems)
    assert count > 50 or (count == 14 and not LONG)
