"""Kafka's command-line tools say of a cluster of a lake what they say of Kafka's.

`KRAFTLAKE_TESTS=long` takes all steps; the quick run takes one or two of each tool.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.kafka_tools import KafkaTools
from tests.server.matrix.known_differences import TOOL_DIFFERENCES
from tests.server.matrix.sides import LONG, Sides
from tests.server.matrix.tool_steps import steps

pytestmark = pytest.mark.spark


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
