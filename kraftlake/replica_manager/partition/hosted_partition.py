"""The states of a partition on a broker. Source: org.apache.kafka.server.HostedPartition."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from kraftlake.replica_manager.partition.partition import Partition


@attrs.frozen(weakref_slot=False)
class OnlinePartition:
    """The broker hosts the partition, and its log is usable."""

    partition: Partition


@attrs.frozen(weakref_slot=False)
class OfflinePartition:
    """The log directory has failed; `partition` is the partition that was online before, if there was one."""

    partition: Partition | None = None


HostedPartition: TypeAlias = OnlinePartition | OfflinePartition | None
"""None: the broker does not host the partition."""
