from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.kernels.compiled import sort_changes


@given(sizes=st.lists(st.integers(1, 40), max_size=8), brokers=st.integers(1, 60), seed=st.integers(0, 1000))
def test_few_and_many_rows_of_a_delta_are_sorted_by_broker_and_otherwise_keep_their_order(
    sizes: list[int], brokers: int, seed: int
) -> None:
    deltas = np.repeat(np.arange(len(sizes), dtype=np.int64) * 3, sizes)
    changed = np.random.default_rng(seed).permutation(len(deltas))
    numbers = np.random.default_rng(seed + 1).integers(0, brokers, len(deltas))
    deltas_of_partitions = np.empty_like(deltas)
    deltas_of_partitions[changed] = deltas
    places = np.empty(len(deltas), np.int64)
    sort_changes(changed, deltas_of_partitions, numbers, np.empty(brokers + 1, np.int64), places)
    assert places.tolist() == np.lexsort((numbers, deltas)).tolist()
