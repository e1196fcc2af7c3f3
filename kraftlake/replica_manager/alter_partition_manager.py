"""Leaders' proposals of ISRs on their way to the controller: one request at a time, with all that have gathered.

Source: org.apache.kafka.server.partition.DefaultAlterPartitionManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import RLock
from typing import Final, Protocol

import attrs

from kraftlake.delta import TopicIdPartition
from kraftlake.replica_manager.controller_channel import AlterPartitionAnswer, LeaderAndIsr
from kraftlake.replica_manager.errors import ErrorCode, error_of
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)

RETRY_AFTER_MS: Final = 50


@attrs.frozen(kw_only=True)
class AlterPartitionRequest:
    """What a broker proposes for partitions that it leads."""

    broker_id: int
    broker_epoch: int
    partitions: Mapping[TopicIdPartition, LeaderAndIsr]


@attrs.frozen(kw_only=True)
class AlterPartitionResponse:
    """The controller's answer; with an error for the whole request `partitions` are empty."""

    error: ErrorCode = ErrorCode.NONE
    partitions: Mapping[TopicIdPartition, AlterPartitionAnswer] = attrs.field(factory=dict)


class ControllerChannel(Protocol):
    """Reaches the active controller, whoever that is, however often it has to be tried."""

    def alter_partition(
        self, request: AlterPartitionRequest, on_answer: Callable[[AlterPartitionResponse], None]
    ) -> None:
        """Send; `on_answer` is called once, with NETWORK_EXCEPTION where nobody could be reached in time."""


class BatchingAlterPartitionManager:
    """An `AlterPartitionManager` that has one request on its way at most.

    `schedule` is called with a delay in ms and what to do then. What fails as a whole is sent again after a while;
    proposals stay until the controller has answered each. A partition has one proposal at most: another is answered
    OPERATION_NOT_ATTEMPTED. Callbacks are called without a lock; what one raises is logged and keeps no other from its
    answer. A request that can't be sent counts as one that has failed.
    """

    def __init__(
        self,
        broker_id: int,
        broker_epoch: Callable[[], int],
        channel: ControllerChannel,
        schedule: Callable[[float, Callable[[], None]], None],
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._channel = channel
        self._schedule = schedule
        self._lock = RLock()
        self._inflight: object | None = None
        """The attempt that has not been answered."""
        self._unsent: dict[TopicIdPartition, tuple[LeaderAndIsr, Callable[[AlterPartitionAnswer], None]]] = {}

    def submit(
        self,
        partition: TopicIdPartition,
        leader_and_isr: LeaderAndIsr,
        on_answer: Callable[[AlterPartitionAnswer], None],
    ) -> None:
        """Propose a state."""
        with self._lock:
            taken = partition in self._unsent
            if not taken:
                self._unsent[partition] = (leader_and_isr, on_answer)
        if taken:
            _call(partition, on_answer, ErrorCode.OPERATION_NOT_ATTEMPTED)
        else:
            self.send()

    def send(self) -> None:
        """Send what has gathered, unless a request is on its way."""
        with self._lock:
            if self._inflight is not None or not self._unsent:
                return
            attempt = self._inflight = object()
            sent = {partition: proposal for partition, (proposal, _) in self._unsent.items()}
        try:
            request = AlterPartitionRequest(
                broker_id=self._broker_id, broker_epoch=self._broker_epoch(), partitions=sent
            )
            self._channel.alter_partition(request, lambda response: self._answered(attempt, sent, response))
        except Exception as fault:
            self._answered(attempt, sent, AlterPartitionResponse(error=error_of(fault)))

    def _answered(self, attempt: object, sent: Iterable[TopicIdPartition], response: AlterPartitionResponse) -> None:
        answered: list[tuple[TopicIdPartition, Callable[[AlterPartitionAnswer], None], AlterPartitionAnswer]] = []
        with self._lock:
            if self._inflight is not attempt:
                return  # another answer has come before
            self._inflight = object()  # a second answer is for nobody, and the next request waits for the callbacks
            if response.error is ErrorCode.NONE:
                for partition in sent:
                    answer = response.partitions.get(partition)
                    if answer is None:
                        _log.warning("alter_partition_unanswered", partition=str(partition))
                    else:
                        answered.append((partition, self._unsent.pop(partition)[1], answer))
        for partition, on_answer, answer in answered:
            _call(partition, on_answer, answer)
        with self._lock:
            self._inflight = None
        if response.error is ErrorCode.NONE:
            self.send()
        else:
            _log.warning("alter_partition_failed", error=response.error.name)
            self._schedule(RETRY_AFTER_MS, self.send)


def _call(
    partition: TopicIdPartition, on_answer: Callable[[AlterPartitionAnswer], None], answer: AlterPartitionAnswer
) -> None:
    try:
        on_answer(answer)
    except Exception as fault:
        _log.error(
            "alter_partition_callback_failed", partition=str(partition), cause=f"{type(fault).__name__}: {fault}"
        )
