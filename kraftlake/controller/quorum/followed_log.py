"""The log of a controlled lake, replayed by a controller that may take over."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from kraftlake.controller.cluster.heartbeats import BrokerHeartbeats
from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.quorum.active_controller import ActiveController
from kraftlake.controller.quorum.bootstrap import BootstrapMetadata
from kraftlake.controller.state import ControllerState
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.reading.tail import EACH_TIME, TailCursor
from kraftlake.records.batch import RecordBatch
from kraftlake.records.batch_values import BatchValues
from kraftlake.records.metadata_records import RegisterBrokerRecord
from kraftlake.records.serde import AnyMessage
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.loader.fold import extend
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.reading.replay_base import choose_base
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.errors import OffsetError


class _Loader(MetadataBatchLoader):
    """Notes the offset of each broker's last registration after `base_offset`, the last offset of a snapshot."""

    def __init__(self) -> None:
        super().__init__()
        self.base_offset = -1
        self._registrations: dict[int, int] = {}

    def registered_at(self, broker: int) -> int:
        """The offset of a broker's last registration; a registration in the snapshot counts as its last offset."""
        return self._registrations.get(broker, self.base_offset)

    def replay_or_skip(self, offset: int, message: AnyMessage) -> None:
        super().replay_or_skip(offset, message)
        if isinstance(message, RegisterBrokerRecord):
            self._registrations[message.broker_id] = offset

    def load_snapshot(
        self, batches: Iterable[RecordBatch | BatchValues], provenance: MetadataProvenance, *, name: str
    ) -> None:
        super().load_snapshot(batches, provenance, name=name)
        self._registrations.clear()
        self.base_offset = provenance.offset


class FollowedLog:
    """`log` is a separate handle for reading; `loader` has replayed it up to `loader.last_offset`."""

    def __init__(self, log: MetadataLog) -> None:
        self.log = log
        self.loader = _Loader()
        self._cursor: TailCursor | None = None
        self._replay()
        self.loader.take_image()

    def catch_up(self) -> bool:
        """Replay new commits; returns whether they had records."""
        loader, cursor = self.loader, self._cursor
        self._cursor = None  # after a failed read another one begins where the loader is
        try:
            if cursor is None:
                cursor = TailCursor(self.log, loader.last_offset + 1, EACH_TIME)
            while batches := cursor.step():
                for batch in batches:
                    loader.load_batch(batch)
        except OffsetError:  # the log was trimmed past the loader
            self.log.refresh()
            self._replay()
        else:
            self._cursor = cursor
        if loader.last_offset == loader.image.provenance.offset:
            return False
        loader.take_image()  # the loader keeps records until then
        return True

    def _replay(self) -> None:
        """Replay up to the log's end: at first, and from the newest snapshot where the log was trimmed past the loader.

        The first replay begins with a snapshot where that is faster.
        """
        reader, end = LakeReader(self.log), self.log.end_offset
        self.loader.take_image()
        if self.loader.last_offset + 1 < end:
            trimmed = self.loader.last_offset + 1 < reader.start_offset
            base = choose_base(reader, end - 1, from_snapshot=trimmed or None)
            extend(self.loader, reader, end - 1, base=base)

    def bootstrap(self) -> BootstrapMetadata:
        """The bootstrap records stored by `format`; without them, those of the current release."""
        for snapshot in self.log.snapshots():
            if snapshot.bootstrap:
                records = [record for batch in snapshot.batches() if not batch.control for record in batch.messages()]
                return BootstrapMetadata(records)
        return BootstrapMetadata.of()

    def take_over(
        self, config: ControllerConfig, epoch: int, *, clock: Clock, draws: random.Random
    ) -> ActiveController:
        """Return the state of a controller that has claimed `epoch`, at the end of the replayed log."""
        return take_over(self.loader, self.loader.registered_at, config, epoch, clock=clock, draws=draws)


def take_over(
    loader: MetadataBatchLoader,
    registered_at: Callable[[int], int],
    config: ControllerConfig,
    epoch: int,
    *,
    clock: Clock,
    draws: random.Random,
) -> ActiveController:
    """Return the state of a controller that has claimed `epoch`, at the last offset that `loader` has replayed.

    `registered_at` returns the offset of a broker's last RegisterBrokerRecord.
    """
    image = loader.take_image()
    state = ControllerState(
        config=config,
        image=image,
        next_offset=loader.last_offset + 1,
        heartbeats=BrokerHeartbeats.of(
            (registration for _, registration in sorted(image.cluster.brokers.items())),
            session_timeout_ns=config.broker_session_timeout_ms * 1_000_000,
            now_ns=clock.nanoseconds(),
        ),
        registration_offsets={broker: registered_at(broker) for broker in image.cluster.brokers},
        kraft_version=loader.quorum.kraft_version,
        random=draws,
    )
    return ActiveController(state, epoch=epoch, clock=clock, transaction_begin_offset=loader.transaction_begin_offset)
