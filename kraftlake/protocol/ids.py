"""Ids as kio reads and writes them, which has None for the id of zeros."""

from __future__ import annotations

import uuid

from kraftlake.records.uuid import Uuid


def kafka_id(found: uuid.UUID | None) -> Uuid:
    """An id that kio has read."""
    return Uuid.ZERO if found is None else Uuid(found.bytes)


def wire_id(id_: Uuid | None) -> uuid.UUID | None:
    """An id for kio to write; None is the id of zeros."""
    return None if id_ is None or id_ == Uuid.ZERO else uuid.UUID(bytes=bytes(id_))
