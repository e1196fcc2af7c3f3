"""Random histories laid out as a metadata log: batches of any size, leader changes, metadata transactions.

A transaction is ended in its batch or in a later one, aborted by its own controller, or left open by a controller that
died and aborted by the next one. What an aborted one held is what the history goes on with, so that it always fits.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import KRaftVersionRecord, LeaderChangeMessage, Voter, VotersRecord
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion
from tests.histories import Draw, histories

START_TIME = 1_700_000_000_000
_MARKS = ("batch", "batch", "batch", "leader", "voters", "transaction", "long transaction", "aborted", "abandoned")


class _Log:
    def __init__(self) -> None:
        self.batches: list[RecordBatch] = []
        self.epoch = 1
        self.offset = 0
        self._gathered: list[ApiMessageAndVersion] = []

    def add(self, *records: ApiMessageAndVersion | Message) -> None:
        for record in records:
            versioned = record if isinstance(record, ApiMessageAndVersion) else ApiMessageAndVersion(record, 0)
            self._gathered.append(versioned)

    def end_batch(self) -> None:
        if self._gathered:
            self._append(RecordBatch.of(self.offset, self.epoch, START_TIME + self.offset, self._gathered))
            self._gathered = []

    def change_leader(self) -> None:
        self.end_batch()
        self.epoch += 1
        change = LeaderChangeMessage(leader_id=3000 + self.epoch % 2)
        self._append(RecordBatch.control_of(self.offset, self.epoch, START_TIME + self.offset, [change]))

    def change_voters(self) -> None:
        self.end_batch()
        first = 3000 + self.offset % 3
        voters = VotersRecord(voters=tuple(Voter(voter_id=voter) for voter in range(first, first + 1 + self.epoch % 3)))
        version = KRaftVersionRecord(k_raft_version=1)
        self._append(RecordBatch.control_of(self.offset, self.epoch, START_TIME + self.offset, [version, voters]))

    def _append(self, batch: RecordBatch) -> None:
        self.batches.append(batch)
        self.offset = batch.last_offset + 1


def _lay_out(log: _Log, mark: str, records: list[ApiMessageAndVersion]) -> None:
    """The records from one mark to the next."""
    if mark == "transaction":
        log.add(r.BeginTransactionRecord(name="t"), *records, r.EndTransactionRecord())
        return
    if mark == "long transaction":
        log.add(r.BeginTransactionRecord(), *records[:1])
        log.end_batch()
        log.add(*records[1:], r.EndTransactionRecord())
        return
    if mark == "aborted":
        log.add(r.BeginTransactionRecord(), *records, r.AbortTransactionRecord(reason="a"))
    if mark == "abandoned":
        log.add(r.BeginTransactionRecord(), *records)
        log.change_leader()
        log.change_voters()
        log.add(r.AbortTransactionRecord())
    log.end_batch()  # after an abort too: Kafka forgets to drop what was aborted where the batch goes on
    if mark == "leader":
        log.change_leader()
    if mark == "voters":
        log.change_voters()
    log.add(*records)


@st.composite
def metadata_logs(draw: Draw, **options: Any) -> list[RecordBatch]:
    """The batches of a valid log from offset 0; `options` are those of `histories`."""
    records = draw(histories(**options))
    mark = st.tuples(st.integers(0, len(records) - 1), st.sampled_from(_MARKS))
    marks = sorted(draw(st.lists(mark, max_size=12)))
    ends = [start for start, _ in marks[1:]] + [len(records)]
    log = _Log()
    log.add(*records[: marks[0][0] if marks else len(records)])
    for (start, kind), end in zip(marks, ends, strict=True) if marks else ():
        _lay_out(log, kind, records[start:end])
    log.end_batch()
    return log.batches
