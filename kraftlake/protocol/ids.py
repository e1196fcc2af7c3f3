"""Conversion between Kafka's ids and kio's, where None stands for the id of zeros."""

from __future__ import annotations

import uuid

from kraftlake.records.uuid import Uuid


def kafka_id(found: uuid.UUID | None) -> Uuid:
    """Convert an id from kio."""
    return Uuid.ZERO if found is None else Uuid(found.bytes)


def wire_id(id_: Uuid | None) -> uuid.UUID | None:
    """Convert an id for kio; the id of zeros becomes None."""
    return None if id_ is None or id_ == Uuid.ZERO else uuid.UUID(bytes=bytes(id_))
