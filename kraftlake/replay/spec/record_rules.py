"""The rules on single records, and the record that a violation names. Imports numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from kraftlake.delta.topics.bulk_change import TOPIC_KINDS
from kraftlake.records.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from kraftlake.records.metadata_version import MetadataVersion, from_feature_level
from kraftlake.replay.loader.record_faults import type_of
from kraftlake.replay.log.delta_chunk import DeltaChunk
from kraftlake.replay.spec.partition_states import PartitionStates

_VERSION_BYTE: Final = 2
_VERSIONS: Final[dict[int, Callable[[MetadataVersion], int]]] = {
    PartitionRecord.API_KEY: lambda version: version.partition_record_version,
    PartitionChangeRecord.API_KEY: lambda version: version.partition_change_record_version,
    RegisterBrokerRecord.API_KEY: lambda version: version.register_broker_record_version,
    BrokerRegistrationChangeRecord.API_KEY: lambda version: version.broker_registration_change_record_version,
}
"""The newest version that a metadata.version allows, by the api key of the records."""


class Place(NamedTuple):
    """A record: its offset and type."""

    offset: int
    record: str

    @classmethod
    def of(cls, chunk: DeltaChunk, place: int) -> Place:
        """A record of a chunk, by number."""
        return cls(int(chunk.records.offsets[place]), type_of(chunk.records.message(place)))


def version_rulings(
    chunk: DeltaChunk, levels: Callable[[Any], Any], count: Callable[[str, int], None]
) -> Iterator[tuple[str, int, str]]:
    """The records that are in a version which metadata.version does not allow: property, number, and fault.

    `levels` gives the level of metadata.version after deltas, `count` takes the number of records that were judged.
    """
    records = chunk.records
    places = np.flatnonzero(records.are_of(_VERSIONS))
    deltas = chunk.deltas[places]
    allowed_by = np.maximum(levels(deltas), levels(deltas - 1))  # either may have written a batch that changes it
    known = allowed_by > 0
    places, allowed_by = places[known], allowed_by[known]
    count("record_version", len(places))
    versions, kinds = records.data[records.starts[places] + _VERSION_BYTE], records.kinds[places]
    for kind, allowed in _VERSIONS.items():
        for level in np.unique(allowed_by).tolist():
            version = from_feature_level(level)
            newest = allowed(version)
            for row in np.flatnonzero((kinds == kind) & (allowed_by == level) & (versions > newest)).tolist():
                said = f"records of partitions and registrations have a version that metadata.version allows; {version}"
                yield "record_version", int(places[row]), f"{said} has version {newest}, and it is {versions[row]}"


def record_at(chunk: DeltaChunk, effective: int, states: PartitionStates, row: int) -> Place:
    """The record that takes effect at an offset and is of a partition; the last one there if none is of it alone."""
    records = chunk.records
    first, last = np.searchsorted(records.effective, [effective, effective + 1]).tolist()
    some = records.part(first, last)
    of_topics = np.flatnonzero(some.are_of(TOPIC_KINDS)).tolist()
    if last - first > 1:
        id_, partition = states.names.ids[int(states.topics[row])].as_py(), int(states.partitions[row])
        for place in reversed(of_topics):
            message = some.message(place)
            same = str(getattr(message, "topic_id", "")) == id_
            if same and getattr(message, "partition_id", None) == partition:
                return Place(int(some.offsets[place]), type_of(message))
    return Place.of(chunk, last - 1) if last > first else Place(effective, "NO_OP_RECORD")
