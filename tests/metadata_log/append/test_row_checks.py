from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.metadata_log.append.log_commit import check_batches, checked_rows
from kraftlake.metadata_log.append.log_file import LogEnd
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import to_rows
from kraftlake.runtime.errors import ImportConflictError, KraftlakeError
from tests.metadata_log.log_batches import data_batch, noop_batch
from tests.metadata_log.strategies import logs


@given(st.data())
def test_batches_are_checked_as_their_rows_are(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, 1000))
    batches = data.draw(logs(start))
    kept = data.draw(st.lists(st.sampled_from(batches), unique_by=id, max_size=len(batches)))
    if data.draw(st.booleans()):
        kept = batches
    end_offset = start + data.draw(st.integers(-1, 1))
    epoch = data.draw(st.integers(-1, 4))
    claimed = data.draw(st.one_of(st.none(), st.integers(0, 4)))

    def refusal(check: Callable[..., object], rows: object) -> object:
        try:
            check(rows, LogEnd(end_offset=end_offset, epoch=epoch, chain=None), claimed_epoch=claimed)
        except KraftlakeError as fault:
            return type(fault), str(fault)
        return None

    assert refusal(check_batches, kept) == refusal(checked_rows, to_rows(kept))


def refused(batches: list[RecordBatch], *, end_offset: int, epoch: int = 1, claimed: int | None = None) -> str:
    with pytest.raises(KraftlakeError) as fault:
        check_batches(batches, LogEnd(end_offset=end_offset, epoch=epoch, chain=None), claimed_epoch=claimed)
    return str(fault.value)


def test_a_gap_between_two_batches_is_named() -> None:
    assert "Offset 5 is followed by 7" in refused([noop_batch(5), noop_batch(7)], end_offset=5)


def test_batches_that_begin_too_late_too_early_or_with_an_older_epoch_are_refused() -> None:
    assert "offsets 4 to 4 are missing" in refused([noop_batch(5)], end_offset=4)
    assert "holds offsets up to 5 already" in refused([noop_batch(5)], end_offset=6)
    assert "epoch goes down from 2 to 1" in refused([data_batch(5, 3)], end_offset=5, epoch=2)


def test_a_writer_appends_batches_of_its_own_epoch_only() -> None:
    both = [noop_batch(5, epoch=2), noop_batch(6, epoch=3)]
    assert "epoch 3 can't append batches of epoch 2" in refused(both[:1], end_offset=5, claimed=3)
    assert "epoch 3 can't append batches of epoch 2" in refused(both, end_offset=5, claimed=3)
    assert "epoch 2 can't append batches of epoch 3" in refused(both, end_offset=5, claimed=2)


def test_rows_of_an_epoch_that_goes_down_within_are_refused() -> None:
    with pytest.raises(ImportConflictError, match="from 2 to 1 at offset 6"):
        check_batches([noop_batch(5, epoch=2), noop_batch(6, epoch=1)], LogEnd(end_offset=5, epoch=1, chain=None))
