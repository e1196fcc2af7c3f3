from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kraftlake.generate.cluster import GeneratedCluster
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
def test_an_invalid_plan_names_the_option(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Plan(**options).check()


def test_the_default_plan_is_valid() -> None:
    plan = Plan()
    plan.check()
    assert plan.partition_count == 600
    assert plan.patterns == PATTERNS
    assert plan.starting(5).start_ms == 5


def test_the_least_memory_is_that_of_the_arrays_of_a_cluster() -> None:
    plan = Plan(brokers=7, topics=11, partitions=13, replication_factor=4)
    arrays = [value for value in vars(GeneratedCluster(plan)).values() if isinstance(value, np.ndarray)]
    ring = 4 * plan.brokers
    assert plan.least_memory == sum(array.nbytes for array in arrays) - ring
