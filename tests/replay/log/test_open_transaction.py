"""What is inside of a metadata transaction takes effect as a whole or never."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records.metadata_records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from kraftlake.replay.log.log_position import OpenTransaction
from kraftlake.runtime.errors import ReplayError

BEGIN, END, ABORT = (r.API_KEY for r in (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord))


@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(), max_size=5)), max_size=5))
def test_what_is_held_comes_back_in_order_at_its_end_and_never_after_an_abort(
    transactions: list[tuple[bool, list[int]]],
) -> None:
    open_ = OpenTransaction[int]()
    for number, (committed, parts) in enumerate(transactions):
        assert open_.begin_offset is None
        assert open_.mark(BEGIN, number) == []
        assert open_.begin_offset == number
        for part in parts:
            open_.hold(part)
        assert open_.mark(END if committed else ABORT, number) == (parts if committed else [])
    assert open_.begin_offset is None


def test_marks_that_contradict_each_other_name_their_offset_and_change_nothing() -> None:
    open_ = OpenTransaction[str]()
    for key, name in ((END, "EndTransactionRecord"), (ABORT, "AbortTransactionRecord")):
        with pytest.raises(ReplayError, match=f"Offset 7: {name} without a BeginTransactionRecord") as fault:
            open_.mark(key, 7)
        assert fault.value.offset == 7
    open_.mark(BEGIN, 8)
    open_.hold("kept")
    with pytest.raises(ReplayError, match=r"Offset 9, BEGIN_TRANSACTION_RECORD: .* offset 8 is still open"):
        open_.mark(BEGIN, 9)
    assert open_.mark(END, 10) == ["kept"]
