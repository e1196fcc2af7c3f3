"""The transitions of replicas and fetchers, which a replica manager reports to its listener."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.records.uuid import Uuid


class TransitionKind(Enum):
    """The kinds of transitions; the values appear in JSON."""

    LOG_CREATED = "log-created"
    LOG_DELETED = "log-deleted"
    LOG_DELETE_FAILED = "log-delete-failed"
    BECAME_LEADER = "became-leader"
    LEADER_UPDATED = "leader-updated"
    BECAME_FOLLOWER = "became-follower"
    FOLLOWER_UPDATED = "follower-updated"
    STALE_EPOCH_IGNORED = "stale-epoch-ignored"
    FETCHER_STARTED = "fetcher-started"
    FETCHER_STOPPED = "fetcher-stopped"
    FETCHING_STARTED = "fetching-started"
    FETCHING_STOPPED = "fetching-stopped"
    NOT_FETCHING = "not-fetching"
    REPLICA_STOPPED = "replica-stopped"
    REPLICA_FAILED = "replica-failed"
    PARTITION_OFFLINE = "partition-offline"
    DIRECTORY_REPORTED = "directory-reported"
    DIRECTORY_FAILED = "directory-failed"
    SHUTDOWN_BEGUN = "controlled-shutdown-begun"
    BROKER_STARTED = "broker-started"


@attrs.frozen(kw_only=True, weakref_slot=False)
class FetcherName:
    """A fetcher's id among the fetchers of one leader, and the leader's address."""

    fetcher_id: int
    leader_id: int
    host: str
    port: int


@attrs.frozen(kw_only=True, weakref_slot=False)
class Transition:
    """A change of a replica, a fetcher or the broker.

    `partition` is None for a fetcher and for the broker. `before` and `after` are the partition's states in the images
    before and after the delta, None where the partition does not exist. `offset` is the offset at which fetching
    starts, `directory` the log directory concerned, `reason` the cause in words unless the kind implies it.
    """

    kind: TransitionKind
    partition: TopicPartition | None = None
    topic_id: Uuid | None = None
    before: PartitionRegistration | None = None
    after: PartitionRegistration | None = None
    fetcher: FetcherName | None = None
    offset: int | None = None
    directory: str | None = None
    reason: str = ""


TransitionListener: TypeAlias = Callable[[Transition], None]
"""Called for each transition with locks held: must not call the replica manager."""
