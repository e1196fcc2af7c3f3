"""The fold of record batches into metadata deltas, with metadata transactions as Kafka 4.4 has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

import attrs

from kraftlake import kernels
from kraftlake.delta import MetadataDelta, TopicsDelta
from kraftlake.image import MetadataImage, MetadataProvenance
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from kraftlake.records.serde import AnyMessage
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.loader.record_faults import (
    RECORD_FAULTS,
    UNDECODABLE,
    UNREADABLE,
    decode_record,
    type_at,
    type_of,
)
from kraftlake.replay.loader.transactions import OpenTransaction
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError, ReplayError
from kraftlake.runtime.lazy_module import LazyModule

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchEnd, BatchValues
    from kraftlake.replay.loader import manifest
    from kraftlake.replay.loader.manifest import SkippedRecord
    from kraftlake.replay.loader.metadata_publisher import MetadataUpdater
    from kraftlake.runtime.clock import Clock
else:
    manifest = LazyModule("kraftlake.replay.loader.manifest")


class MetadataBatchLoader:
    """Replays batches in offset order onto an image. Does no I/O.

    Two ways to use it. With `publish`, as a broker does: `load_batch`, then `flush` where a change is to be
    published (after each batch: the reference). Without it, in bulk: `load_batch` again and again gathers one delta,
    `take_image` applies it.

    A metadata transaction (KIP-868) is published as a whole or never: its records enter the delta at the offset of its
    EndTransactionRecord; AbortTransactionRecord drops them. One that was left open by a controller which died is
    aborted by the next controller's AbortTransactionRecord. A BeginTransactionRecord in mid-stream publishes what came
    before it. Control records move offset and epoch only.

    Strict unless `lenient`: a record that can't be replayed raises ReplayError, UnknownRecordError or
    CorruptDataError naming offset and type, and leaves the loader at the record before it. Lenient: such a record is
    skipped and remembered in `skipped`; the image has then diverged from what the cluster had.

    Source: org.apache.kafka.image.loader.MetadataBatchLoader, but for one thing: there the records of an aborted
    transaction stay in the delta when more records follow in the same batch.
    """

    def __init__(
        self,
        image: MetadataImage = MetadataImage.EMPTY,
        *,
        lenient: bool = False,
        publish: MetadataUpdater | None = None,
        quorum: QuorumState | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.lenient = lenient
        self.skipped: list[SkippedRecord] = []
        self.quorum = quorum or QuorumState()
        self.base_name: str | None = None
        self.publish = publish
        self.seen_record = not image.is_empty()
        """Whether anything but control records and the marks of transactions was replayed, or is in the image."""
        self._clock = clock
        self._transaction = OpenTransaction[tuple[int, AnyMessage]]()
        self._last_offset = image.provenance.offset
        self._last_epoch = image.provenance.epoch
        self._last_timestamp = image.provenance.timestamp
        self._batch_aligned = True
        self._published_ns = 0
        self._reset(image)

    def _reset(self, image: MetadataImage) -> None:
        self.image = image
        self.delta = MetadataDelta(image, of_log=True)
        self._num_batches = 0
        self._num_bytes = 0
        self._elapsed_ns = 0
        self._gathered = 0

    @property
    def last_offset(self) -> int:
        """The last offset that was loaded; what stands at `image.provenance.offset` is published."""
        return self._last_offset

    @property
    def in_transaction(self) -> bool:
        """Whether a metadata transaction is open at `last_offset`."""
        return self._transaction.begin_offset is not None

    @property
    def transaction_begin_offset(self) -> int | None:
        """The offset of the BeginTransactionRecord of the open transaction."""
        return self._transaction.begin_offset

    @property
    def aborted_transaction(self) -> tuple[int, int] | None:
        """The first and last offset of the newest transaction that was seen to be aborted."""
        return self._transaction.aborted

    @property
    def provenance(self) -> MetadataProvenance:
        """The provenance of an image at `last_offset`."""
        return MetadataProvenance(
            offset=self._last_offset,
            epoch=self._last_epoch,
            timestamp=self._last_timestamp,
            batch_aligned=self._batch_aligned,
        )

    def publish_to(self, updater: MetadataUpdater) -> None:
        """Publish what is loaded from now on; what was gathered before is to be taken first."""
        assert not self._gathered, "what was gathered would be published as if it were new"
        self.publish = updater

    def load_batch(self, batch: RecordBatch, *, to_offset: int | None = None) -> None:
        """Replay `batch`, or its records up to and including `to_offset`.

        Records at or below `last_offset` are passed over, so that a batch may be loaded in two parts. Raises
        ReplayError where the batch leaves a gap after `last_offset` or its epoch goes down.
        """
        started_ns = self._now_ns()
        self._check_order(batch)
        end = batch.last_offset if to_offset is None else min(to_offset, batch.last_offset)
        first = self._last_offset + 1
        if end < first:
            return
        if batch.control:
            self._load_control(batch, first, end)
        else:
            self._load_data(batch, first, end)
        if self._batch_aligned:
            self._num_batches += 1
            self._num_bytes += batch.size_in_bytes or sum(map(len, batch.values))
        self._elapsed_ns += self._now_ns() - max(started_ns, self._published_ns)

    def _now_ns(self) -> int:
        return 0 if self._clock is None else self._clock.nanoseconds()

    @property
    def lost(self) -> Callable[[int, int, str], None] | None:
        """What a lenient loader is told with of offsets that can't be read: first, last, and why; None if strict."""
        return self._pass_lost if self.lenient else None

    def _pass_lost(self, first: int, last: int, reason: str) -> None:
        """Move on over offsets that can't be read. Nobody knows whether a transaction ended there: it is dropped."""
        self.skipped.append(manifest.SkippedRecord(offset=first, type=UNREADABLE, reason=reason))
        self._transaction = OpenTransaction()
        self._last_offset = max(self._last_offset, last)

    def load_values(self, values: BatchValues, *, to_offset: int) -> None:
        """`load_batch` for many batches at once, without an object a record where that can be.

        Raises as `load_batch`; a fault of a record that is not of a topic may be raised when topics have gone on.
        """
        last = min(to_offset, values.last_offset)
        patience = 1
        while self._last_offset < last:
            self._load_bulk(values, last)
            if self._last_offset >= last or not self._load_some(values, to_offset, patience):
                return
            patience *= 2

    def _load_bulk(self, values: BatchValues, last: int) -> None:
        """Replay the values up to offset `last` in bulk, as far as that goes."""
        first = self._last_offset + 1
        if not self._takes_bulk or not values.base_offset <= first <= last:
            return
        if values.end_at(first).epoch < self._last_epoch:
            return
        base = values.base_offset
        stop = self._replay_bulk(values, first - base, last + 1 - base, self._replay_or_skip) + base
        if stop > first:
            self.seen_record = True
            self._gathered += stop - first
            batches, size = values.ended_within(first, stop)
            self._num_batches += batches
            self._num_bytes += size
            self._move_to(stop - 1, values.end_at(stop - 1))

    def _load_some(self, values: BatchValues, to_offset: int, records: int) -> bool:
        """Replay whole batches as objects, `records` records or more; whether bulk may be tried again behind them."""
        for batch in values.batches(self._last_offset + 1):
            if batch.base_offset > to_offset:
                break
            self.load_batch(batch, to_offset=to_offset)
            records -= batch.record_count
            if records <= 0 and self._takes_bulk:
                return True
        return False

    @property
    def _takes_bulk(self) -> bool:
        topics = self.delta.topics_delta
        at_hand = self.publish is None and not self.in_transaction and kernels.available()
        return at_hand and (topics is None or topics.takes_bulk)

    def _replay_bulk(
        self, values: BatchValues, first: int, last: int, replay: Callable[[int, AnyMessage], None]
    ) -> int:
        """Replay records [first, last) of `values`; gives the first that was not, which is for objects to replay."""
        topics = self.delta.topics_delta or TopicsDelta(self.image.topics, of_log=self.delta.of_log)
        stop, others = topics.replay_bulk(
            values.data, values.starts, values.stops, first, last, following=values.following
        )
        if not topics.is_untouched:
            self.delta.topics_delta = topics
        for place, removed in others:
            offset = values.base_offset + place
            if removed:
                self.delta.get_or_create_configs_delta().replay_remove_topic(removed)
                continue
            value = values.value(place)
            try:
                message = decode_record(value, offset)
            except CorruptDataError as error:
                self._skip_or_raise(offset, UNDECODABLE, error)
            else:
                replay(offset, message)
        return stop

    def _check_order(self, batch: RecordBatch) -> None:
        if batch.base_offset > self._last_offset + 1:
            raise ReplayError(
                f"Offset {self._last_offset + 1} is missing: the batch after offset {self._last_offset} "
                f"starts at {batch.base_offset}."
            )
        if batch.epoch < self._last_epoch and batch.last_offset > self._last_offset:
            raise ReplayError(
                f"The batch at offset {batch.base_offset} has epoch {batch.epoch}, "
                f"but offset {self._last_offset} before it has epoch {self._last_epoch}."
            )

    def load_snapshot(
        self, batches: Iterable[RecordBatch | BatchValues], provenance: MetadataProvenance, *, name: str
    ) -> None:
        """Gather a whole snapshot as a change of the current image, and move on to the snapshot's last offset.

        What the image has and the snapshot lacks is deleted (finish_snapshot). A transaction that was open is dropped:
        a snapshot is only made outside of one. `name` is for messages. Raises as `load_batch` does, with offsets
        inside the snapshot.
        """
        assert not self._gathered, "what was gathered before would outlive finish_snapshot: flush first"
        self._transaction = OpenTransaction()
        self.delta.of_log = False
        replay = partial(self._replay_or_skip, where=f"Snapshot {name}: ")
        for batch in batches:
            if isinstance(batch, RecordBatch):
                self._gather_batch(batch, replay, name)
                continue
            stop = 0
            if self._takes_bulk:
                stop = self._replay_bulk(batch, 0, len(batch.starts), replay)
            for rest in batch.batches(batch.base_offset + stop):
                self._gather_batch(rest, replay, name, first=batch.base_offset + stop)
        self.delta.finish_snapshot()
        self.delta.of_log = True
        self.base_name = name
        self._last_offset = provenance.offset
        self._last_epoch = provenance.epoch
        self._last_timestamp = provenance.timestamp
        self._batch_aligned = provenance.batch_aligned
        self.seen_record = True
        self._gathered += 1

    def _gather_batch(
        self, batch: RecordBatch, replay: Callable[[int, AnyMessage], None], name: str, first: int = 0
    ) -> None:
        """Replay a batch of a snapshot from offset `first` on."""
        if batch.control:
            for record in batch.messages():
                self.quorum = self.quorum.after(record.message)
            return
        for offset, value in enumerate(batch.values, start=batch.base_offset):
            if offset < first:
                continue
            try:
                message = decode_record(value, offset)
            except CorruptDataError as error:
                self._skip_or_raise(offset, type_at(value), type(error)(f"Snapshot {name}: {error}"))
            else:
                replay(offset, message)

    def _load_control(self, batch: RecordBatch, first: int, end: int) -> None:
        try:
            for index, record in enumerate(batch.messages()):
                if first <= batch.base_offset + index <= end:
                    self.quorum = self.quorum.after(record.message)
        except CorruptDataError as error:
            self._skip_or_raise(first, "CONTROL", error)
        self._move_to(end, batch)
        self._gathered += 1

    def _load_data(self, batch: RecordBatch, first: int, end: int) -> None:
        for offset in range(first, end + 1):
            value = batch.values[offset - batch.base_offset]
            try:
                message = decode_record(value, offset)
            except CorruptDataError as error:
                self._skip_or_raise(offset, UNDECODABLE, error)
            else:
                self._load_one(offset, message)
            self._move_to(offset, batch)
            self._gathered += 1

    def _load_one(self, offset: int, message: AnyMessage) -> None:
        begins = isinstance(message, BeginTransactionRecord) and not self.in_transaction
        if begins and self.publish is not None and self._gathered:
            self._apply_and_publish()
        try:
            self._load_record(offset, message)
        except RECORD_FAULTS as error:
            self._skip_or_raise(offset, type_of(message), error)

    def _skip_or_raise(self, offset: int, type_: str, error: KraftlakeError) -> None:
        if not self.lenient:
            raise error
        self.skipped.append(manifest.SkippedRecord(offset=offset, type=type_, reason=str(error)))

    def _move_to(self, offset: int, batch: RecordBatch | BatchEnd) -> None:
        self._last_offset = offset
        self._last_epoch = batch.epoch
        self._last_timestamp = batch.timestamp
        self._batch_aligned = offset == batch.last_offset

    def _load_record(self, offset: int, message: AnyMessage) -> None:
        match message:
            case BeginTransactionRecord() | EndTransactionRecord() | AbortTransactionRecord():
                for at, record in self._transaction.mark(message.API_KEY, offset):
                    self._replay_or_skip(at, record)
            case _ if self._transaction.begin_offset is not None:
                self.seen_record = True
                self._transaction.hold((offset, message))
            case _:
                self.seen_record = True
                self._replay(offset, message)

    def _replay_or_skip(self, offset: int, message: AnyMessage, where: str = "") -> None:
        try:
            self._replay(offset, message)
        except RECORD_FAULTS as error:
            self._skip_or_raise(offset, type_of(message), type(error)(f"{where}{error}") if where else error)

    def _replay(self, offset: int, message: AnyMessage) -> None:
        self.delta.replay(message, offset)

    def flush(self) -> None:
        """Publish what was gathered, unless a transaction is open or nothing was gathered (maybeFlushBatches)."""
        if self._gathered and not self.in_transaction:
            self._apply_and_publish()

    def _apply_and_publish(self) -> None:
        base_offset = self.image.provenance.offset + 1
        provenance, started_ns = self.provenance, self._now_ns()
        image = self._apply()
        delta = self.delta
        told = manifest.LogDeltaManifest(
            provenance=provenance,
            base_offset=base_offset,
            num_batches=self._num_batches,
            num_bytes=self._num_bytes,
            num_records=self._gathered,
            elapsed_ns=self._elapsed_ns + self._now_ns() - started_ns,
            leader_id=self.quorum.leader_id,
            num_skipped=len(self.skipped),
        )
        self._reset(image)
        if self.publish is not None:
            self.publish(delta, image, told)
        self._published_ns = self._now_ns()

    def pass_over(self, end: MetadataProvenance) -> None:
        """Move on to `end` over batches of nothing but no-op records, which change nothing and are not published.

        Nothing was gathered, and no transaction is open. Raises ReplayError where the epoch would go down.
        """
        assert not self._gathered, "what was gathered is to be published first"
        assert not self.in_transaction, "a transaction is taken in record by record"
        if end.epoch < self._last_epoch:
            raise ReplayError(
                f"The batches up to offset {end.offset} have epoch {end.epoch}, "
                f"but offset {self._last_offset} before them has epoch {self._last_epoch}."
            )
        self._last_offset, self._last_epoch, self._last_timestamp = end.offset, end.epoch, end.timestamp
        self._batch_aligned = end.batch_aligned
        self.seen_record = True
        self._reset(attrs.evolve(self.image, provenance=end))

    def take_image(self) -> MetadataImage:
        """The image at `last_offset`, without the records of a transaction that is open there.

        The loader goes on from it: an open transaction's records take effect in a later delta, at its end.
        """
        return self.take_change()[1]

    def take_change(self) -> tuple[MetadataDelta, MetadataImage]:
        """As `take_image`, with the delta that led there."""
        image = self._apply()
        delta = self.delta
        self._reset(image)
        return delta, image

    def _apply(self) -> MetadataImage:
        try:
            return self.delta.apply(self.provenance)
        except ReplayError as error:
            first = self.image.provenance.offset + 1
            fault = ReplayError(f"Offsets {first} to {self._last_offset}: {error}", offset=error.offset)
            self._skip_or_raise(self._last_offset, "CHANGES", fault)
            self.delta = MetadataDelta(self.image, of_log=True)
            return attrs.evolve(self.image, provenance=self.provenance)
