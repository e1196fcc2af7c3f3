"""The shards of topics, by topic id."""

from __future__ import annotations

import cython

from kraftlake.kernels.language import Bytes, Int64, Longs, LongsOut, UInt64, compiled
from kraftlake.kernels.replay.indexes import mix
from kraftlake.kernels.replay.partition_bytes import read_long


@compiled
def shards_of_ids(data: Bytes, places: Longs, shards: Int64, found: LongsOut) -> None:
    """The shard (int64, below `shards`) of each topic id: of the 16 bytes of `data` at each of `places` (int64)."""
    for i in range(len(places)):
        hash_ = mix(read_long(data, places[i]), read_long(data, places[i] + 8))
        found[i] = hash_ % cython.cast(UInt64, shards)
