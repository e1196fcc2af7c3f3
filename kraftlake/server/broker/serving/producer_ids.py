"""Handler of InitProducerId: ids for idempotent producers, from blocks that the controller allocates.

Source: kafka.server.KafkaApis.handleInitProducerIdRequest,
org.apache.kafka.coordinator.transaction.RPCProducerIdManager.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Final

import attrs

from kraftlake.image.kafka_names import AclOperation, ResourceType
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.node_to_controller_channel import NodeToControllerChannel
from kraftlake.server.broker.serving.context import ServingContext
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.handlers import response_to

_PREFETCH_LEFT: Final = 0.1
"""The remaining share of a block at which the next block is requested."""
_NO_ID: Final = -1


@attrs.define
class _Block:
    next_id: int
    end: int
    ask_again_at: int

    @classmethod
    def of(cls, first: int, size: int) -> _Block:
        return cls(first, first + size, first + round(size * (1 - _PREFETCH_LEFT)))


class ProducerIdManager:
    """Hands out ids of its block, and requests the next block in time. Thread-safe.

    `allocate` requests a block from the controller, and calls back with its first id and size, or None without a block.
    """

    def __init__(self, allocate: Callable[[Callable[[tuple[int, int] | None], None]], None]) -> None:
        self._allocate = allocate
        self._lock = Lock()
        self._current: _Block | None = None
        self._following: _Block | None = None
        self._is_asking = False

    def generate(self) -> int | None:
        """Return the next id; None if the controller has not sent a block yet."""
        with self._lock:
            if self._current is None or self._current.next_id >= self._current.end:
                self._current, self._following = self._following, None
            block = self._current
            made = None
            if block is not None:
                made = block.next_id
                block.next_id += 1
            must_ask = self._following is None and (block is None or block.next_id >= block.ask_again_at)
        if must_ask:
            self.prefetch()
        return made

    def prefetch(self) -> None:
        """Request the next block, unless already requested."""
        with self._lock:
            if self._is_asking or self._following is not None:
                return
            self._is_asking = True
        self._allocate(self._take)

    def _take(self, block: tuple[int, int] | None) -> None:
        with self._lock:
            self._is_asking = False
            if block is not None:
                self._following = _Block.of(*block)


def allocated_by(
    channel: NodeToControllerChannel, broker_id: int, broker_epoch: Callable[[], int]
) -> Callable[[Callable[[tuple[int, int] | None], None]], None]:
    """Return the function by which a `ProducerIdManager` requests a block of ids from the active controller."""

    def allocate(take: Callable[[tuple[int, int] | None], None]) -> None:
        def make(module: Any) -> Any:
            return module.AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=broker_epoch())

        def answered(answer: Any | None) -> None:
            if answer is None or answer.error_code != ErrorCode.NONE:
                take(None)
            else:
                take((int(answer.producer_id_start), int(answer.producer_id_len)))

        channel.ask("allocate_producer_ids", range(1), make, answered)

    return allocate


class InitProducerIdHandler:
    """Assigns ids to producers without a transactional id: the only producers that need no coordinator."""

    def __init__(self, context: ServingContext, ids: ProducerIdManager) -> None:
        self._context = context
        self._ids = ids

    def __call__(self, request: Request) -> Any:
        """Answer an InitProducerId request; COORDINATOR_LOAD_IN_PROGRESS makes the producer retry."""
        error, made = self._made(request)
        return response_to(
            request, error_code=error, producer_id=_NO_ID if made is None else made,
            producer_epoch=-1 if made is None else 0,
        )  # fmt: skip

    def _made(self, request: Request) -> tuple[ErrorCode, int | None]:
        body = request.body
        has_id, has_epoch = getattr(body, "producer_id", _NO_ID) >= 0, getattr(body, "producer_epoch", -1) >= 0
        if body.transactional_id == "" or has_id != has_epoch:
            return ErrorCode.INVALID_REQUEST, None
        if body.transactional_id is not None:
            return ErrorCode.UNSUPPORTED_VERSION, None
        authorization, context = self._context.authorization, self._context
        may_write = authorization.allows_on_cluster(request, AclOperation.IDEMPOTENT_WRITE, log_denied=False) or any(
            authorization.allows(
                request, AclOperation.WRITE, ResourceType.TOPIC, topic, log_allowed=False, log_denied=False
            )
            for topic in context.cache.all_topics()
        )
        if not may_write:
            return ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None
        made = self._ids.generate()
        return (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, None) if made is None else (ErrorCode.NONE, made)
