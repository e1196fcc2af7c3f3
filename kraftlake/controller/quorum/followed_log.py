"""The log of a controlled lake, replayed by a controller that may take over."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow.compute as pc

from kraftlake.controller.cluster.heartbeats import BrokerHeartbeats
from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.quorum.active_controller import ActiveController
from kraftlake.controller.quorum.bootstrap import BootstrapMetadata
from kraftlake.controller.state import ControllerState
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.metadata_records import RegisterBrokerRecord
from kraftlake.records.serde import decode_value
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.loader.fold import extend
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.reading.replay_base import choose_base
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.errors import OffsetError


class FollowedLog:
    """`log` is a separate handle for reading; `loader` has replayed it up to `loader.last_offset`."""

    def __init__(self, log: MetadataLog) -> None:
        self.log = log
        self.loader = MetadataBatchLoader()
        self._registration_offsets: dict[int, int] = {}
        self._base_offset = -1
        self._read()

    def catch_up(self) -> bool:
        """Replay new commits; returns whether any existed."""
        if not self.log.refresh():
            return False
        return self._read()

    def _read(self) -> bool:
        if self.loader.last_offset + 1 >= self.log.end_offset:
            return False
        try:
            self._replay()
        except OffsetError:  # the log was trimmed during the read
            self.log.refresh()
            self._replay()
        return True

    def _replay(self) -> None:
        """Replay up to the log's end.

        The first replay begins with the newest snapshot, and so does a replay after the log was trimmed past the
        loader.
        """
        reader, end = LakeReader(self.log), self.log.end_offset
        first = self.loader.last_offset + 1
        trimmed = first < reader.start_offset
        self.loader.take_image()  # discards what a failed read has left
        base = choose_base(reader, end - 1, from_snapshot=trimmed or None) if first == 0 or trimmed else None
        if base is not None:
            first, self._base_offset = base.end_offset, base.end_offset - 1
            self._registration_offsets.clear()
        self._note_registrations(first, end - 1)
        extend(self.loader, reader, end - 1, base=base)
        self.loader.take_image()  # the loader keeps records until then

    def _note_registrations(self, low: int, high: int) -> None:
        rows = self.log.rows(low, high, ["offset", "api_key", "control", "payload"])
        is_data = pc.invert(rows.column("control"))
        rows = rows.filter(pc.and_(is_data, pc.equal(rows.column("api_key"), RegisterBrokerRecord.API_KEY)))
        for offset, payload in zip(rows.column("offset").to_pylist(), rows.column("payload").to_pylist(), strict=True):
            message = decode_value(payload).message
            if isinstance(message, RegisterBrokerRecord):
                self._registration_offsets[message.broker_id] = offset

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
        """Return the state of a controller that has claimed `epoch`, at the end of the replayed log.

        A registration before the snapshot at which the replay began counts as that snapshot's last offset.
        """

        def registered_at(broker: int) -> int:
            return self._registration_offsets.get(broker, self._base_offset)

        return take_over(self.loader, registered_at, config, epoch, clock=clock, draws=draws)


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
