"""Columns as the bytes that `browser/columns.js` unpacks. Imports numpy."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from kraftlake.diagnosis.page.gathered import Gathered

_ALIGNMENT: Final = 8
_LEVEL: Final = 6


def packed(gathered: Gathered, about: Mapping[str, Any], stability: Mapping[str, Any] | None = None) -> bytes:
    """The whole page, deflated (zlib): the length of a JSON head (uint32), the head, and the arrays that it names.

    The head has `about`, the counts of `stability`, the texts, and by name `[type, place, length]` of each array. All
    numbers are little-endian; an array of multi-byte numbers is stored as planes of bytes by significance, all lowest
    bytes first, and each number of a `differences` array is the difference to the number before it. Both improve
    compression.
    """
    brokers = gathered.brokers
    arrays = {
        "offsets": _differences(gathered.offsets, np.float64),
        "times": _differences(gathered.times, np.float64),
        "epochs": _differences(gathered.epochs, np.int32),
        "rowTopics": _differences(gathered.row_topics, np.int32),
        "rowPartitions": _differences(gathered.row_partitions, np.int32),
        "rowChanges": np.bincount(gathered.change_rows, minlength=len(gathered.row_topics)).astype(np.int32),
        "changeMoments": _differences(gathered.change_moments, np.int32),
        "changeStates": gathered.change_states.astype(np.int32),
        "eventMoments": _differences(gathered.event_moments, np.int32),
        "eventKinds": gathered.event_kinds.astype(np.uint8),
        "eventRows": _differences(gathered.event_rows, np.int32),
        "eventTopics": _differences(gathered.event_topics, np.int32),
        "eventTails": gathered.event_tails.astype(np.int32),
        "brokerMoments": _differences(brokers.moments, np.int32),
        "brokerNumbers": brokers.brokers.astype(np.int32),
        "brokerStates": brokers.states,
    }
    texts = {
        "about": dict(about),
        "stability": stability,
        "topics": gathered.topics,
        "topicIds": gathered.topic_ids,
        "kinds": gathered.kinds.to_pylist(),
        "tails": gathered.tails.to_pylist(),
        "brokers": brokers.ids,
        "racks": brokers.racks,
    }
    places, parts = {}, []
    place = 0
    for name, array in arrays.items():
        part = _shuffled(array)
        places[name] = [array.dtype.name, place, len(array)]
        parts.append(part + bytes(-len(part) % _ALIGNMENT))
        place += len(parts[-1])
    plain = json.dumps(texts | {"arrays": places})
    head = f'{plain[:-1]}, "states": [{",".join(gathered.states.to_pylist())}]}}'.encode()
    compressor = zlib.compressobj(_LEVEL)
    pieces = [len(head).to_bytes(4, "little"), head, *parts]
    return b"".join([*map(compressor.compress, pieces), compressor.flush()])


def _differences(numbers: Any, of: Any) -> Any:
    """The difference of each number to the one before it, that of the first to 0."""
    return np.diff(numbers, prepend=0).astype(of)


def _shuffled(array: Any) -> bytes:
    """The bytes of an array by their significance."""
    little = array.astype(array.dtype.newbyteorder("<"))
    return little.view(np.uint8).reshape(len(array), array.itemsize).T.tobytes()  # type: ignore[no-any-return]
