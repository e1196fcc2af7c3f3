"""The order of batches: what follows, what leaves a gap, and what goes back to an earlier epoch."""

from __future__ import annotations

import pytest

from kraftlake.replay.log.log_position import order_fault


@pytest.mark.parametrize(("base", "epoch", "last"), [(5, 3, 4), (5, 7, 4), (4, 3, 4), (1, 3, -1)])
def test_a_batch_that_follows_has_no_fault(base: int, epoch: int, last: int) -> None:
    assert order_fault(base, epoch, last=last, last_epoch=3) is None


@pytest.mark.parametrize(
    ("base", "epoch", "sentence"),
    [
        (6, 3, "Offset 5 is missing: the batch after offset 4 starts at 6."),
        (6, 2, "Offset 5 is missing: the batch after offset 4 starts at 6."),
        (5, 2, "The batch at offset 5 has epoch 2, but offset 4 before it has epoch 3."),
    ],
)
def test_a_gap_and_a_lower_epoch_are_named(base: int, epoch: int, sentence: str) -> None:
    assert str(order_fault(base, epoch, last=4, last_epoch=3)) == sentence
