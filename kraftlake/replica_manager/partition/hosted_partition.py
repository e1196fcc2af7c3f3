"""The states of a partition on a broker. Source: org.apache.kafka.server.HostedPartition."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from kraftlake.replica_manager.partition.partition import Partition


@attrs.frozen(weakref_slot=False)
class OfflinePartition:
    """A partition whose log directory has failed; `partition` is the partition that was online before, if any."""

    partition: Partition | None = None


HostedPartition: TypeAlias = Partition | OfflinePartition
"""A partition that the broker hosts: online, with a usable log, or offline."""
