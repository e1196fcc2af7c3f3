"""A partition's log on disk beside Kafka's own UnifiedLog: the same files, and each goes on where the other ended."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kraftlake.kafka_files.node.partition_files import LEADER_EPOCHS
from kraftlake.replica_manager.errors import OutOfOrderSequenceError
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.disk.log_loader import StoredState
from kraftlake.replica_manager.logs.disk.log_segment import LogSegment, batches_in
from kraftlake.replica_manager.logs.disk.producer_snapshots import decode_snapshot
from kraftlake.replica_manager.logs.log_batch import log_batches
from kraftlake.replica_manager.logs.log_config import LogConfig
from simulator.data_batches import batch, emptied, marker
from tests.interop.kafka_classes import KafkaClasses
from tests.interop.kafka_logs import kafka_logs
from tests.replica_manager.brokers import FOO
from tests.replica_manager.logs.disk.opened import CLEAN, opened

pytestmark = pytest.mark.spark

CONFIGS = {"segment.bytes": "500", "index.interval.bytes": "150", "retention.ms": "-1"}
LARGE = CONFIGS | {"segment.bytes": "100000"}
"""Kafka never divides what it fetched into two segments, so what is fetched at once goes into large ones."""
PRODUCERS = (7, 8)
EXAMPLES = 300 if os.environ.get("KRAFTLAKE_TESTS") == "long" else 10


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaClasses]:
    classes = kafka_logs()
    yield classes
    classes.close()


def kafka_log(
    kafka: KafkaClasses,
    folder: Path,
    steps: list[list[object]],
    stored: StoredState = CLEAN,
    configs: dict[str, str] = CONFIGS,
) -> dict[str, Any]:
    """What Kafka's log in a folder is after the steps; it is closed then."""
    partition = folder / "foo-0"
    partition.mkdir(parents=True, exist_ok=True)
    clean, ends = str(stored.clean).lower(), (stored.recovery_point, stored.log_start_offset)
    # Kafka allows small segments by this name only.
    theirs = {name.replace("segment.bytes", "internal.segment.bytes"): value for name, value in configs.items()}
    told = kafka.ask("run", partition, json.dumps(theirs), FOO, clean, *ends, json.dumps(steps))
    if told["start"]:  # Kafka does not look for it again when the start moves, or the log is cut then
        del told["stable"]
    return told


def our_log(
    folder: Path, steps: list[list[Any]], stored: StoredState = CLEAN, configs: dict[str, str] = CONFIGS
) -> dict[str, Any]:
    """The same of ours."""
    log = opened(folder, LogConfig().overridden(configs), stored=stored)
    answers: list[int | str] = []
    for name, *arguments in steps:
        match name:
            case "lead":
                answers.append(led(log, *arguments))
            case "append":
                log.append_as_follower(base64.b64decode(arguments[0]), arguments[1])
            case "elect":
                log.assign_epoch_start_offset(arguments[0], log.log_end_offset)
            case "cut":
                log.truncate_to(arguments[0])
            case "start":
                log.update_high_watermark(log.log_end_offset)
                log.maybe_increment_log_start_offset(arguments[0])
            case "age":
                log.delete_old_segments()
    log.update_high_watermark(log.log_end_offset)
    found = seen(log) | {"told": answers}
    log.flush()
    log.close()
    return found


def led(log: DiskPartitionLog, data: str, epoch: int) -> int | str:
    """Append a client's batch; returns its offset, or the name of Kafka's error."""
    try:
        return log.append_as_leader(base64.b64decode(data), epoch).first_offset
    except OutOfOrderSequenceError:
        return "OutOfOrderSequenceException"


def seen(log: DiskPartitionLog) -> dict[str, Any]:
    told = {
        "start": log.log_start_offset,
        "end": log.log_end_offset,
        "stable": log.last_stable_offset,
        "epochs": [list(pair) for pair in log.epochs],
        "producers": {
            str(state.producer_id): [
                state.producer_epoch, state.coordinator_epoch, state.last_timestamp,
                -1 if state.transaction_first_offset is None else state.transaction_first_offset,
                state.last_sequence, state.batches[-1].last_offset if state.batches else -1,
            ]
            for state in log.producers.states()
        },
        "segments": [segment_seen(segment) for segment in log.segments],
    }  # fmt: skip
    if told["start"]:
        del told["stable"]
    return told


def segment_seen(segment: LogSegment) -> dict[str, Any]:
    base = segment.base_offset
    return {
        "base": base,
        "batches": [[held.base_offset, held.last_offset] for _, held in batches_in(segment.log)],
        "offsets": [
            [base + relative, position]
            for relative, position in map(segment.offsets.__getitem__, range(len(segment.offsets)))
        ],
        "times": [
            [time, base + relative] for time, relative in map(segment.times.__getitem__, range(len(segment.times)))
        ],
    }


