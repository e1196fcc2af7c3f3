"""The order of a log's batches: no offset is missing between two of them, and epochs never go down."""

from __future__ import annotations

from kraftlake.runtime.errors import ReplayError


def order_fault(base_offset: int, epoch: int, *, last: int, last_epoch: int) -> ReplayError | None:
    """What is wrong with a batch with these numbers behind the offset `last`, whose epoch is `last_epoch`; or None.

    What a log may lack at offset 0 is no part of any image: see `has_beginning`.
    """
    if base_offset > last + 1 and (last, base_offset) != (-1, 1):
        return ReplayError(f"Offset {last + 1} is missing: the batch after offset {last} starts at {base_offset}.")
    if epoch < last_epoch:
        return ReplayError(
            f"The batch at offset {base_offset} has epoch {epoch}, but offset {last} before it has epoch {last_epoch}."
        )
    return None
