"""A leader's state of a follower. Source: org.apache.kafka.server.replica.Replica."""

from __future__ import annotations

import attrs

from kraftlake.replica_manager.errors import NotLeaderOrFollowerError
from kraftlake.replica_manager.logs.log_values import UNKNOWN_OFFSET

NO_BROKER_EPOCH = -1
"""The broker epoch in fetches of a broker that does not send it."""


@attrs.frozen(kw_only=True, weakref_slot=False)
class ReplicaState:
    """The state of a follower, from its fetches.

    `last_fetch_leader_log_end_offset` is the leader's log end offset at the last fetch, `last_caught_up_time_ms` the
    last time at which the follower was known to have the whole log; times are epoch ms of the leader's clock.
    `broker_epoch` is None before the first fetch.
    """

    log_start_offset: int = UNKNOWN_OFFSET
    log_end_offset: int = UNKNOWN_OFFSET
    last_fetch_leader_log_end_offset: int = 0
    last_fetch_time_ms: int = 0
    last_caught_up_time_ms: int = 0
    broker_epoch: int | None = None

    def is_caught_up(self, leader_end_offset: int, now_ms: int, max_lag_ms: int) -> bool:
        """Whether the follower has the whole log, or had it at most `max_lag_ms` ago."""
        return leader_end_offset == self.log_end_offset or now_ms - self.last_caught_up_time_ms <= max_lag_ms


_UNKNOWN = ReplicaState()


@attrs.frozen(kw_only=True, weakref_slot=False)
class FollowerFetch:
    """A fetch as the leader has received it; `time_ms` (epoch ms) and `leader_end_offset` are those of the read."""

    fetch_offset: int
    log_start_offset: int
    broker_epoch: int
    time_ms: int
    leader_end_offset: int


@attrs.define(eq=False, weakref_slot=False)
class Replica:
    """A follower of a partition that this broker leads; `state` is immutable and may be read without a lock."""

    broker_id: int
    state: ReplicaState = _UNKNOWN

    def update_fetch_state(self, fetch: FollowerFetch, alive_broker_epoch: int | None) -> None:
        """Update the state by a fetch: the follower has all records before the fetch offset.

        The follower is caught up now if it fetches at the leader's end, and was caught up at its last fetch if it
        fetches at the leader's end of that time. Raises NotLeaderOrFollowerError for a fetch of an earlier incarnation
        of the broker.
        """
        broker_epoch, leader_end = fetch.broker_epoch, fetch.leader_end_offset
        if broker_epoch != NO_BROKER_EPOCH and alive_broker_epoch is not None and alive_broker_epoch > broker_epoch:
            raise NotLeaderOrFollowerError(
                f"Broker {self.broker_id} fetches with broker epoch {broker_epoch}, but is registered with "
                f"{alive_broker_epoch}."
            )
        before = self.state
        caught_up = before.last_caught_up_time_ms
        if fetch.fetch_offset >= leader_end:
            caught_up = max(caught_up, fetch.time_ms)
        elif fetch.fetch_offset >= before.last_fetch_leader_log_end_offset:
            caught_up = max(caught_up, before.last_fetch_time_ms)
        self.state = ReplicaState(
            log_start_offset=fetch.log_start_offset,
            log_end_offset=fetch.fetch_offset,
            last_fetch_leader_log_end_offset=max(leader_end, before.last_fetch_leader_log_end_offset),
            last_fetch_time_ms=fetch.time_ms,
            last_caught_up_time_ms=caught_up,
            broker_epoch=broker_epoch,
        )

    def left_isr(self) -> None:
        """Mark the follower as never caught up until the next fetch: the controller has removed it from the ISR.

        Kafka 4.4 counts such a follower as caught up for `replica.lag.time.max.ms`, and the high watermark waits for it
        while its broker is alive, even if its directory has failed: producers wait for a replica that no longer
        fetches.
        """
        self.state = attrs.evolve(self.state, last_caught_up_time_ms=0)

    def reset(self, *, now_ms: int, leader_end_offset: int, keeps_offsets: bool, in_sync: bool) -> None:
        """Start a leader epoch: a replica in the ISR counts as caught up now, any other as never caught up.

        Without `keeps_offsets`, the replica's offsets become unknown.
        """
        caught_up = now_ms if in_sync else 0
        if keeps_offsets:
            self.state = attrs.evolve(
                self.state,
                last_fetch_leader_log_end_offset=leader_end_offset,
                last_fetch_time_ms=caught_up,
                last_caught_up_time_ms=caught_up,
            )
        else:
            self.state = ReplicaState(last_fetch_leader_log_end_offset=UNKNOWN_OFFSET, last_caught_up_time_ms=caught_up)
