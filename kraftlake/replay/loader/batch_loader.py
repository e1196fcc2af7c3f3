"""Record batches in, metadata deltas and images out, with metadata transactions as in Kafka 4.4."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.records.batch import RecordBatch
from kraftlake.records.no_ops import has_no_ops_alone
from kraftlake.records.serde import AnyMessage
from kraftlake.replay.loader.manifest import LogDeltaManifest
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.loader.record_faults import RECORD_FAULTS, UNDECODABLE, decode_record, type_of
from kraftlake.replay.log.log_position import TRANSACTION_MARKS, LogPosition, OpenTransaction, order_fault
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError, ReplayError

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchEnd, BatchValues
    from kraftlake.replay.loader.metadata_publisher import MetadataUpdater
    from kraftlake.runtime.clock import Clock


class MetadataBatchLoader(LogPosition[tuple[int, AnyMessage]]):
    """Replays batches in offset order onto an image. Does no I/O.

    With `publish`, as in a broker: `load_batch`, then `flush` where a change is to be published (after each batch: the
    reference). Without it, in bulk: `load_batch` or `load_values` gather one delta, `take_image` applies it.

    A metadata transaction (KIP-868) is published as a whole or never: its records enter the delta at the offset of its
    EndTransactionRecord; AbortTransactionRecord drops them. A transaction that a dead controller left open is aborted
    by the next controller's AbortTransactionRecord. A BeginTransactionRecord within a batch publishes the records
    before it. Control records change offset and epoch only.

    Strict unless `lenient`: a record that can't be replayed raises ReplayError, UnknownRecordError or
    CorruptDataError naming offset and type, and leaves the loader at the record before it. Lenient: such a record is
    skipped and listed in `skipped`; the image has then diverged from the cluster's.

    Source: org.apache.kafka.image.loader.MetadataBatchLoader, with one difference: there the records of an aborted
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
        super().__init__(image.provenance, lenient=lenient)
        self.quorum = quorum or self.quorum
        self.base_name: str | None = None
        self.publish = publish
        self.seen_record = not image.is_empty()
        """Whether a record other than control records and transaction marks was replayed, or is in the image."""
        self._clock = clock
        self._snapshot: str | None = None
        """The snapshot that is being loaded, for messages."""
        self._batch_aligned = True
        self._published_ns = 0
        self._begin_delta(image)

    def _begin_delta(self, image: MetadataImage) -> None:
        self.image = image
        """The image that was published last, or taken; `last_offset` may be behind it."""
        self.delta = MetadataDelta(image, of_log=True)
        self._num_batches = self._num_bytes = self._num_records = self._elapsed_ns = 0

    def publish_to(self, updater: MetadataUpdater) -> None:
        """Publish what is loaded from now on; take the gathered records first."""
        assert not self._num_records, "the gathered records would be published as new"
        self.publish = updater

    def load_batch(self, batch: RecordBatch, *, to_offset: int | None = None) -> None:
        """Replay `batch`, or its records up to and including `to_offset`.

        Records at or below `last_offset` are skipped, so that a batch may be loaded in two parts. Raises ReplayError
        where the batch leaves a gap after `last_offset` or its epoch is lower than the one before it.
        """
        started_ns = self._now_ns()
        self._check_order(batch)
        end = batch.last_offset if to_offset is None else min(to_offset, batch.last_offset)
        first = max(self.last_offset + 1, batch.base_offset)
        if end < first:
            return
        if batch.control:
            self.take_control(batch, first, end)
            self._move_to(end, batch)
            self._num_records += 1
        else:
            self._load_data(batch, first, end)
        if self._batch_aligned:
            self._num_batches += 1
            self._num_bytes += batch.size_in_bytes or sum(map(len, batch.values))
        self._elapsed_ns += self._now_ns() - max(started_ns, self._published_ns)

    def _now_ns(self) -> int:
        return 0 if self._clock is None else self._clock.nanoseconds()

    def _check_order(self, batch: RecordBatch) -> None:
        last, is_known = self.last_offset, batch.last_offset <= self.last_offset
        epoch = self.epoch if is_known else batch.epoch
        fault = order_fault(batch.base_offset, epoch, last=last, last_epoch=self.epoch)
        if fault is not None:
            raise fault

    def _load_data(self, batch: RecordBatch, first: int, end: int) -> None:
        for offset in range(first, end + 1):
            value = batch.values[offset - batch.base_offset]
            if not self.in_transaction and self.delta.replay_value(value):
                self.seen_record = True
            elif (message := self._decoded(offset, value)) is not None:
                self._load_record(offset, message)
            self._move_to(offset, batch)
            self._num_records += 1

    def _decoded(self, offset: int, value: bytes) -> AnyMessage | None:
        """The message in a value; None where it can't be decoded and is left out."""
        try:
            return decode_record(value, offset)
        except CorruptDataError as error:
            self.leave_out(offset, UNDECODABLE, error)
            return None

    def _load_record(self, offset: int, message: AnyMessage) -> None:
        if isinstance(message, TRANSACTION_MARKS):
            if self.publish is not None and self.ends_before(message, has_records=bool(self._num_records)):
                self._apply_and_publish()
        else:
            self.seen_record = True
        for at, effective in self.take_record(message, offset, (offset, message)):
            self.replay_or_skip(at, effective)

    def replay_or_skip(self, offset: int, message: AnyMessage) -> None:
        """Replay a record of the log or of a snapshot; a lenient loader leaves out a faulty one."""
        try:
            self.delta.replay(message, offset)
        except RECORD_FAULTS as error:
            self.leave_out(offset, type_of(message), error)

    def leave_out(self, offset: int, type_: str, error: KraftlakeError) -> None:
        """The same as in LogPosition; the error names the snapshot that is being loaded."""
        if self._snapshot is not None:
            error = type(error)(f"Snapshot {self._snapshot}: {error}")
        super().leave_out(offset, type_, error)

    def _move_to(self, offset: int, batch: RecordBatch | BatchEnd) -> None:
        self.last_offset, self.epoch, self.time = offset, batch.epoch, batch.timestamp
        self._batch_aligned = offset == batch.last_offset

    def load_values(self, values: BatchValues, *, to_offset: int) -> None:
        """`load_batch` for many batches, with compiled code where that is possible.

        Raises as `load_batch`. A fault of a record that is of no topic may be raised after later records of topics
        were replayed.
        """
        last = min(to_offset, values.last_offset)
        records = 1
        while self.last_offset < last:
            self._load_bulk(values, last)
            if self.last_offset >= last or not self._load_some(values, to_offset, records):
                return
            records *= 2

    def _load_bulk(self, values: BatchValues, last: int) -> None:
        """Replay the values up to offset `last` by compiled code, until a record that objects have to replay."""
        first, base = self.last_offset + 1, values.base_offset
        if not self._takes_bulk or not base <= first <= last or values.end_at(first).epoch < self.epoch:
            return
        stop = self._replay_bulk(values, first - base, last + 1 - base) + base
        if stop > first:
            self.seen_record = True
            self._num_records += stop - first
            batches, size = values.ended_within(first, stop)
            self._num_batches += batches
            self._num_bytes += size
            self._move_to(stop - 1, values.end_at(stop - 1))

    def _load_some(self, values: BatchValues, to_offset: int, records: int) -> bool:
        """Replay whole batches of at least `records` records as objects; whether compiled code may go on after them."""
        for batch in values.batches(self.last_offset + 1):
            if batch.base_offset > to_offset:
                break
            self.load_batch(batch, to_offset=to_offset)
            records -= batch.record_count
            if records <= 0 and self._takes_bulk:
                return True
        return False

    @property
    def _takes_bulk(self) -> bool:
        return self.publish is None and not self.in_transaction

    def _replay_bulk(self, values: BatchValues, first: int, last: int) -> int:
        """Replay the records [first, last) of `values`, as indexes; returns the first that needs an object."""
        stop, others = self.delta.replay_bulk(
            values.data, values.starts, values.stops, first, last, following=values.following
        )
        for index, removed_topic in others:
            if removed_topic is not None:
                self.delta.get_or_create_configs_delta().replay_remove_topic(removed_topic)
                continue
            offset = values.base_offset + index
            message = self._decoded(offset, values.value(index))
            if message is not None:
                self.replay_or_skip(offset, message)
        return stop

    def load_snapshot(
        self, batches: Iterable[RecordBatch | BatchValues], provenance: MetadataProvenance, *, name: str
    ) -> None:
        """Gather a whole snapshot as a change of the current image, and move to the snapshot's last offset.

        What the snapshot lacks is deleted from the image (finish_snapshot). An open transaction is dropped, as
        snapshots are made outside of transactions only. `name` is for messages. Raises as `load_batch` does, with
        offsets within the snapshot.
        """
        assert not self._num_records, "finish_snapshot would not delete what was gathered before: flush first"
        self.transaction = OpenTransaction()
        self.delta.of_log = False
        self._snapshot = name
        try:
            for batch in batches:
                self._load_snapshot_chunk(batch)
        finally:
            self._snapshot = None
        self.delta.finish_snapshot()
        self.delta.of_log = True
        self.base_name = name
        self.move_behind(provenance)
        self.seen_record = True
        self._num_records += 1

    def _load_snapshot_chunk(self, chunk: RecordBatch | BatchValues) -> None:
        first = chunk.base_offset
        if not isinstance(chunk, RecordBatch) and self._takes_bulk:
            first += self._replay_bulk(chunk, 0, len(chunk.starts))
        for batch in [chunk] if isinstance(chunk, RecordBatch) else chunk.batches(first):
            if batch.control:
                self.quorum = self.quorum.after(batch)
                continue
            for offset in range(max(first, batch.base_offset), batch.last_offset + 1):
                value = batch.values[offset - batch.base_offset]
                if not self.delta.replay_value(value) and (message := self._decoded(offset, value)) is not None:
                    self.replay_or_skip(offset, message)

    def flush(self) -> None:
        """Publish the gathered records, unless there are none or a transaction is open (maybeFlushBatches)."""
        if self._num_records and not self.in_transaction:
            self._apply_and_publish()

    def _apply_and_publish(self) -> None:
        base_offset = self.image.provenance.offset + 1
        provenance, started_ns = self.last, self._now_ns()
        image = self._apply(provenance)
        delta = self.delta
        manifest = LogDeltaManifest(
            provenance=provenance,
            base_offset=base_offset,
            num_batches=self._num_batches,
            num_bytes=self._num_bytes,
            num_records=self._num_records,
            elapsed_ns=self._elapsed_ns + self._now_ns() - started_ns,
            leader_id=self.quorum.leader_id,
            num_skipped=len(self.skipped),
        )
        self._begin_delta(image)
        if self.publish is not None:
            self.publish(delta, image, manifest)
        self._published_ns = self._now_ns()

    def passes_over(self, batch: RecordBatch) -> bool:
        """Move over the next batch, all of it, if it changes nothing, as no-op records alone; it is not published then.

        Raises where the batch does not follow, as `load_batch` does.
        """
        is_next = batch.last_offset > self.last_offset and not (self._num_records or self.in_transaction)
        if not is_next or not has_no_ops_alone(batch):
            return False
        self._check_order(batch)
        self._move_to(batch.last_offset, batch)
        self.seen_record = True
        self._begin_delta(attrs.evolve(self.image, provenance=self.last))
        return True

    def take_image(self) -> MetadataImage:
        """The image at `last_offset`, without the records of a transaction that is open there.

        The loader continues from it: the records of an open transaction take effect in a later delta, at its end.
        """
        return self.take_change()[1]

    def take_change(self) -> tuple[MetadataDelta, MetadataImage]:
        """The same as `take_image`, with the delta that leads from the last image to it."""
        image = self._apply(self.last)
        delta = self.delta
        self._begin_delta(image)
        return delta, image

    def _apply(self, provenance: MetadataProvenance) -> MetadataImage:
        """The image with the delta applied; a lenient loader drops a delta that can't be applied."""
        try:
            return self.delta.apply(provenance)
        except ReplayError as error:
            first, last = self.image.provenance.offset + 1, provenance.offset
            fault = ReplayError(f"Offsets {first} to {last}: {error}", offset=error.offset)
            self.leave_out(last, "CHANGES", fault)
            self.delta = MetadataDelta(self.image, of_log=True)
            return attrs.evolve(self.image, provenance=provenance)
