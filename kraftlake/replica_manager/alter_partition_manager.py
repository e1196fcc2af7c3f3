"""Sends ISR changes proposed by leaders to the controller, in batches, one request at a time.

Source: org.apache.kafka.server.partition.DefaultAlterPartitionManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import RLock
from typing import Final, Protocol

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicIdPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.controller_channel import AlterPartitionAnswer, LeaderAndIsr
from kraftlake.replica_manager.errors import error_of
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)

RETRY_AFTER_MS: Final = 50


@attrs.frozen(kw_only=True)
class AlterPartitionRequest:
    """The proposals of a broker for partitions that it leads."""

    broker_id: int
    broker_epoch: int
    partitions: Mapping[TopicIdPartition, LeaderAndIsr]


@attrs.frozen(kw_only=True)
class AlterPartitionResponse:
    """The controller's answer; with an error for the whole request, `partitions` is empty."""

    error: ErrorCode = ErrorCode.NONE
    partitions: Mapping[TopicIdPartition, AlterPartitionAnswer] = attrs.field(factory=dict)


class ControllerChannel(Protocol):
    """A channel to the active controller, which finds the controller and retries."""

    def alter_partition(
        self, request: AlterPartitionRequest, on_answer: Callable[[AlterPartitionResponse], None]
    ) -> None:
        """Send; calls `on_answer` once, with NETWORK_EXCEPTION when no controller has answered in time."""


@attrs.define(eq=False, repr=False)
class BatchingAlterPartitionManager:
    """An `AlterPartitionManager` with at most one request in flight.

    `schedule` takes a delay in ms and an action. A request that fails as a whole, or can't be sent, is sent again after
    RETRY_AFTER_MS; a proposal is kept until the controller has answered it. A partition has at most one proposal:
    another one is answered OPERATION_NOT_ATTEMPTED. Callbacks are called without a lock; an exception of a callback is
    logged and does not affect the others.
    """

    _broker_id: int
    _broker_epoch: Callable[[], int]
    _channel: ControllerChannel
    _schedule: Callable[[float, Callable[[], None]], None]
    _lock: RLock = attrs.field(factory=RLock, init=False)
    _inflight: object | None = attrs.field(default=None, init=False)
    """The unanswered attempt, if any."""
    _unsent: dict[TopicIdPartition, tuple[LeaderAndIsr, Callable[[AlterPartitionAnswer], None]]] = attrs.field(
        factory=dict, init=False
    )

    def submit(
        self,
        partition: TopicIdPartition,
        leader_and_isr: LeaderAndIsr,
        on_answer: Callable[[AlterPartitionAnswer], None],
    ) -> None:
        """Propose a state, to be sent with the next request."""
        with self._lock:
            taken = partition in self._unsent
            if not taken:
                self._unsent[partition] = (leader_and_isr, on_answer)
        if taken:
            _call(partition, on_answer, ErrorCode.OPERATION_NOT_ATTEMPTED)
        else:
            self.send()

    def send(self) -> None:
        """Send all proposals, unless a request is in flight."""
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
                return  # a second answer to the same request
            self._inflight = object()  # no attempt: ignores a second answer, and delays the next request
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
