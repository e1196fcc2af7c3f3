"""The progress of the nodes that follow the log, as the active controller learns it from their requests.

Source: org.apache.kafka.raft.LeaderState, which learns the progress only from fetches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from kraftlake.records.uuid import Uuid
from kraftlake.runtime.clock import Clock

_OBSERVED_MS: Final = 300_000
"""The time for which a node counts as an observer after its last request (LeaderState.OBSERVER_SESSION_TIMEOUT_MS)."""


@attrs.frozen(kw_only=True)
class NodeProgress:
    """The progress of one node; times in epoch ms, −1 if unknown.

    `last_fetch_leader_log_end_offset` is the end of the leader's log when the node last reported.
    """

    id: int
    directory_id: Uuid = Uuid.ZERO
    log_end_offset: int = -1
    last_fetch_ms: int = -1
    last_fetch_leader_log_end_offset: int = -1
    last_caught_up_ms: int = -1


class ReplicaProgress:
    """Collects the progress that nodes report: in a Fetch, or, for a broker, in a heartbeat. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._replicas: dict[int, NodeProgress] = {}

    def note(self, id_: int, log_end_offset: int, *, end_offset: int, directory_id: Uuid = Uuid.ZERO) -> None:
        """Note the progress of a node, while the log ends at `end_offset`.

        The node is caught up now if it has the whole log, else it was at its last report if it has the log of then.
        """
        now = self._clock.milliseconds()
        before = self._replicas.get(id_, NodeProgress(id=id_))
        caught_up = before.last_caught_up_ms
        if log_end_offset >= end_offset:
            caught_up = now
        elif 0 < before.last_fetch_leader_log_end_offset <= log_end_offset:
            caught_up = max(caught_up, before.last_fetch_ms)
        self._replicas[id_] = NodeProgress(
            id=id_, log_end_offset=min(log_end_offset, end_offset), last_fetch_ms=now,
            last_fetch_leader_log_end_offset=end_offset,
            directory_id=before.directory_id if directory_id == Uuid.ZERO else directory_id,
            last_caught_up_ms=caught_up,
        )  # fmt: skip

    def described(
        self, *, leader: int, controllers: Iterable[int], brokers: Iterable[int], end_offset: int
    ) -> tuple[list[NodeProgress], list[NodeProgress]]:
        """The voters, which are the registered controllers, and the observers, both by id.

        The leader's progress is the log's end; other nodes have only the progress that they reported.
        """
        now = self._clock.milliseconds()
        self_ = NodeProgress(id=leader, log_end_offset=end_offset, last_fetch_ms=now, last_caught_up_ms=now)
        known = {id_: one for id_, one in list(self._replicas.items()) if now - one.last_fetch_ms <= _OBSERVED_MS}
        voters = sorted({*controllers, leader})
        observers = sorted({*known, *brokers} - {*voters})
        known[leader] = self_
        return (
            [known.get(id_, NodeProgress(id=id_)) for id_ in voters],
            [known.get(id_, NodeProgress(id=id_)) for id_ in observers],
        )
