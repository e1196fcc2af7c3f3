"""The leader of the quorum at an offset, by the log itself."""

from __future__ import annotations

from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.reading.log_reader import LogReader


def leader_at(reader: LogReader, offset: int) -> int | None:
    """The node that leads the quorum in the epoch of an offset; None where the log lacks the beginning of that epoch.

    A leader begins its epoch with a LeaderChangeMessage: that batch is searched by halves, as epochs never go down.
    """
    low, high = reader.start_offset, min(offset, reader.end_offset - 1)
    if high < low:
        return None
    epoch = next(reader.batches(high, high)).epoch
    while low < high:
        middle = (low + high) // 2
        batch = next(reader.batches(middle, middle))
        if batch.epoch < epoch:
            low = batch.last_offset + 1
        else:
            high = max(low, batch.base_offset)
    return QuorumState().after(next(reader.batches(low, low))).leader_id
