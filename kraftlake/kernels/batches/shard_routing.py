"""Which shard of a distributed fold each record of a log goes to, and the records of each shard put together.

Records of a topic go where its id says, so that one shard holds all that there is to know of the topic. The numbers
behind those of the shards: `shards` is for records of anything else, `shards + 1` says that everybody gets the record,
`shards + 2` that nobody does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.aot.compiled import compiled, inlined
from kraftlake.kernels.replay.indexes import mix
from kraftlake.kernels.replay.partition_bytes import read_long, read_uvarint

TOPIC, PARTITION, CHANGE, REMOVE, NO_OP, CLEAR_ELR = 2, 3, 5, 9, 20, 28
BEGIN_TRANSACTION, ABORT_TRANSACTION = 23, 25


@inlined
def _id_place(data: Any, p: Any, end: Any) -> Any:
    """Where the topic id of a record begins; -1 where it is none of a topic, or not whole."""
    key = data[p + 1]
    at = np.int64(-1)
    if key == PARTITION or key == CHANGE:
        at = p + 7
    elif key == REMOVE:
        at = p + 3
    elif key == TOPIC:
        length, name = read_uvarint(data, p + 3, end)
        if name >= 0 and length > 0:
            at = name + length - 1
    return at if at >= 0 and at + 16 <= end else np.int64(-1)


@compiled
def route(data: Any, starts: Any, stops: Any, control: Any, shards: int, routes: Any, counts: Any, sizes: Any) -> None:
    """Find where the values data[starts[i]:stops[i]] go, into `routes` (int32[n]).

    `control` (uint8[n]) tells control records. `counts` and `sizes` (int64[shards + 1], zeros) become the records and
    bytes that each shard and, last, the rest will get, those for everybody included.
    """
    for i in range(len(starts)):
        p, end = starts[i], stops[i]
        to = np.int64(shards)
        plain = end - p >= 3 and data[p] == 1 and data[p + 1] < 128 and data[p + 2] < 128
        if control[i] == 0 and plain:
            key = data[p + 1]
            place = np.int64(_id_place(data, p, end))
            if place >= 0:
                x = mix(read_long(data, place), read_long(data, place + 8))
                to = np.int64((x >> np.uint64(1)) % np.uint64(shards))
            elif BEGIN_TRANSACTION <= key <= ABORT_TRANSACTION or key == CLEAR_ELR:
                to = np.int64(shards + 1)
            elif key == NO_OP and end - p == 4 and data[p + 2] == 0 and data[end - 1] == 0:
                to = np.int64(shards + 2)
        routes[i] = to
        if to <= shards:
            counts[to] += 1
            sizes[to] += end - p
        elif to == shards + 1:
            for shard in range(shards + 1):
                counts[shard] += 1
                sizes[shard] += end - p


@compiled
def scatter(
    data: Any, starts: Any, stops: Any, routes: Any, shards: int, begins: Any, places: Any,
    into: Any, ends: Any, sources: Any,
) -> None:  # fmt: skip
    """Put the values of each shard one behind the other, in their order.

    Those of shard s begin at into[begins[s]] (bytes) and at place places[s] of `ends` (int32, where each ends, counted
    from its shard's begin) and `sources` (int32, which value it is); both int64 arrays are moved to their ends.
    """
    for i in range(len(starts)):
        to = np.int64(routes[i])
        first, last = to, to + 1
        if to == shards + 1:
            first, last = np.int64(0), np.int64(shards + 1)
        elif to == shards + 2:
            last = first
        for shard in range(first, last):
            at = begins[shard]
            for p in range(starts[i], stops[i]):
                into[at] = data[p]
                at += 1
            begins[shard] = at
            place = places[shard]
            ends[place] = stops[i] - starts[i]
            sources[place] = i
            places[shard] = place + 1
