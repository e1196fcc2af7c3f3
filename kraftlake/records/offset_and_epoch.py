"""A position in a log: an offset and an epoch."""

from __future__ import annotations

from typing import NamedTuple


class OffsetAndEpoch(NamedTuple):
    """An offset and the epoch of the record before it: the end of an epoch, or the id of a snapshot that ends there.

    Source: org.apache.kafka.server.common.OffsetAndEpoch.
    """

    offset: int
    epoch: int
