"""What a replica manager does to its partitions, told one by one to whoever listens."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

import attrs

from kraftlake.delta import TopicPartition
from kraftlake.image import PartitionRegistration
from kraftlake.records.uuid import Uuid


class TransitionKind(Enum):
    """Each thing that can happen to a replica or a fetcher; the values are what machines are told."""

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
    """A fetcher: which of those that fetch from a leader, and where that leader is reached."""

    fetcher_id: int
    leader_id: int
    host: str
    port: int


@attrs.frozen(kw_only=True, weakref_slot=False)
class Transition:
    """One thing that has happened.

    `partition` is None where it happened to a fetcher or to the broker. `before` and `after` are the states of the
    partition in the images around the delta, None where it was or is not there. `offset` is where fetching starts,
    `directory` the log directory it is about, `reason` says in words why, where the kind alone does not.
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
"""Called for each transition as it happens, with locks held: it must not call back."""
