"""Controllers on one log in memory with a manual clock: claims, delayed appends, and fencing."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from typing import Any, TypeVar

import attrs

from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.quorum.active_controller import ActiveController
from kraftlake.controller.quorum.bootstrap import BootstrapMetadata
from kraftlake.controller.quorum.followed_log import take_over
from kraftlake.controller.state import Command
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.metadata_log.log import leader_change
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import RegisterBrokerRecord
from kraftlake.records.metadata_version import from_feature_level
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.runtime.clock import ManualClock
from tests.controller.controlled_cluster import CLUSTER_ID, ControlledCluster

T = TypeVar("T")


class SimulatedLog:
    """What a lake's log promises: an append needs the newest epoch, and a claim makes it."""

    def __init__(self) -> None:
        self.batches: list[RecordBatch] = []
        self.writers: list[int] = []

    @property
    def end(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else 0

    @property
    def epoch(self) -> int:
        return self.batches[-1].epoch if self.batches else 0

    def claim(self, node: int, now_ms: int) -> int:
        self.batches.append(leader_change(node, self.end, self.epoch + 1, now_ms))
        self.writers.append(node)
        return self.epoch

    def append(self, node: int, epoch: int, base: int, records: Sequence[ApiMessageAndVersion], now_ms: int) -> bool:
        """Whether the batch is in the log now: it is not where another has claimed."""
        if epoch < self.epoch:
            return False
        assert base == self.end, "whoever leads knows the end"
        self.batches.append(RecordBatch.of(base, epoch, now_ms, records))
        self.writers.append(node)
        return True

    def holds(self, epoch: int, base: int, records: Sequence[ApiMessageAndVersion]) -> bool:
        """Whether these records lie at that offset, as one batch of the epoch."""
        found = [batch for batch in self.batches if (batch.base_offset, batch.epoch) == (base, epoch)]
        return [[record.message for record in batch.messages()] for batch in found] == [[r.message for r in records]]


@attrs.define
class Asked:
    """A command that was run, and waits for its answer: its batches, by base offset, and whether they are durable."""

    epoch: int
    batches: list[tuple[int, Sequence[ApiMessageAndVersion]]]
    answer_at: int
    response: Any
    answered: bool | None = None
    """True: the response was given; False: NOT_CONTROLLER was."""


class Node(ControlledCluster):
    """A controller that leads, thinks that it leads, or stands by. What it appends waits until `write`."""

    def __init__(self, node_id: int, log: SimulatedLog, clock: ManualClock) -> None:
        self.node_id = node_id
        self.shared = log
        self.clock = clock
        self.config = ControllerConfig(node_id=node_id, cluster_id=CLUSTER_ID)
        self.leading: ActiveController | None = None
        self.unwritten: deque[tuple[int, Sequence[ApiMessageAndVersion]]] = deque()
        self.waiting: list[Asked] = []
        self.settled: list[Asked] = []
        self.added = []
        self._ids = random.Random(node_id)

    @property
    def image(self) -> MetadataImage:
        assert self.leading is not None
        return self.leading.committed

    def claim(self) -> None:
        """Claim the next epoch, replay the log to its end, and run the first command of the epoch."""
        assert self.leading is None
        epoch = self.shared.claim(self.node_id, self.clock.milliseconds())
        loader, registered = MetadataBatchLoader(), {}
        for batch in self.shared.batches:
            loader.load_batch(batch)
            for number, record in enumerate([] if batch.control else batch.messages()):
                if isinstance(record.message, RegisterBrokerRecord):
                    registered[record.message.broker_id] = batch.base_offset + number
        draws = random.Random(epoch)
        self.leading = take_over(loader, registered.__getitem__, self.config, epoch, clock=self.clock, draws=draws)
        self.state = self.leading.state
        self.state.new_id = lambda: Uuid(b"id" + self._ids.randbytes(14))
        bootstrap = BootstrapMetadata.of(from_feature_level(33))
        self._wait_for(self.leading.activate(lambda: bootstrap))

    def run(self, command: Command[T]) -> T:
        """Run a command; returns its response, which is not valid before its records are durable."""
        assert self.leading is not None
        self.added = []
        executed = self.leading.execute(command)
        self._wait_for(executed)
        self.added = [record.message for records in executed.batches for record in records]
        return executed.response

    def _wait_for(self, executed: Any) -> None:
        assert self.leading is not None
        base, batches = executed.base_offset, []
        for records in executed.batches:
            batches.append((base, records))
            base += len(records)
        self.unwritten += batches
        self.waiting.append(Asked(self.leading.epoch, batches, executed.answer_at, executed.response))
        self._answer()

    def write(self) -> None:
        """Append the next batch; where another has claimed, lead no longer."""
        if self.leading is None or not self.unwritten:
            return
        base, records = self.unwritten.popleft()
        if self.shared.append(self.node_id, self.leading.epoch, base, records, self.clock.milliseconds()):
            self.leading.committed_up_to(base + len(records) - 1)
            self._answer()
        else:
            self.step_down()

    def write_all(self) -> None:
        while self.unwritten:
            self.write()

    def step_down(self) -> None:
        """Drop what is pending, and refer everybody who waits to another controller."""
        self.leading = None
        self.unwritten.clear()
        for asked in self.waiting:
            asked.answered = False
        self.settled += self.waiting
        self.waiting = []

    def _answer(self) -> None:
        assert self.leading is not None
        durable = self.leading.durable_offset
        for asked in self.waiting:
            if asked.answer_at <= durable:
                asked.answered = True
        self.settled += [asked for asked in self.waiting if asked.answered]
        self.waiting = [asked for asked in self.waiting if not asked.answered]
