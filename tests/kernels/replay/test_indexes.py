"""The hash of topic ids, by which the shards of a lake's tables are dealt: it may never change."""

from __future__ import annotations

import numpy as np
import pytest

from kraftlake.kernels import compiled


@pytest.mark.parametrize("shards", [1, 3, 64])
def test_ids_are_dealt_by_their_hash_in_64_bits(shards: int) -> None:
    ids = np.random.default_rng(shards).integers(0, 1 << 64, (1000, 2), np.uint64)
    ids[:3] = [[0, 0], [1 << 63, 1], [2**64 - 1, 2**64 - 1]]
    dealt = np.empty(len(ids), np.int64)
    compiled.deal_ids(ids, shards, dealt)
    mixed = ids[:, 0] * np.uint64(0x9E3779B97F4A7C15) ^ ids[:, 1]
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    mixed ^= mixed >> np.uint64(32)
    assert dealt.tolist() == (mixed % np.uint64(shards)).tolist()
    assert len(set(dealt.tolist())) == shards
