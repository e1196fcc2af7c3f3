"""A partition's log on disk beside Kafka's own UnifiedLog: the same files, and each goes on where the other ended."""

from __future__ import annotations

import base64
import itertools
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kraftlake.replica_manager.logs.disk.log_loader import StoredState
from kraftlake.replica_manager.logs.log_batch import log_batches
from simulator.data_batches import batch
from tests.interop.kafka_classes import KafkaClasses
from tests.interop.kafka_logs import kafka_logs
from tests.interop.logs_of_both import CONFIGS, LARGE, PRODUCERS, Script, content, kafka_log, our_log, script_of

pytestmark = pytest.mark.spark

EXAMPLES = 300 if os.environ.get("KRAFTLAKE_TESTS") == "long" else 10


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaClasses]:
    classes = kafka_logs()
    yield classes
    classes.close()


PRODUCER = st.sampled_from(PRODUCERS)
APPEND = st.tuples(st.just("append"), PRODUCER, st.booleans(), st.integers(1, 3), st.integers(0, 3))
END = st.tuples(st.just("end"), PRODUCER, st.booleans(), st.sampled_from([None, 86_401_000]))
STEPS = st.lists(
    st.one_of(
        APPEND,
        APPEND,
        END,
        st.tuples(st.just("left"), PRODUCER),
        st.tuples(st.just("elect")),
        st.tuples(st.just("cut"), st.integers(0, 4)),
        st.tuples(st.just("start_at"), st.integers(0, 6)),
        st.tuples(st.just("age")),
    ),
    max_size=30,
)
FETCHES = st.lists(
    st.one_of(
        st.tuples(st.just("fetch"), st.lists(st.one_of(APPEND, APPEND, APPEND, END), min_size=10, max_size=60)),
        st.tuples(st.just("elect")),
        st.tuples(st.just("cut"), st.integers(0, 40)),
    ),
    max_size=6,
)


@settings(max_examples=EXAMPLES)
@given(first=STEPS, second=STEPS)
def test_kafkas_log_and_ours_write_the_same_files_and_go_on_with_each_others(
    kafka: KafkaClasses,
    first: list[tuple[Any, ...]],
    second: list[tuple[Any, ...]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    theirs, ours = tmp_path_factory.mktemp("theirs"), tmp_path_factory.mktemp("ours")
    script = Script()
    steps = script_of(first, script)
    made = our_log(ours, steps)
    assert made == kafka_log(kafka, theirs, steps)
    assert content(ours) == content(theirs)
    stored = StoredState(clean=True, recovery_point=script.ends[-1], log_start_offset=script.start)
    for one in (ours, theirs):
        shutil.copytree(one / "foo-0", one.with_name(f"{one.name}-copy") / "foo-0")
    steps = script_of(second, script)
    crossed = our_log(theirs.with_name(f"{theirs.name}-copy"), steps, stored)
    taken = kafka_log(kafka, ours.with_name(f"{ours.name}-copy"), steps, stored)
    # Of the segment that was closed as the last one, Kafka keeps entries of what was cut where they are true, and
    # forgets the largest timestamp where no entry has it.
    for log in (crossed, taken):
        for segment in log["segments"]:
            if segment["base"] == made["segments"][-1]["base"]:
                del segment["offsets"], segment["times"]
    assert crossed == taken


@settings(max_examples=EXAMPLES)
@given(steps=STEPS, torn=st.integers(0, 80), flushed=st.integers(0, 30))
@example(steps=[("append", 7, False, 1, 0), ("start_at", 1)], torn=0, flushed=0)
@example(
    steps=[*[("append", 7, False, 1, 0)] * 3, ("start_at", 1), ("cut", 2), ("append", 7, False, 1, 2)],
    torn=0,
    flushed=0,
)
def test_a_torn_log_is_recovered_to_the_same(
    kafka: KafkaClasses, steps: list[tuple[Any, ...]], torn: int, flushed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ours, theirs = tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("theirs")
    script = Script()
    our_log(ours, script_of(steps, script))
    last = max((ours / "foo-0").glob("*.log"))
    data = last.read_bytes()
    last.write_bytes(data[: max(0, len(data) - torn)])
    shutil.copytree(ours / "foo-0", theirs / "foo-0")
    stored = StoredState(recovery_point=min(flushed, int(last.stem)), log_start_offset=script.start)
    assert our_log(ours, [], stored) == kafka_log(kafka, theirs, [], stored)
    assert content(ours) == content(theirs)


@settings(max_examples=EXAMPLES)
@given(steps=FETCHES, damaged=st.none() | st.floats(0, 1), last=st.floats(0, 1))
def test_what_is_fetched_at_once_is_written_and_recovered_to_the_same(
    kafka: KafkaClasses,
    steps: list[tuple[Any, ...]],
    damaged: float | None,
    last: float,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    ours, theirs = tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("theirs")
    made = script_of(steps, Script())
    assert our_log(ours, made, configs=LARGE) == kafka_log(kafka, theirs, made, configs=LARGE)
    assert content(ours) == content(theirs)
    for folder in (ours, theirs):
        (log,) = (folder / "foo-0").glob("*.log")
        data = bytearray(log.read_bytes())
        ends = list(itertools.accumulate(one.size for one in log_batches(bytes(data))))
        if damaged is not None and ends:
            data[ends[int(damaged * (len(ends) - 1))] - 1] ^= 1  # what a checksum covers: Kafka fails at other damage
        log.write_bytes(data[: round((0.5 + last) * len(data))])
    stored = StoredState()
    assert our_log(ours, [], stored, LARGE) == kafka_log(kafka, theirs, [], stored, LARGE)
    assert content(ours) == content(theirs)


SENT = [["lead", base64.b64encode(batch(b"x", producer=7, sequence=number)).decode(), 0] for number in range(7)]


@pytest.mark.parametrize("ended", ["in order", "killed", "truncated"])
def test_a_batch_that_is_repeated_after_a_restart_is_known_here_and_out_of_order_for_kafka(
    kafka: KafkaClasses, ended: str, tmp_path: Path
) -> None:
    """On purpose: a producer that gets this error writes its records again, in a new epoch."""
    steps, again, unknown = SENT[:6], SENT[1:6], ["OutOfOrderSequenceException"]
    configs = CONFIGS | {"segment.bytes": "150"}  # two batches in each, and so a snapshot behind each second one
    for log, known in ((our_log, [1, 2, 3, 4, 5]), (partial(kafka_log, kafka), [*unknown * 4, 5])):
        folder = tmp_path / str(known[0])
        if ended == "truncated":
            assert log(folder, [*SENT, ["cut", 6], *again], configs=configs)["answers"] == [*range(7), *known]
            continue
        assert log(folder, steps, configs=configs)["answers"] == [*range(6)]
        if ended == "killed":
            (folder / "foo-0" / f"{6:020d}.snapshot").unlink()
        stored = StoredState(clean=ended == "in order", recovery_point=0 if ended == "killed" else 6)
        assert log(folder, again, stored, configs)["answers"] == known
