"""The order of a log's batches: no offset is missing between two of them, and epochs never go down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.records.batch import RecordBatch
from kraftlake.runtime.errors import ReplayError

if TYPE_CHECKING:
    from kraftlake.replay.log.effective_records import LogPart, Stop


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


def first_out_of_order(part: LogPart, *, last: int | None, last_epoch: int | None) -> Stop | None:
    """The first batch of a part that does not follow the one before it, and what is wrong; None for none.

    `last` is the offset before the part and `last_epoch` its batch's epoch, None where it is not known.
    """
    first = part.base_offset
    before = first - 1 if last is None else last
    fault = order_fault(first, part.epoch, last=before, last_epoch=part.epoch if last_epoch is None else last_epoch)
    if fault is not None:
        return first, fault
    if isinstance(part, RecordBatch):
        return None
    for place in (part.epochs[1:] < part.epochs[:-1]).nonzero()[0].tolist()[:1]:
        base, epochs = int(part.base_offsets[place + 1]), part.epochs[place : place + 2].tolist()
        lower = order_fault(base, epochs[1], last=base - 1, last_epoch=epochs[0])
        assert lower is not None, "the epoch is lower"
        return base, lower
    return None
