"""Records of a log pass a filter in any pieces and in any form as they take effect in a replay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import EndTransactionRecord
from kraftlake.records.schema import Message
from kraftlake.runtime.errors import CorruptDataError, ReplayError
from kraftlake.tables.changes.effective_records import EffectiveRecords, standing_alone
from kraftlake.tables.changes.log_values import LogValues
from kraftlake.tables.changes.transactions import TransactionFilter
from tests.replay.made_logs import abort, begin, data, end, topic

UNDECODABLE_END = b"\x01\x18\x00\x01"  # says that it has a tagged field, and has none
NEWER_END = b"\x01\x18\x07\x00"
MARKS = {"begin": begin, "end": end, "abort": abort}


def values_of(batch: RecordBatch) -> LogValues:
    sizes = np.array([len(value) for value in batch.values], np.int32)
    offsets = np.arange(len(sizes), dtype=np.int32)
    return LogValues.packed(
        first_offset=batch.base_offset, offsets=offsets.tobytes(), payload=b"".join(batch.values), sizes=sizes.tobytes()
    )


Filters = tuple[TransactionFilter[LogValues], TransactionFilter[EffectiveRecords]]


def passed(filters: Filters, batch: RecordBatch) -> list[tuple[list[int], int | None]]:
    """The offsets of the records that take effect with a batch, and where; the same for both forms."""
    values, records = values_of(batch), standing_alone(batch)
    found = effects(filters[0].take(values, values.keys), values.offsets)
    assert found == effects(filters[1].take(records, records.kinds), records.offsets)
    assert filters[0].open_since == filters[1].open_since
    return found


def effects(taken: Iterable[tuple[list[Any], int | None]], offsets: Any) -> list[tuple[list[int], int | None]]:
    return [
        (part.offsets.tolist(), None if mark is None else int(offsets[mark])) for parts, mark in taken for part in parts
    ]


def both() -> Filters:
    return TransactionFilter[LogValues](), TransactionFilter[EffectiveRecords]()


def messages(kinds: Sequence[str]) -> list[Message]:
    return [MARKS[kind]() if kind in MARKS else topic(1) for kind in kinds]


@given(st.lists(st.lists(st.sampled_from(["topic", "begin", "end", "abort"]), min_size=1, max_size=6), max_size=6))
def test_records_take_effect_where_they_stand_or_at_the_end_of_their_transaction(log: list[list[str]]) -> None:
    filters = both()
    held: list[int] | None = None
    offset = 0
    for kinds in log:
        expected: list[tuple[int, int]] = []
        contradicts = None
        for at, kind in enumerate(kinds, start=offset):
            if kind == "topic":
                expected += [(at, at)] if held is None else []
                if held is not None:
                    held.append(at)
            elif (kind == "begin") == (held is not None):
                contradicts = at
                break
            elif kind == "begin":
                held = []
            else:
                expected += [(one, at) for one in held or [] if kind == "end"]
                held = None
        batch = data(offset, *messages(kinds))
        if contradicts is not None:
            with pytest.raises(ReplayError) as fault:
                passed(filters, batch)
            assert fault.value.offset == contradicts
            return
        found = [(one, one if at is None else at) for offsets, at in passed(filters, batch) for one in offsets]
        assert found == expected
        offset += len(kinds)


def test_a_mark_that_can_not_be_decoded_is_named_and_a_newer_one_is_a_record_as_others() -> None:
    with pytest.raises(CorruptDataError, match="The record at offset 6 can't be decoded"):
        passed(both(), data(5, begin(), UNDECODABLE_END))
    filters = both()
    assert passed(filters, data(5, topic(1), NEWER_END, topic(2))) == [([5, 6, 7], None)]
    assert passed(filters, data(8, begin(), NEWER_END, EndTransactionRecord())) == [([9], 10)]
