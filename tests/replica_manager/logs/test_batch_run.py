"""Runs of batches: found as one by one, and what of them is looked at and indexed."""

from __future__ import annotations

import random
from itertools import groupby

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.replica_manager.errors import CorruptRecordError, ReplicationError, UnexpectedAppendOffsetError
from kraftlake.replica_manager.logs.batch_run import BatchRun, find_batches, problem_at
from kraftlake.replica_manager.logs.leader_epochs import LeaderEpochs
from kraftlake.replica_manager.logs.log_batch import LogBatch, headers, joined, log_batches
from kraftlake.replica_manager.logs.log_values import AppendOrigin
from kraftlake.replica_manager.logs.open_transactions import EndedTransaction, Transactions
from kraftlake.replica_manager.logs.producer_state import ProducerState, ProducerStates
from simulator.data_batches import batch, marker

PRODUCERS = (-1, 1, 2, 257, 300)
"""257 and the second one share a slot unless there are more than 256 rows."""


@st.composite
def fetches(draw: st.DrawFn) -> list[LogBatch]:
    """Batches of producers that take turns, with growing offsets and leader epochs, and transactions that end."""
    draws = random.Random(draw(st.integers(0, 1 << 32)))
    made: list[LogBatch] = []
    offset = draws.randrange(3)
    epoch = 0
    epochs = dict.fromkeys(PRODUCERS, 0)
    open_: set[int] = set()
    producer = PRODUCERS[0]
    for _ in range(draws.choice((0, 1, 6, 7, 40, 200))):
        if draws.random() < 0.3:
            producer = draws.choice(PRODUCERS)
        if draws.random() < 0.05 and producer not in open_:
            epochs[producer] += draws.choice((1, 1, 2, -1))
        if producer in open_ and draws.random() < 0.2:
            open_.discard(producer)
            data = marker(producer, commit=draws.random() < 0.5, epoch=max(0, epochs[producer]))
        else:
            transactional = producer in open_ or (producer >= 0 and draws.random() < 0.02)
            open_ |= {producer} if transactional else set()
            times = tuple(draws.randrange(1_000, 1_100) for _ in range(draws.choice((1, 1, 3))))
            data = batch(
                *[b"x" * draws.randrange(60)] * len(times), times=times, producer=producer,
                transactional=transactional, epoch=max(0, epochs[producer]),
            )  # fmt: skip
        (one,) = log_batches(data)
        epoch += draws.random() < 0.03
        made.append(one.placed(offset, epoch))
        offset = made[-1].last_offset + 1 + (draws.random() < 0.05)
    return made


def one_by_one(
    data: bytes, expected: int, latest_epoch: int, offsets: tuple[int, int]
) -> tuple[list[LogBatch], type[ReplicationError | None], str]:
    """The batches that `data` starts with, each looked at by itself, and what is wrong with the next one."""
    sound: list[LogBatch] = []
    while True:
        position = sum(one.size for one in sound)
        problem = problem_at(data, position, expected, latest_epoch, offsets)
        following = [] if problem else [end for start, end, _ in headers(data, position) if start == position]
        (following_batch,) = log_batches(data[position : following[0]]) if following else (None,)
        if following_batch is None or following_batch.leader_epoch > latest_epoch:
            return sound, type(problem), str(problem)
        sound.append(following_batch)
        expected = following_batch.last_offset + 1 if expected >= 0 else expected


@st.composite
def damaged_fetches(draw: st.DrawFn) -> bytes:
    """The bytes of a fetch, whole or with a bit that flipped, cut off somewhere."""
    data = bytearray(joined(draw(fetches())))
    if data and draw(st.booleans()):
        data[draw(st.integers(0, len(data) - 1))] ^= 1 << draw(st.integers(0, 7))
    return bytes(data[: draw(st.integers(0, len(data))) if draw(st.booleans()) else None])


@given(
    data=damaged_fetches(),
    expected=st.integers(-1, 30),
    latest_epoch=st.integers(0, 5),
    offsets=st.tuples(st.integers(0, 30), st.integers(0, 300)),
)
def test_sound_batches_are_found_as_one_by_one(
    data: bytes, expected: int, latest_epoch: int, offsets: tuple[int, int]
) -> None:
    run, problem = find_batches(data, expected=expected, latest_epoch=latest_epoch, offsets=offsets)
    assert (run.batches, type(problem), str(problem)) == one_by_one(data, expected, latest_epoch, offsets)


@given(fetch=fetches())
def test_what_is_found_is_what_was_joined(fetch: list[LogBatch]) -> None:
    run, problem = find_batches(joined(fetch), expected=0)
    assert problem is None
    for made in (run, BatchRun.of(fetch)):
        assert made.batches == fetch
        assert made.max_timestamp == max((one.max_timestamp for one in fetch), default=-1)
        if fetch:
            assert (made.first_offset, made.last_offset) == (fetch[0].base_offset, fetch[-1].last_offset)
            assert made.last_leader_epoch == fetch[-1].leader_epoch
            assert bytes(made.content) == joined(fetch)
            assert made.size == len(made.content)


