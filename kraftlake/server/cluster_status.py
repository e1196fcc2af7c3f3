"""What is known of a cluster that is followed: set by its thread, read by the metrics."""

from __future__ import annotations

from enum import StrEnum

import attrs

from kraftlake.image.cluster_counts import ClusterCounts
from kraftlake.protocol.observer.quorum_observer import QuorumObserver


class State(StrEnum):
    """What the following of a cluster is doing."""

    STARTING = "starting"
    """The lake is made, or compared with the quorum."""
    FOLLOWING = "following"
    WAITING = "waiting"
    """The quorum can't be asked, and is asked again."""
    RETRYING = "retrying"
    """An error ended the following, which is begun again after a pause."""
    STOPPED = "stopped"
    """An error ended the following for good."""


@attrs.define(kw_only=True)
class ClusterStatus:
    """Plain values; offsets, ids and times (epoch ms) are −1 while they are unknown.

    `end_offset` is that of the lake, `timestamp` that of its newest record, `fetched_ms` when a controller last
    answered. `counts` and `under_min_isr` are None while there is no image. `changed_to` is the last offset of a
    record that changed the image. `observer` is the one of this moment.
    """

    name: str
    state: State = State.STARTING
    end_offset: int = -1
    timestamp: int = -1
    high_watermark: int = -1
    fetched_ms: int = -1
    leader_id: int = -1
    leader_epoch: int = -1
    observer: QuorumObserver | None = None
    connections: int = 0
    restarts: int = 0
    counts: ClusterCounts | None = None
    under_min_isr: int | None = None
    changed_to: int = -1

    @property
    def reconnects(self) -> int:
        """How many connections to controllers were made after the first one."""
        made = self.connections + (0 if self.observer is None else self.observer.connections)
        return max(0, made - 1)

    @property
    def last_offset(self) -> int | None:
        """The last offset of the lake; None while that is unknown, and for an empty one."""
        return self.end_offset - 1 if self.end_offset > 0 else None

    @property
    def lag(self) -> int | None:
        """How many offsets that are known to be committed the lake lacks; None while that is unknown."""
        if self.high_watermark < 0 or self.end_offset < 0:
            return None
        return max(0, self.high_watermark - self.end_offset)
