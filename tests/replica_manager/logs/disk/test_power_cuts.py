"""Logs on faulty files: kills, power cuts and failing directories, at any call."""

from __future__ import annotations

import errno
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from kraftlake.runtime.log import without_logs
from simulator.faulty_files import READ, SYNC, WRITE
from tests.replica_manager.logs.disk.faulty_broker import DIRECTORIES, PARTITIONS, PRODUCERS, FaultyBroker

NAME = st.sampled_from(PARTITIONS)
PRODUCER = st.sampled_from((-1, *PRODUCERS))
DIRECTORY = st.sampled_from(DIRECTORIES)
APPENDS = st.one_of(
    st.tuples(st.just("lead"), NAME, PRODUCER, st.booleans(), st.integers(1, 3)),
    st.tuples(st.just("follow"), NAME, st.integers(1, 5)),
    st.tuples(st.just("end_transaction"), NAME, st.sampled_from(PRODUCERS), st.booleans()),
)
CHANGES = st.one_of(
    st.tuples(st.just("truncate"), NAME, st.integers(0, 8)),
    st.tuples(st.just("begin_anew"), NAME, st.integers(0, 3)),
    st.tuples(st.just("delete_records"), NAME, st.integers(1, 6)),
    st.tuples(st.sampled_from(["roll", "flush", "elect", "delete", "move"]), NAME),
    st.tuples(st.sampled_from(["pass_time", "checkpoint", "checkpoint"])),
)
ENDS = st.one_of(
    st.tuples(st.just("shut_down"), st.booleans()),
    st.tuples(st.sampled_from(["kill", "cut_power"])),
    st.tuples(st.just("break_off"), st.integers(0, 60)),
)
FAULTS = st.sampled_from([(errno.EIO, READ), (errno.EIO, WRITE), (errno.EIO, SYNC), (errno.EROFS, WRITE)])
FAILURES = st.one_of(
    st.builds(
        lambda step, directory, fault: (step, directory, *fault),
        st.sampled_from(["fail", "kill_and_fail"]),
        DIRECTORY,
        FAULTS,
    ),
    st.tuples(st.just("fill"), DIRECTORY, st.integers(0, 400)),
)
LIFE = st.one_of(APPENDS, APPENDS, APPENDS, APPENDS, CHANGES, CHANGES, ENDS)
LIVES = st.lists(LIFE, min_size=15, max_size=60)
SEED = st.integers(0, 2**32)

APPEND = ("lead", PARTITIONS[0], -1, False, 1)
CUT_IN_FIRST_FLUSH = [APPEND, ("break_off", 0), ("flush", PARTITIONS[0])]
"""The power is cut before a new log is durable, in the first call that would have made it so."""


def live(seed: int, steps: list[tuple[Any, ...]], ignored_syncs: str = "\0") -> FaultyBroker:
    """A broker that has done the steps, and lost its power at the end."""
    with without_logs():
        broker = FaultyBroker(seed, ignored_syncs)
        for step in (*steps, ("cut_power",)):
            broker.do(*step)
    return broker


@given(seed=SEED, steps=LIVES)
def test_what_is_durable_survives_power_cuts_and_all_of_it_kills(seed: int, steps: list[tuple[Any, ...]]) -> None:
    live(seed, steps)


@example(seed=1, steps=CUT_IN_FIRST_FLUSH)
@given(seed=SEED, steps=st.lists(st.one_of(LIFE, LIFE, LIFE, FAILURES), min_size=15, max_size=60))
def test_a_directory_that_fails_is_reported_once_and_loses_nothing_durable(
    seed: int, steps: list[tuple[Any, ...]]
) -> None:
    live(seed, steps)
