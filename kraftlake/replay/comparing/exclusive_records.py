"""The content of one log from an offset on: its epochs, leaders, times, and the extent that it proves committed."""

from __future__ import annotations

from typing import Any

import attrs

from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import LeaderChangeMessage
from kraftlake.records.no_ops import NO_OP_VALUE
from kraftlake.replay.reading.chunks import Chunk, chunks_of
from kraftlake.replay.reading.committed import CommittedTo
from kraftlake.replay.reading.open_reader import LogReader


@attrs.frozen(kw_only=True)
class ExclusiveRecords:
    """The offsets [from_offset, end_offset) of one log. Times are epoch ms, −1 for none.

    `records` counts those that are neither control records nor no-ops. `leaders` are the epochs that begin there, with
    the leader of each. Offsets below `committed_to` are committed, as the log itself proves by a snapshot or by a
    leader that wrote after its election; −1 where it proves none of these offsets.
    """

    from_offset: int
    end_offset: int
    records: int
    epochs: tuple[int, ...]
    leaders: tuple[tuple[int, int], ...]
    first_timestamp: int
    last_timestamp: int
    committed_to: int

    @property
    def shows_commit(self) -> bool:
        """Whether the log itself shows that a quorum committed any of these offsets."""
        return self.committed_to > self.from_offset

    @property
    def begins_epoch(self) -> bool:
        """Whether the range begins with a leader's epoch: voters elected the leader with a log that ended there."""
        return bool(self.leaders) and self.leaders[0][0] == self.epochs[0]

    @property
    def lasts_ms(self) -> int:
        """The time from the first batch to the last one."""
        return max(0, self.last_timestamp - self.first_timestamp) if self.first_timestamp >= 0 else 0

    def to_json(self) -> dict[str, Any]:
        """The offsets in JSON, both ends inclusive."""
        return {
            "from": self.from_offset,
            "to": self.end_offset - 1,
            "records": self.records,
            "epochs": list(self.epochs),
            "leaders": {str(epoch): leader for epoch, leader in self.leaders},
            "firstTimestamp": None if self.first_timestamp < 0 else self.first_timestamp,
            "lastTimestamp": None if self.last_timestamp < 0 else self.last_timestamp,
            "committedTo": self.committed_to if self.shows_commit else None,
        }


def held_alone(log: LogReader, first: int, end: int) -> ExclusiveRecords | None:
    """The content of a log at [first, end); None for nothing."""
    if end <= max(first, log.start_offset):
        return None
    epochs: dict[int, None] = {}
    leaders: list[tuple[int, int]] = []
    times: list[int] = []
    records = 0
    by_leader, by_snapshot = CommittedTo(), CommittedTo()
    by_snapshot.see_source(log)
    for chunk in chunks_of(log, first, end - 1):
        by_leader.see(chunk)
        records += _records(chunk, first)
        epochs |= dict.fromkeys([chunk.epoch] if isinstance(chunk, RecordBatch) else chunk.epochs.tolist())
        ends = (chunk.timestamp,) if isinstance(chunk, RecordBatch) else (chunk.timestamps[0], chunk.timestamps[-1])
        times = [*times[:1], *times[-1:], *(int(time) for time in ends if time >= 0)]
        if isinstance(chunk, RecordBatch) and chunk.control:
            messages = (record.message for record in chunk.messages())
            leaders += [(chunk.epoch, one.leader_id) for one in messages if isinstance(one, LeaderChangeMessage)]
    return ExclusiveRecords(
        from_offset=max(first, log.start_offset),
        end_offset=end,
        records=records,
        epochs=tuple(epochs),
        leaders=tuple(leaders),
        first_timestamp=times[0] if times else -1,
        last_timestamp=times[-1] if times else -1,
        committed_to=max(by_leader.offset + 1 if by_leader.offset >= first else -1, min(by_snapshot.offset, end)),
    )


def _records(chunk: Chunk, first: int) -> int:
    """The number of records of a chunk, from an offset on, that are neither control records nor no-ops."""
    if not isinstance(chunk, RecordBatch):
        return chunk.record_count - chunk.count_of(NO_OP_VALUE)
    if chunk.control:
        return 0
    return sum(value != NO_OP_VALUE for value in chunk.values[max(0, first - chunk.base_offset) :])
