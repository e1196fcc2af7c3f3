"""Whether a broker hosts a partition. Source: org.apache.kafka.server.HostedPartition."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from kraftlake.replica_manager.partition.partition import Partition


@attrs.frozen(weakref_slot=False)
class OnlinePartition:
    """The broker hosts it and its log can be used."""

    partition: Partition


@attrs.frozen(weakref_slot=False)
class OfflinePartition:
    """The broker hosts it, but its log lies in a directory that has failed; `partition` where it was online before."""

    partition: Partition | None = None


HostedPartition: TypeAlias = OnlinePartition | OfflinePartition | None
"""None: the broker does not host it."""