def content(folder: Path) -> dict[str, object]:
    """The files of the partition; of a producer snapshot the states in any order."""
    found: dict[str, object] = {}
    newest = max((folder / "foo-0").glob("*.log")).stem
    for path in (folder / "foo-0").iterdir():
        data = path.read_bytes()
        # Kafka makes the file of the epochs before there is one, and deletes files later.
        if not path.name.endswith(".deleted") and (data or path.name != LEADER_EPOCHS):
            if path.suffix in (".index", ".timeindex") and path.stem == newest:
                continue  # Kafka leaves what it has allocated, and what a truncation has removed
            found[path.name] = sorted(map(repr, decode_snapshot(data))) if path.suffix == ".snapshot" else data
    return found


class Script:
    """Steps for a log, made beside what its end is."""

    def __init__(self) -> None:
        self.steps: list[list[object]] = []
        self.ends = [0]
        self.start = 0
        self.epoch = 0
        self.time = 1_000
        self.open: list[frozenset[int]] = [frozenset()]
        """The producers with an open transaction at each of `ends`."""

    def append(self, producer: int, transactional: bool, count: int, gap: int) -> None:
        self.time += 10
        transactional |= producer in self.open[-1]
        ours = producer if transactional or gap % 2 else -1
        self._append(
            batch(*[b"x" * 30] * count, times=(self.time,) * count, producer=ours, transactional=transactional),
            self.open[-1] | ({producer} if transactional else frozenset()),
            gap if gap > 1 else 0,
        )

    def _append(self, data: bytes, open_: frozenset[int], gap: int = 0) -> None:
        (made,) = log_batches(data)
        placed = made.placed(self.ends[-1] + gap, self.epoch)
        self.steps.append(["append", base64.b64encode(placed.data).decode(), self.epoch])
        self.ends.append(placed.last_offset + 1)
        self.open.append(open_)

    def fetch(self, steps: list[tuple[Any, ...]]) -> None:
        """Batches that are appended at once."""
        made = [base64.b64decode(data) for _, data, _ in script_of(steps, self)]
        if made:
            del self.steps[-len(made) :]
            self.steps.append(["append", base64.b64encode(b"".join(made)).decode(), self.epoch])

    def end(self, producer: int, commit: bool, horizon: int | None) -> None:
        if producer in self.open[-1]:
            self._append(marker(producer, commit=commit, horizon=horizon), self.open[-1] - {producer})

    def left(self, producer: int) -> None:
        """A marker that has lost its record to a compacting leader."""
        self._append(emptied(marker(producer, commit=False, epoch=1)), self.open[-1])

    def elect(self) -> None:
        self.epoch += 1
        self.steps.append(["elect", self.epoch])

    def cut(self, back: int) -> None:
        """To the end of a batch."""
        keep = [end for end in self.ends if end >= self.start]
        to = keep[max(0, len(keep) - 1 - back)]
        self.ends = [end for end in self.ends if end <= to]
        del self.open[len(self.ends) :]
        self.steps.append(["cut", to])

    def start_at(self, forth: int) -> None:
        self.start = min(self.start + forth, self.ends[-1])
        self.steps.append(["start", self.start])

    def age(self) -> None:
        self.steps.append(["age"])


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


def script_of(steps: list[tuple[Any, ...]], script: Script) -> list[list[object]]:
    begin = len(script.steps)
    for name, *arguments in steps:
        getattr(script, name)(*arguments)
    return script.steps[begin:]


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
    """On purpose: a producer that is told so writes its records again, in a new epoch."""
    steps, again, unknown = SENT[:6], SENT[1:6], ["OutOfOrderSequenceException"]
    configs = CONFIGS | {"segment.bytes": "150"}  # two batches in each, and so a snapshot behind each second one
    for log, known in ((our_log, [1, 2, 3, 4, 5]), (partial(kafka_log, kafka), [*unknown * 4, 5])):
        folder = tmp_path / str(known[0])
        if ended == "truncated":
            assert log(folder, [*SENT, ["cut", 6], *again], configs=configs)["told"] == [*range(7), *known]
            continue
        assert log(folder, steps, configs=configs)["told"] == [*range(6)]
        if ended == "killed":
            (folder / "foo-0" / f"{6:020d}.snapshot").unlink()
        stored = StoredState(clean=ended == "in order", recovery_point=0 if ended == "killed" else 6)
        assert log(folder, again, stored, configs)["told"] == known