def seen(batches: list[LogBatch]) -> tuple[list[ProducerState], list[EndedTransaction], list[tuple[int, int]]]:
    """What a log knows after the batches of a fetch."""
    producers, transactions, epochs = ProducerStates(TopicPartition("foo", 0)), Transactions(), LeaderEpochs()
    states, _ = producers.check(batches, AppendOrigin.REPLICATION)
    ended = transactions.append(batches)
    for one in batches:
        if one.leader_epoch != epochs.latest:
            epochs.assign(one.leader_epoch, one.base_offset)
    stable = EndedTransaction(-1, -1, -1, transactions.last_stable_offset(1 << 40))
    return states, [*ended, stable], epochs.entries()


@given(fetch=fetches())
def test_the_batches_that_affect_a_log_have_the_effect_of_all(fetch: list[LogBatch]) -> None:
    run, _ = find_batches(joined(fetch))
    assert seen(run.effective_batches) == seen(fetch)


@given(fetch=fetches(), offset=st.integers(0, 300))
def test_a_run_is_divided_where_batches_end_at_or_after_an_offset(fetch: list[LogBatch], offset: int) -> None:
    assume(fetch)
    run, _ = find_batches(joined(fetch), expected=0)
    below, others = ([] if part is None else part.batches for part in run.divided_at(offset))
    assert below == [one for one in fetch if one.last_offset < offset]
    assert others == [one for one in fetch if one.last_offset >= offset]


@given(fetch=fetches())
def test_the_epochs_are_those_of_all_batches(fetch: list[LogBatch]) -> None:
    by_epoch = [(epoch, list(batches)) for epoch, batches in groupby(fetch, lambda one: one.leader_epoch)]
    epochs = [(epoch, batches[0].base_offset, batches[-1].last_offset) for epoch, batches in by_epoch]
    run, _ = find_batches(joined(fetch))
    assert run.epochs == epochs
    assert BatchRun.of(fetch).epochs == epochs


@pytest.mark.parametrize(("producers", "most"), [((-1,), 1), ((7,), 6), ((7, 8, 9), 18)])
def test_few_of_many_batches_are_looked_at(producers: tuple[int, ...], most: int) -> None:
    made = [next(log_batches(batch(b"x", producer=producers[at % len(producers)]))) for at in range(300)]
    run, _ = find_batches(joined(one.placed(at, 0) for at, one in enumerate(made)))
    assert len(run.effective_batches) == most
    assert len(run.part(100, 200).effective_batches) == 100, "a part has not been chosen from"


@given(fetch=fetches(), interval=st.integers(0, 400), unindexed=st.integers(0, 300), largest=st.integers(-1, 1_050))
def test_an_entry_follows_each_interval(fetch: list[LogBatch], interval: int, unindexed: int, largest: int) -> None:
    """As Kafka's LogSegment does it, a batch after the other."""
    assume(fetch)
    offsets: list[int] = []
    times: list[int] = []
    left, newest, of_newest, indexed, position = unindexed, largest, 3, largest - 1, 1_000
    for one in fetch:
        if one.max_timestamp > newest:
            newest, of_newest = one.max_timestamp, one.last_offset
        if left > interval:
            offsets += (one.last_offset, position)
            if newest > indexed:
                times += (newest, of_newest)
                indexed = newest
            left = 0
        left += one.size
        position += one.size
    for run in (find_batches(joined(fetch))[0], BatchRun.of(fetch)):
        assert run.index(
            0, 1_000, interval, unindexed=unindexed, largest_timestamp=largest, offset_of_largest=3,
            indexed_timestamp=largest - 1,
        ) == (offsets, times, left, newest, of_newest)  # fmt: skip


def test_what_is_wrong_is_said() -> None:
    first, second = (next(log_batches(batch(b"x"))).placed(offset, 0) for offset in (4, 5))
    damaged = attrs.evolve(second, data=second.data[:-1] + b"?")
    cases: list[tuple[bytes, type[ReplicationError], str, int]] = [
        (joined([first, damaged]), CorruptRecordError, "at offset 5 fails its checksum", 1),
        (joined([first]) + bytes(100), CorruptRecordError, "byte 69 there is no record batch of format 2", 1),
        (
            joined([second, first]),
            UnexpectedAppendOffsetError,
            "offset 4 is no continuation of a log that ends at 6",
            1,
        ),
        (joined([first, second.placed(9, 0)]), CorruptRecordError, "offset 9 does not belong here", 1),
    ]
    for data, error, words, sound in cases:
        run, problem = find_batches(data, expected=4, offsets=(4, 8))
        assert (len(run), type(problem)) == (sound, error)
        assert words in str(problem)
