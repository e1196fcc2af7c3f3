"""What a leader knows of a follower. Source: org.apache.kafka.server.replica.Replica."""

from __future__ import annotations

import attrs

from kraftlake.replica_manager.errors import NotLeaderOrFollowerError
from kraftlake.replica_manager.logs.partition_log import UNKNOWN_OFFSET

NO_BROKER_EPOCH = -1
"""The broker epoch in a fetch of a broker that does not tell it."""


@attrs.frozen(kw_only=True, weakref_slot=False)
class ReplicaState:
    """How far a follower is, as its fetches tell.

    `last_fetch_leader_log_end_offset` is the leader's end at its last fetch, `last_caught_up_time_ms` when it was last
    known to have all that the leader had; times are epoch ms of the leader's clock. `broker_epoch` is None until the
    first fetch.
    """

    log_start_offset: int = UNKNOWN_OFFSET
    log_end_offset: int = UNKNOWN_OFFSET
    last_fetch_leader_log_end_offset: int = 0
    last_fetch_time_ms: int = 0
    last_caught_up_time_ms: int = 0
    broker_epoch: int | None = None

    def is_caught_up(self, leader_end_offset: int, now_ms: int, max_lag_ms: int) -> bool:
        """Whether it has everything, or had so at most `max_lag_ms` ago."""
        return leader_end_offset == self.log_end_offset or now_ms - self.last_caught_up_time_ms <= max_lag_ms


_NEVER_HEARD_OF = ReplicaState()


class Replica:
    """A follower of a partition that this broker leads; `state` is replaced as a whole, so it may be read unlocked."""

    __slots__ = ("broker_id", "state")

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.state = _NEVER_HEARD_OF

    def update_fetch_state(
        self,
        *,
        fetch_offset: int,
        start_offset: int,
        fetch_time_ms: int,
        leader_end_offset: int,
        broker_epoch: int,
        alive_broker_epoch: int | None,
    ) -> None:
        """Note a fetch: that it asks for `fetch_offset` says that it has all before it.

        It was caught up now when it asks for the leader's end, and at its last fetch when it asks for what was the end
        then. NotLeaderOrFollowerError for a fetch of an earlier incarnation of the broker.
        """
        if broker_epoch != NO_BROKER_EPOCH and alive_broker_epoch is not None and alive_broker_epoch > broker_epoch:
            raise NotLeaderOrFollowerError(
                f"Broker {self.broker_id} fetches with broker epoch {broker_epoch}, but is registered with "
                f"{alive_broker_epoch}."
            )
        before = self.state
        caught_up = before.last_caught_up_time_ms
        if fetch_offset >= leader_end_offset:
            caught_up = max(caught_up, fetch_time_ms)
        elif fetch_offset >= before.last_fetch_leader_log_end_offset:
            caught_up = max(caught_up, before.last_fetch_time_ms)
        self.state = ReplicaState(
            log_start_offset=start_offset,
            log_end_offset=fetch_offset,
            last_fetch_leader_log_end_offset=max(leader_end_offset, before.last_fetch_leader_log_end_offset),
            last_fetch_time_ms=fetch_time_ms,
            last_caught_up_time_ms=caught_up,
            broker_epoch=broker_epoch,
        )

    def reset(self, *, now_ms: int, leader_end_offset: int, is_new_leader: bool, in_sync: bool) -> None:
        """Start a leader epoch: a replica of the ISR counts as caught up now, any other as never.

        Where it is is unknown to a leader that was none before.
        """
        caught_up = now_ms if in_sync else 0
        if is_new_leader:
            self.state = ReplicaState(last_fetch_leader_log_end_offset=UNKNOWN_OFFSET, last_caught_up_time_ms=caught_up)
        else:
            self.state = attrs.evolve(
                self.state,
                last_fetch_leader_log_end_offset=leader_end_offset,
                last_fetch_time_ms=caught_up,
                last_caught_up_time_ms=caught_up,
            )
