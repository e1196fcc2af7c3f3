"""A controller inside a tool: claims a lake, runs commands, and ends with the process."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.quorum.active_controller import Executed
from kraftlake.controller.quorum.followed_log import FollowedLog
from kraftlake.controller.state import Command, ControllerState
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.loader.quorum_state import leader_at
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.clock import Clock, SystemClock
from kraftlake.runtime.errors import LakeError

T = TypeVar("T")
EMBEDDED_NODE_ID: Final = 0x7FFF_FFFF
"""The node id of embedded controllers, which do not stay: a lake whose last claim has this id is free."""
WATCH_SECONDS: Final = 2.0
"""The time for which the log is watched for another controller, which would write several times in that time."""


class EmbeddedController:
    """The active controller of a lake, until another controller claims it. For one thread."""

    def __init__(
        self,
        log: MetadataLog,
        *,
        take_over: bool = False,
        clock: Clock | None = None,
        draws: random.Random | None = None,
        watch_seconds: float = WATCH_SECONDS,
        settings: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Claim `log`, and write the first records of the epoch; `settings` are further ones of ControllerConfig.

        Raises LakeError for an imported lake and, unless `take_over`, for a lake that another controller writes to: if
        the last claim was not that of an embedded controller, the log is watched for `watch_seconds`.
        """
        if log.role != "controlled":
            raise LakeError(
                f"{log.path} is an imported lake, which only imports write to; `kraftlake fork {log.path} COPY` makes "
                "a copy that commands can change."
            )
        self._clock = clock or SystemClock()
        self._log = log
        followed = FollowedLog(MetadataLog.open(log.path))
        if not take_over and log.end_offset > log.start_offset:
            leader = followed.loader.quorum.leader_id
            if leader is None:  # replayed from a snapshot, which does not say it
                leader = leader_at(LakeReader(followed.log), followed.log.end_offset - 1)
            if leader != EMBEDDED_NODE_ID:
                _refuse_active(followed, leader, watch_seconds)
        self.epoch = log.claim(EMBEDDED_NODE_ID, timestamp=self._clock.milliseconds())
        followed.catch_up()
        config = ControllerConfig(node_id=EMBEDDED_NODE_ID, cluster_id=log.cluster_id or "", **settings)
        draws = draws or random.Random()  # noqa: S311 - where replicas go is no secret
        self._active = followed.take_over(config, self.epoch, clock=self._clock, draws=draws)
        self._append(self._active.activate(followed.bootstrap))

    @property
    def image(self) -> MetadataImage:
        """The image of the durable records."""
        return self._active.committed

    @property
    def state(self) -> ControllerState:
        """The state that commands run against."""
        return self._active.state

    def run(self, command: Command[T]) -> T:
        """Run a command; returns its response when its records are durable.

        Raises ControllerApiError if the command is refused, FencedEpochError if another controller has claimed the
        lake.
        """
        executed = self._active.execute(command)
        self._append(executed)
        return executed.response

    def _append(self, executed: Executed[T]) -> None:
        base = executed.base_offset
        for records in executed.batches:
            batch = RecordBatch.of(base, self.epoch, self._clock.milliseconds(), records)
            self._log.append([batch], epoch=self.epoch, expected_end_offset=base)
            base = batch.last_offset + 1
            self._active.committed_up_to(batch.last_offset)


def _refuse_active(followed: FollowedLog, leader: int | None, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if followed.catch_up():
            who = "Another controller" if leader is None else f"Controller {leader}"
            raise LakeError(
                f"{who} is active: it writes to {followed.log.path} in epoch {followed.log.epoch}. Ask "
                "it, or take the lake over from it with --take-over."
            )
        time.sleep(0.02)
