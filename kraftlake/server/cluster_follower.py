"""Follows one cluster in a separate thread, so that its faults do not affect other clusters."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

from kraftlake.protocol.node_error import NodeError
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.imports.follow_log import FollowStep
from kraftlake.replay.live.follow_quorum import QuorumFollower
from kraftlake.replay.live.open_quorum import observer_of
from kraftlake.replay.live.retry_policy import RetryPolicy
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.errors import ImportConflictError, UsageError, sentence_of
from kraftlake.runtime.log import get_logger
from kraftlake.server.cluster_status import ClusterStatus, FollowState
from kraftlake.server.follow_config import ClusterConfig
from kraftlake.server.followed_image import FollowedImage

_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 300.0
_FOR_GOOD: Final = (ImportConflictError, UsageError)
"""Errors that no retry can fix: the lake and the quorum disagree, or the quorum deleted records that the lake lacks."""


class ClusterFollower:
    """Keeps a cluster's lake up to date with its quorum until `stop` is set.

    An unreachable quorum is retried, also at the start. After a fault that may pass, such as a full disk, the following
    restarts after a pause, which doubles from one second up to five minutes until records are appended again. Other
    faults end it. All faults are logged and shown in `status`; none is raised.
    """

    def __init__(self, config: ClusterConfig, *, stop: threading.Event, clock: Clock, quiet_pause: float = 0.0) -> None:
        """Initialize; `quiet_pause` is that of QuorumFollower."""
        self.config = config
        self._quiet_pause = quiet_pause
        self.status = ClusterStatus(name=config.name)
        self.image: FollowedImage | None = None
        """The image of the lake; None before its first replay, and if its log can't be replayed."""
        self._clock = clock
        self._stop = stop
        self._pause = _FIRST_PAUSE
        self._began = False
        self._reason = ""
        self._log = get_logger(__name__).bind(cluster=config.name, lake=config.lake)

    def run(self) -> None:
        """Follow until `stop` is set or a fault ends it."""
        while not self._stop.is_set():
            try:
                self._follow()
            except Exception as fault:
                if self._stop.is_set() and isinstance(fault, NodeError | _StoppedError):
                    return
                if not self._may_pass(fault):
                    return

    def _may_pass(self, fault: Exception) -> bool:
        """Log a fault, and pause if another attempt follows; returns whether one does."""
        reason = sentence_of(fault)
        if isinstance(fault, _FOR_GOOD):
            self.status.state = FollowState.STOPPED
            self._log.error("stopped", reason=reason, offset=self.status.last_offset)
            return False
        self.status.state = FollowState.RETRYING
        self.status.restarts += 1
        self._log.error("failed", reason=reason, retry_in_seconds=self._pause, offset=self.status.last_offset)
        self._stop.wait(self._pause)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        return True

    def _follow(self) -> None:
        status, config = self.status, self.config
        status.state, self.image, self._began = FollowState.STARTING, None, False
        with observer_of(config.bootstrap, command_config=config.command_config) as observer:
            status.observer = observer
            follower = QuorumFollower(
                observer, config.lake, name=config.bootstrap, on_append=self._take, quiet_pause=self._quiet_pause
            )
            try:
                follower.run(self._on_step, patience=_Watched(self, follower, self._stop), stop=self._stop)
            finally:
                status.observer, status.connections = None, status.connections + observer.connections

    def _on_step(self, step: FollowStep) -> None:
        """Process a step; the first one creates the image."""
        self.status.end_offset = step.end_offset
        if self._began:
            return
        self._began, self.status.state = True, FollowState.FOLLOWING
        self._log.info("following", offset=step.end_offset - 1, records=step.records, snapshots=step.snapshots)
        self._replay(self._begin_image)

    def _begin_image(self) -> None:
        self.image = FollowedImage(self.config.lake, self._changed)
        self.status.timestamp = self.image.timestamp

    def _take(self, batches: Sequence[RecordBatch]) -> None:
        """Process batches that were appended to the lake."""
        self._pause = _FIRST_PAUSE
        self.status.end_offset = batches[-1].last_offset + 1
        self.status.timestamp = batches[-1].timestamp
        image = self.image
        if image is not None:
            self._replay(lambda: image.take(batches))

    def _replay(self, replay: Callable[[], object]) -> None:
        """Replay the lake; a log that can't be replayed is still followed, without counts."""
        try:
            replay()
        except Exception as fault:
            self.image = None
            self.status.counts = self.status.health = None
            self._log.error("not_replayed", reason=sentence_of(fault), offset=self.status.last_offset)

    def _changed(self, followed: FollowedImage) -> None:
        image, status = followed.image, self.status
        status.counts, status.health = followed.metrics.counts, followed.health
        status.changed_to = image.offset
        self._log.info("replayed", offset=image.offset, epoch=image.provenance.epoch)

    def failed(self, fault: NodeError) -> None:
        """Record that the quorum can't be reached."""
        status, reason = self.status, str(fault)
        if (status.state, self._reason) != (FollowState.WAITING, reason):
            status.state, self._reason = FollowState.WAITING, reason
            self._log.warning("waiting", reason=reason, offset=status.last_offset)

    def answered(self, high_watermark: int) -> None:
        """Record that a controller answered."""
        status = self.status
        status.fetched_ms = self._clock.milliseconds()
        status.high_watermark = max(status.high_watermark, high_watermark)
        if status.state is FollowState.WAITING:
            status.state = FollowState.FOLLOWING if self._began else FollowState.STARTING
            self._log.info("answered", offset=status.last_offset)
        leader = None if status.observer is None else status.observer.leader
        if leader is not None and (leader.id, leader.epoch) != (status.leader_id, status.leader_epoch):
            status.leader_id, status.leader_epoch = leader.id, leader.epoch
            self._log.info("leader", leader=leader.id, epoch=leader.epoch)
        if self._stop.is_set() and not self._began:
            raise _StoppedError  # a lake that is being made takes long, and there is none before it is whole


class _Watched(RetryPolicy):
    """Waits for the quorum without a time limit, unless the process is to end, and notifies the follower."""

    def __init__(self, owner: ClusterFollower, follower: QuorumFollower, stop: threading.Event) -> None:
        super().__init__(wait=stop.wait, reached=True, answered=lambda: owner.answered(follower.high_watermark))
        self._owner, self._stop = owner, stop

    def failed(self, fault: NodeError) -> bool:
        """Pause; returns whether the process is to end."""
        if self._stop.is_set():
            return True
        self._owner.failed(fault)
        return super().failed(fault)


class _StoppedError(Exception):
    """Signals that the process is to end before a lake exists."""
