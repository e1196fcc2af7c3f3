from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kraftlake.runtime.backoff import Backoff


def test_pauses_double_up_to_the_cap() -> None:
    backoff = Backoff(base=0.5, cap=30.0)
    assert [backoff.pause(failures, 0.5) for failures in range(1, 9)] == [0.5, 1, 2, 4, 8, 16, 30, 30]


@given(failures=st.integers(1, 10**9), random=st.floats(0, 1), jitter=st.floats(0, 0.99), factor=st.floats(1.01, 100))
def test_a_pause_differs_from_the_plain_one_by_the_jitter_at_most(
    failures: int, random: float, jitter: float, factor: float
) -> None:
    plain = Backoff(base=0.1, cap=20.0, factor=factor, jitter=0).pause(failures, random)
    pause = Backoff(base=0.1, cap=20.0, factor=factor, jitter=jitter).pause(failures, random)
    assert 0.1 <= plain <= 20.0
    assert plain * (1 - jitter) * 0.999 <= pause <= min(20.0, plain * (1 + jitter) * 1.001)
