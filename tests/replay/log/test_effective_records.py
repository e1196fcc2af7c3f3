from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.records.batch import RecordBatch
from kraftlake.records.row_values import values_of_rows
from kraftlake.records.rows import to_rows
from kraftlake.records.serde import decode_value
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.log.effective_records import UNKNOWN_KIND, EffectiveRecords, in_runs, standing_alone
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.runtime.errors import ReplayError
from tests.metadata_logs import metadata_logs
from tests.replay.made_logs import UNKNOWN, abort, begin, data, end, leader_change, topic


class Effects(MetadataBatchLoader):
    """Writes down what a loader replays: the offset of each record, and where the loader stands then."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[int, int, object]] = []
        self.standing = -1

    def replay_or_skip(self, offset: int, message: object) -> None:  # type: ignore[override]
        self.seen.append((offset, self.standing, message))


def expected(log: list[RecordBatch]) -> list[tuple[int, int, object]]:
    loader = Effects()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MetadataDelta, "replay_value", lambda _delta, _value: False)
        for batch in log:
            for offset in range(batch.base_offset, batch.last_offset + 1):
                loader.standing = offset
                loader.load_batch(batch, to_offset=offset)
    return loader.seen


def listed(records: EffectiveRecords) -> list[tuple[int, int, object]]:
    messages = [decode_value(records.value(i)).message for i in range(len(records))]
    return list(zip(records.offsets.tolist(), records.effective.tolist(), messages, strict=True))


@given(log=metadata_logs(), cuts=st.lists(st.integers(0, 20), max_size=4), whole=st.booleans())
def test_records_take_effect_where_a_loader_replays_them(log: list[RecordBatch], cuts: list[int], whole: bool) -> None:
    replay = LogReplay()
    seen = []
    ends = sorted({min(at, len(log)) for at in cuts})
    for start, stop in zip([0, *ends], [*ends, len(log)], strict=True):
        parts = values_of_rows(to_rows(log[start:stop])) if whole else log[start:stop]
        seen += [pair for chunk in replay.take_parts(parts) for pair in listed(chunk.records)]
    assert seen == expected(log)


def test_the_time_is_that_of_the_batch_where_they_take_effect() -> None:
    replay = LogReplay()
    assert [*replay.take_parts([data(0, begin(), topic(1), time=10)])] == []
    assert replay.transaction_begin_offset == 0
    (election,) = replay.take_parts([leader_change(2, 1)])
    assert (len(election.boundaries), [change.offset for change in election.quorum]) == (0, [2])
    (chunk,) = replay.take_parts([data(3, topic(2), end(), time=30)])
    assert replay.transaction_begin_offset is None
    assert listed(chunk.records) == [(1, 4, topic(1)), (3, 4, topic(2))]
    assert chunk.records.times.tolist() == [30, 30]


def test_an_aborted_transaction_has_no_effect() -> None:
    (chunk,) = LogReplay().take_parts([data(0, begin(), topic(1), abort(), topic(2))])
    assert listed(chunk.records) == [(3, 3, topic(2))]


def test_markers_that_contradict_what_is_there_are_named() -> None:
    with pytest.raises(ReplayError, match=r"Offset 1, BEGIN_TRANSACTION_RECORD: .* offset 0 is still open"):
        [*LogReplay().take_parts([data(0, begin(), begin())])]
    with pytest.raises(ReplayError, match="Offset 0: EndTransactionRecord without a BeginTransactionRecord"):
        [*LogReplay().take_parts([data(0, end())])]


def test_a_value_without_a_frame_is_of_no_kind() -> None:
    records = standing_alone(data(0, b"", b"\x01\x63", UNKNOWN, b"\x01\xe3\x07\x00"))
    assert records.kinds.tolist() == [UNKNOWN_KIND, UNKNOWN_KIND, 99, UNKNOWN_KIND]
    assert records.are_of((99,)).sum() == 1


def test_batches_that_follow_each_other_come_together_and_before_what_reading_on_raises() -> None:
    def parts() -> Iterator[RecordBatch]:
        yield data(0, topic(1), topic(2))
        yield data(2, topic(3), epoch=2)
        yield leader_change(3, 2)
        yield data(4, topic(4))
        yield data(6, topic(5))
        raise ReplayError("it ends")

    runs = in_runs(parts())
    assert [(run.base_offset, len(standing_alone(run))) for run in islice(runs, 4)] == [(0, 3), (3, 0), (4, 1), (6, 1)]
    with pytest.raises(ReplayError, match="it ends"):
        next(runs)
    assert [run.base_offset for run in in_runs([data(0, topic(1)), data(1, topic(2))], most=1)] == [0, 1]
