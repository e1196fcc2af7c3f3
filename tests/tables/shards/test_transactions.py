"""Records of a log take effect as in a replay, in any pieces and in any form."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import EndTransactionRecord
from kraftlake.records.rows import to_rows
from kraftlake.records.schema import Message
from kraftlake.replay.log.delta_chunk import ReplayState
from kraftlake.replay.log.effective_records import ShardRecords
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.runtime.errors import CorruptDataError, ReplayError
from kraftlake.tables.shards.chunks import Part
from kraftlake.tables.shards.routing import Router
from tests.replay.made_logs import abort, begin, data, end, topic

UNDECODABLE_END = b"\x01\x18\x00\x01"  # says that it has a tagged field, and has none
NEWER_END = b"\x01\x18\x07\x00"
MARKS = {"begin": begin, "end": end, "abort": abort}

Replays = tuple[LogReplay, LogReplay]


def passed(replays: Replays, batch: RecordBatch) -> list[tuple[int, int]]:
    """The offsets of the records that take effect with a batch, and where; the same for both forms."""
    router = Router(1, Part.LOG)
    chunks = [*router.take(to_rows([batch])), *router.flush()]
    (records,) = (chunk.content for chunk in chunks if chunk.shard == 0)
    found = effects(replays[0], records)
    assert found == effects(replays[1], batch)
    assert replays[0].transaction_begin_offset == replays[1].transaction_begin_offset
    return found


def effects(replay: LogReplay, part: RecordBatch | ShardRecords) -> list[tuple[int, int]]:
    taken, _, fault = replay._take(part)
    if fault is not None:
        raise fault
    return [pair for some in taken for pair in zip(some.offsets.tolist(), some.effective.tolist(), strict=True)]


def both() -> Replays:
    replays = LogReplay(), LogReplay()
    for replay in replays:
        replay.go_on(ReplayState())
    return replays


def messages(kinds: Sequence[str]) -> list[Message]:
    return [MARKS[kind]() if kind in MARKS else topic(1) for kind in kinds]


@given(st.lists(st.lists(st.sampled_from(["topic", "begin", "end", "abort"]), min_size=1, max_size=6), max_size=6))
def test_records_take_effect_where_they_stand_or_at_the_end_of_their_transaction(log: list[list[str]]) -> None:
    replays = both()
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
                passed(replays, batch)
            assert fault.value.offset == contradicts
            return
        assert passed(replays, batch) == expected
        offset += len(kinds)


def test_a_mark_that_can_not_be_decoded_is_named_and_a_newer_one_is_a_record_as_others() -> None:
    with pytest.raises(CorruptDataError, match="The record at offset 6 can't be decoded"):
        passed(both(), data(5, begin(), UNDECODABLE_END))
    replays = both()
    assert passed(replays, data(5, topic(1), NEWER_END, topic(2))) == [(5, 5), (6, 6), (7, 7)]
    assert passed(replays, data(8, begin(), NEWER_END, EndTransactionRecord())) == [(9, 10)]
