"""The quantiles of the most recent values."""

from __future__ import annotations

from kraftlake.runtime.recent_values import KEPT, RecentValues


def test_quantiles_are_those_of_the_newest_values_and_the_count_is_that_of_all() -> None:
    values = RecentValues()
    assert set(values.quantiles().values()) == {0.0}
    for value in [1_000_000.0] * 50 + [float(n) for n in range(KEPT)]:
        values.add(value)
    shown = {tags[0][1]: value for tags, value in values.quantiles().items()}
    assert shown == {"0.5": 514.0, "0.95": 976.0, "0.99": 1017.0, "0.999": 1026.0}
    assert values.count == 50 + KEPT
