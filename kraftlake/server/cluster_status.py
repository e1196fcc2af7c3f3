"""Status of a followed cluster: set by its thread, read by the metrics."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import attrs

from kraftlake.image.cluster_counts import ClusterCounts
from kraftlake.image.cluster_health import ClusterHealth
from kraftlake.protocol.observer.quorum_observer import QuorumObserver


class FollowState(StrEnum):
    """The state of following one cluster."""

    STARTING = "starting"
    """The lake is created, or compared with the quorum."""
    FOLLOWING = "following"
    WAITING = "waiting"
    """The quorum is unreachable, and is retried."""
    RETRYING = "retrying"
    """An error interrupted the following, which restarts after a pause."""
    STOPPED = "stopped"
    """An error ended the following for good."""


@attrs.define(kw_only=True)
class ClusterStatus:
    """The status of a followed cluster in plain values; offsets, ids and times (epoch ms) are −1 while unknown.

    `end_offset` is the lake's, `timestamp` its newest record's; `seen_to` is the end of the directory that is followed,
    where it is one, committed or not; `fetched_ms` is the time of a controller's last answer.
    `upkeep_ms` is the time of the lake's last upkeep, `upkeep_faults` how often a part of it failed. `counts` and
    `health` are None without an image. `changed_to` is the last offset of a record that changed the image.
    `observer` is the current one. `checked_to` is the change up to which the lake was last checked, `checked_at` when
    that was (monotonic seconds), `check_seconds` how long it took, `findings` what was found, None before the first.
    """

    name: str
    state: FollowState = FollowState.STARTING
    end_offset: int = -1
    timestamp: int = -1
    seen_to: int = -1
    high_watermark: int = -1
    fetched_ms: int = -1
    leader_id: int = -1
    leader_epoch: int = -1
    observer: QuorumObserver | None = None
    connections: int = 0
    restarts: int = 0
    upkeep_ms: int = -1
    upkeep_faults: int = 0
    counts: ClusterCounts | None = None
    health: ClusterHealth | None = None
    changed_to: int = -1
    checked_to: int = -1
    checked_at: float = -1.0
    check_seconds: float = 0.0
    check_faults: int = 0
    findings: Sequence[dict[str, Any]] | None = None

    @property
    def reconnects(self) -> int:
        """The number of connections made to controllers after the first one."""
        made = self.connections + (0 if self.observer is None else self.observer.connections)
        return max(0, made - 1)

    @property
    def last_offset(self) -> int | None:
        """The last offset of the lake; None while unknown, and for an empty lake."""
        return self.end_offset - 1 if self.end_offset > 0 else None

    @property
    def lag(self) -> int | None:
        """The number of offsets known to be committed that the lake lacks; None while unknown."""
        if self.high_watermark < 0 or self.end_offset < 0:
            return None
        return max(0, self.high_watermark - self.end_offset)

    @property
    def waiting(self) -> int | None:
        """The offsets of the followed directory that the lake lacks; None while unknown, and of a quorum."""
        return max(0, self.seen_to - self.end_offset) if self.seen_to >= 0 else None
