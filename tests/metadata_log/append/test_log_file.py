from __future__ import annotations

import attrs
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.metadata_log.append.log_file import LogFile
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import to_rows
from tests.metadata_log.log_batches import data_batch
from tests.metadata_log.strategies import logs


def said(file: LogFile) -> dict[str, object]:
    return {name: value for name, value in attrs.asdict(file).items() if name != "data"}


@given(logs())
def test_a_file_of_batches_says_what_one_of_their_rows_does(batches: list[RecordBatch]) -> None:
    assert said(LogFile.of_batches(batches)) == said(LogFile.of_rows(to_rows(batches)))


@given(st.lists(st.sampled_from([-1, 0, 1, 1_700_000_000_001, 253_402_300_799_999, 2**52]), min_size=1, max_size=5))
def test_times_that_no_calendar_has_leave_both_without_bounds(times: list[int]) -> None:
    batches = [data_batch(offset, time=time) for offset, time in enumerate(times)]
    assert said(LogFile.of_batches(batches)) == said(LogFile.of_rows(to_rows(batches)))
