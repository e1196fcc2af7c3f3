from __future__ import annotations

from typing import Any

import pytest

from kraftlake.generate.plan import PATTERNS, Plan
from kraftlake.runtime.errors import UsageError


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"brokers": 0}, "--brokers must be at least 1"),
        ({"replication_factor": 4, "brokers": 3}, "--replication-factor 4 needs as many brokers; --brokers is 3"),
        ({"racks": 4, "brokers": 3}, "--racks 4 needs a broker in each"),
        ({"partitions": 10_000}, "Take more topics instead"),
        ({"patterns": ("meteorite",)}, "There is no pattern 'meteorite'"),
        ({"records": -1}, "records can't be negative"),
    ],
)
def test_a_plan_that_makes_no_sense_names_the_option(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Plan(**options).check()


def test_a_plan_as_it_comes_makes_sense() -> None:
    plan = Plan()
    plan.check()
    assert plan.partition_count == 600
    assert plan.patterns == PATTERNS
    assert plan.starting(5).start_ms == 5
