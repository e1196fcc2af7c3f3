"""Clusters on loopback to be followed: fake controllers over a log, which may grow, fall silent and come back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

from kraftlake.protocol.describe import Leader
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.observer.raw_batch import RawBatch, split_batches
from kraftlake.protocol.observer.requests import FetchedLogPart
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion
from tests.protocol.observer.fake_quorum import FakeQuorum
from tests.protocol.observer.model_quorum import ModelQuorum
from tests.replay.made_logs import metadata_version, partition, topic

EPOCH = 1
_LONGEST_FETCH = 0.5


class _Log(ModelQuorum):
    """A log all of which is committed; a Fetch is answered with all that it lacks."""

    def answer(self, at: OffsetAndEpoch, *, epoch: int, max_batches: int = 0) -> FetchedLogPart:
        newest = self.logs[0][-20:]
        if (
            self.snapshot is None
            and epoch == at.epoch == self.epoch
            and newest[0].base_offset <= at.offset <= self.high_watermark
        ):
            leader = Leader(id=self.leader, epoch=self.epoch, address=None)
            batches = tuple(batch for batch in newest if batch.last_offset >= at.offset)
            return FetchedLogPart(
                error=ErrorCode.NONE, leader=leader, high_watermark=self.high_watermark, log_start_offset=0,
                batches=batches,
            )  # fmt: skip
        return super().answer(at, epoch=epoch, max_batches=1_000)

    def add(self, batches: Iterable[RawBatch]) -> None:
        self.logs[0].extend(batches)
        self.high_watermark = self.logs[0][-1].last_offset + 1


class FakeCluster(FakeQuorum):
    """A cluster whose log is `batches` at first. A Fetch of nothing new waits, as at Kafka's leader.

    While it is `dead`, every connection ends without an answer.
    """

    def __init__(self, batches: Sequence[RecordBatch], cluster_id: str) -> None:
        super().__init__(_Log(leader=0, epoch=batches[-1].epoch))
        self.cluster_id = cluster_id
        self.dead = False
        self._grown = threading.Condition()
        self.add(batches)

    @property
    def bootstrap(self) -> str:
        return ",".join(map(str, self.addresses))

    @property
    def end_offset(self) -> int:
        return self.model.high_watermark

    def append(self, *records: Message, timestamp: int | None = None, version: int = 0) -> None:
        """Commit a batch of records of one version."""
        values = [ApiMessageAndVersion(record, version) for record in records]
        now = time.time_ns() // 1_000_000 if timestamp is None else timestamp
        self.add([RecordBatch.of(self.end_offset, self.model.epoch, now, values)])

    def delete_log_and_go_on(self) -> None:
        """Commit two batches, and delete all before the second of them."""
        self.append(r.NoOpRecord())
        start = self.end_offset
        self.append(r.NoOpRecord())
        self.model.snapshot = OffsetAndEpoch(offset=start, epoch=self.model.epoch)
        self.model.log_start_offset = start

    def add(self, batches: Sequence[RecordBatch]) -> None:
        """Commit batches."""
        with self._grown:
            self.model.add(raw for batch in batches for raw in split_batches(encode_batch(batch)))  # type: ignore[attr-defined]
            self._grown.notify_all()

    def _fetch(self, node: int, version: int, data: bytes) -> Any:
        if self.dead:
            raise EOFError
        with self._grown:
            answer = super()._fetch(node, version, data)
            (partition,) = answer.responses[0].partitions
            if partition.records or partition.error_code.value:
                return answer
            self._grown.wait(_LONGEST_FETCH)
        if self.dead:
            raise EOFError
        return super()._fetch(node, version, data)

    def _cluster(self, node: int, version: int, data: bytes) -> Any:
        if self.dead:
            raise EOFError
        return super()._cluster(node, version, data)


def small_log(topics: int = 2) -> list[RecordBatch]:
    """Two brokers, and topics of one partition each on both."""
    brokers = [r.RegisterBrokerRecord(broker_id=id_, fenced=False, broker_epoch=id_) for id_ in (1, 2)]
    records: list[list[Message]] = [[metadata_version()], list(brokers)]
    records += [[topic(number), partition(number)] for number in range(topics)]
    batches: list[RecordBatch] = []
    for batch in records:
        base = batches[-1].last_offset + 1 if batches else 0
        values = [ApiMessageAndVersion(record, 0) for record in batch]
        batches.append(RecordBatch.of(base, EPOCH, 1_700_000_000_000 + base, values))
    return batches
