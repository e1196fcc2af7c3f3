"""Generated logs, and any grouping of them into commits."""

from __future__ import annotations

from hypothesis import strategies as st

from kraftlake.records.batch import RecordBatch
from tests.metadata_log.log_batches import TIME, data_batch, leader_change, noop_batch


@st.composite
def logs(draw: st.DrawFn, start_offset: int = 0) -> list[RecordBatch]:
    """A log's batches: every size, kind and time, epochs that never go down."""
    batches: list[RecordBatch] = []
    offset, epoch = start_offset, draw(st.integers(0, 3))
    for _ in range(draw(st.integers(1, 12))):
        time = draw(st.one_of(st.just(-1), st.integers(TIME, TIME + 50), st.integers(0, 253_402_300_799_999)))
        match draw(st.integers(0, 3)):
            case 0:
                epoch += draw(st.integers(0, 2))
                batches.append(leader_change(offset, epoch=epoch))
            case 1:
                batches.append(noop_batch(offset, epoch=epoch, time=time))
            case _:
                batches.append(data_batch(offset, draw(st.integers(1, 7)), epoch=epoch, time=time))
        offset = batches[-1].last_offset + 1
    return batches


@st.composite
def groupings(draw: st.DrawFn, batches: list[RecordBatch]) -> list[list[RecordBatch]]:
    """The batches in any grouping into commits."""
    groups: list[list[RecordBatch]] = [[]]
    for batch in batches:
        groups[-1].append(batch)
        if draw(st.booleans()):
            groups.append([])
    return [group for group in groups if group]
