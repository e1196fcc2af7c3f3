"""Record objects of topics replayed in bulk, as the values that the object codec makes of them. Imports numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kraftlake.delta.topics.bulk_change import BulkChange
from kraftlake.records.serde import encode_value


def replay_records(bulk: BulkChange, records: Sequence[Any]) -> tuple[int, list[tuple[int, str | None]]]:
    """Replay records of topics as far as possible; returns as `BulkChange.replay`.

    Raises UnwritableMetadataError, with nothing replayed, for a record that Kafka could not write.
    """
    values = [encode_value(record, record.VERSIONS.high) for record in records]
    ends = np.cumsum([0, *map(len, values)], dtype=np.int64)
    data = np.frombuffer(b"".join(values), np.uint8)
    return bulk.replay(data, ends[:-1], ends[1:], 0, len(values))
