"""One epoch of an active controller: commands run against the pending image; answers wait for durability. No I/O.

Source: org.apache.kafka.controller.QuorumController and OffsetControlManager.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

import attrs

from kraftlake.controller.quorum.activation import activate
from kraftlake.controller.quorum.bootstrap import BootstrapMetadata
from kraftlake.controller.result import MAX_RECORDS_PER_BATCH, ControllerResult, check_limit
from kraftlake.controller.state import Command, ControllerState
from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.records.metadata_records import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from kraftlake.records.serde import AnyMessage, ApiMessageAndVersion
from kraftlake.replay.log.log_position import OpenTransaction
from kraftlake.runtime.clock import Clock

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Executed(Generic[T]):
    """The result of a command: batches to append at `base_offset`, and a response.

    `answer_at` is the offset that must be durable before the response is given: the last offset of the batches or, for
    a command without records, the last appended offset; -1 if all appended records are durable.
    """

    base_offset: int
    batches: Sequence[Sequence[ApiMessageAndVersion]]
    response: T
    answer_at: int


class ActiveController:
    """The state of a controller since it claimed `epoch`.

    `committed` is the image of the durable records, which reads use; `state.image` is the pending image. The images of
    the batches in between are kept in order.
    """

    def __init__(
        self,
        state: ControllerState,
        *,
        epoch: int,
        clock: Clock,
        transaction_begin_offset: int | None = None,
    ) -> None:
        self.state = state
        self.epoch = epoch
        self._clock = clock
        self.committed = state.image
        self._transaction = OpenTransaction[tuple[int, AnyMessage]]()
        """The offsets and records of the open metadata transaction."""
        self._transaction.begin_offset = transaction_begin_offset
        self._appended: deque[tuple[int, MetadataImage]] = deque()

    @property
    def durable_offset(self) -> int:
        """The last offset known to be durable."""
        return self.committed.provenance.offset

    @property
    def last_appended(self) -> int:
        """The last appended offset; -1 if all appended records are durable."""
        return self._appended[-1][0] if self._appended else -1

    def activate(self, bootstrap: Callable[[], BootstrapMetadata]) -> Executed[None]:
        """The first command of the epoch: see `activation.activate`."""
        return self.execute(lambda state: activate(state, bootstrap, self._transaction.begin_offset))

    def execute(self, command: Command[T]) -> Executed[T]:
        """Run a command against the pending image, and replay its records on that image.

        Raises ControllerApiError, without any change, if the command as a whole is refused.
        """
        state = self.state
        state.now_ms, state.now_ns = self._clock.milliseconds(), self._clock.nanoseconds()
        result = command(state)
        base = state.next_offset
        batches = list(_batches(result))
        for batch in batches:
            self._take(batch)
        return Executed(base_offset=base, batches=batches, response=result.response, answer_at=self.last_appended)

    def committed_up_to(self, offset: int) -> None:
        """Note that all records up to `offset`, the last one of a batch, are durable."""
        while self._appended and self._appended[0][0] <= offset:
            _, self.committed = self._appended.popleft()

    def _take(self, batch: Sequence[ApiMessageAndVersion]) -> None:
        state = self.state
        delta = MetadataDelta(state.image)
        for offset, record in enumerate(batch, start=state.next_offset):
            for at, message in self._transaction.take(record.message, offset, (offset, record.message)):
                delta.replay(message, at)
                self._note(at, message)
        last = state.next_offset + len(batch) - 1
        provenance = MetadataProvenance(offset=last, epoch=self.epoch, timestamp=state.now_ms)
        state.image = delta.apply(provenance)
        state.next_offset = last + 1
        self._appended.append((last, state.image))

    def _note(self, offset: int, message: AnyMessage) -> None:
        """Update the soft state of brokers from a record."""
        heartbeats, offsets = self.state.heartbeats, self.state.registration_offsets
        match message:
            case RegisterBrokerRecord():
                if message.broker_id in offsets:
                    heartbeats.remove(message.broker_id)
                heartbeats.register(message.broker_id, fenced=message.fenced)
                offsets[message.broker_id] = offset
            case BrokerRegistrationChangeRecord():
                known = heartbeats.get(message.broker_id)
                fenced = known is not None and known.fenced
                heartbeats.register(message.broker_id, fenced=message.fenced > 0 or (fenced and message.fenced == 0))
            case UnregisterBrokerRecord():
                offsets.pop(message.broker_id, None)
                heartbeats.remove(message.broker_id)


def _batches(result: ControllerResult[T]) -> Iterator[Sequence[ApiMessageAndVersion]]:
    """Return the records in batches: a single one if they are atomic, else batches of the maximum size."""
    records = result.records
    if result.atomic:
        check_limit(len(records), f"would write {len(records)} records")
    for start in range(0, len(records), MAX_RECORDS_PER_BATCH):
        yield records[start : start + MAX_RECORDS_PER_BATCH]
