"""Compaction of a partition's log beside Kafka's own cleaner: the same parts are dirty, and the same files are left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftlake.kafka_files.node.partition_files import parse_offsets
from kraftlake.replica_manager.logs.disk.log_directory import CLEANED_TO, LOG_STARTS, RECOVERY_POINTS
from simulator.data_batches import keyed
from tests.interop.kafka_classes import KafkaClasses
from tests.interop.kafka_logs import kafka_logs
from tests.interop.logs_of_both import PRODUCERS, Script, content, kafka_log, our_log
from tests.interop.managers_of_both import kafka_manager, our_manager

pytestmark = pytest.mark.spark

EXAMPLES = 400 if os.environ.get("KRAFTLAKE_TESTS") == "long" else 8
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaClasses]:
    classes = kafka_logs()
    yield classes
    classes.close()


class KeyedScript(Script):
    """Steps of a compacted log."""

    cleaned_to = 0

    def put(self, producer: int | None, transactional: bool, records: list[tuple[int, bool]], kind: str) -> None:
        """A batch of records, each with the number of its key and whether it has a value."""
        self.time += 60_000
        id_ = -1 if producer is None else producer
        transactional = id_ >= 0 and (transactional or id_ in self.open[-1])
        data = keyed(
            *[(b"key-%d" % key, b"%d at %d" % (key, self.time) if has_value else None) for key, has_value in records],
            times=tuple(self.time + at for at in range(len(records))),
            producer=id_,
            transactional=transactional,
            sequence=self.ends[-1] if id_ >= 0 else -1,
            append_time=kind == "append time",
        )
        self._append(data, self.open[-1] | ({id_} if transactional else frozenset()))

    def start_at(self, forth: int) -> None:
        """Not in a log with transactions: Kafka may not look for the last stable offset again."""
        if not any(self.open):
            super().start_at(forth)

    def cut(self, back: int) -> None:
        """To the end of a batch; where there are transactions not below what was cleaned, which is committed."""
        lowest = self.cleaned_to if any(self.open) else self.start
        keep = [end for end in self.ends if end >= lowest]
        super().cut(min(back, len(keep) - 1))
        self.cleaned_to = min(self.cleaned_to, self.ends[-1])

    def clean(self, later_ms: int, slots: int) -> None:
        self.steps.append(["clean", self.time + later_ms, slots])
        self.cleaned_to = self.ends[-1]


class ManagedScript(KeyedScript):
    """The same in a directory, whose broker restarts."""

    def start_at(self, forth: int) -> None:
        """Written to the checkpoint at once: ours does that at the next truncation, Kafka's once a minute."""
        super().start_at(forth)
        self.checkpoint()

    def begin_anew(self, forth: int) -> None:
        """All records go; where there is none in a transaction, as for `start_at`."""
        if not any(self.open):
            self.start = self.ends[-1] + forth
            self.ends, self.open, self.cleaned_to = [self.start], [frozenset()], 0
            self.steps.append(["anew", self.start])

    def checkpoint(self) -> None:
        self.steps.append(["checkpoint"])

    def restart(self, in_order: bool) -> None:
        """The process ends, in order or not, and starts again."""
        self.steps.append(["restart", in_order])


PUT = st.tuples(
    st.just("put"),
    st.sampled_from([None, *PRODUCERS]),
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 6), st.sampled_from([True, True, True, False])), min_size=1, max_size=5),
    st.sampled_from(["", "", "append time"]),
)
END = st.tuples(st.just("end"), st.sampled_from(PRODUCERS), st.booleans(), st.none())
STEP = st.one_of(
    PUT,
    PUT,
    PUT,
    PUT,
    END,
    END,
    st.tuples(st.just("elect")),
    st.tuples(st.just("cut"), st.integers(0, 4)),
    st.tuples(st.just("start_at"), st.integers(0, 6)),
    st.tuples(st.just("age")),
    st.tuples(st.just("clean"), st.sampled_from([0, HOUR_MS, 30 * HOUR_MS]), st.sampled_from([6, 9, 1000])),
)
STEPS = st.lists(STEP, min_size=25, max_size=80)
RESTART = st.one_of(
    st.tuples(st.just("restart"), st.booleans()),
    st.tuples(st.just("restart"), st.booleans()),
    st.tuples(st.just("checkpoint")),
    st.tuples(st.just("cut"), st.integers(0, 15)),
    st.tuples(st.just("begin_anew"), st.integers(0, 3)),
)
MANAGED_STEPS = st.lists(st.one_of(STEP, STEP, STEP, STEP, RESTART), min_size=25, max_size=80)
CONFIGS = st.fixed_dictionaries(
    {
        "cleanup.policy": st.sampled_from(["compact", "compact", "compact,delete"]),
        "segment.bytes": st.sampled_from(["400", "900"]),
        "index.interval.bytes": st.just("150"),
        "retention.ms": st.sampled_from(["-1", str(2 * HOUR_MS)]),
        "min.cleanable.dirty.ratio": st.sampled_from(["0.01", "0.5"]),
        "min.compaction.lag.ms": st.sampled_from(["0", "240000"]),
        "max.compaction.lag.ms": st.sampled_from(["9223372036854775807", "1200000"]),
        "delete.retention.ms": st.sampled_from(["0", "3600000"]),
    }
)


def written(script: KeyedScript, steps: list[tuple[Any, ...]]) -> None:
    """Write steps to a script, and clean what they leave."""
    for name, *arguments in steps:
        getattr(script, name)(*arguments)
    for producer in PRODUCERS:
        script.end(producer, commit=True, horizon=None)
    script.clean(0, 1000)


@settings(max_examples=EXAMPLES)
@given(steps=STEPS, configs=CONFIGS)
def test_kafkas_cleaner_and_ours_leave_the_same_files(
    kafka: KafkaClasses,
    steps: list[tuple[Any, ...]],
    configs: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    ours, theirs = tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("theirs")
    written(script := KeyedScript(), steps)
    state = our_log(ours, script.steps, configs=configs)
    assert state == kafka_log(kafka, theirs, script.steps, configs=configs)
    assert content(ours) == content(theirs)


@settings(max_examples=EXAMPLES)
@given(steps=MANAGED_STEPS, configs=CONFIGS)
def test_after_restarts_the_same_segments_can_be_cleaned_and_the_same_files_are_left(
    kafka: KafkaClasses,
    steps: list[tuple[Any, ...]],
    configs: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    ours, theirs = tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("theirs")
    written(script := ManagedScript(), steps)
    state = our_manager(ours, script.steps, configs)
    assert state == kafka_manager(kafka, theirs, script.steps, configs)
    assert with_entries(content(ours)) == with_entries(content(theirs))
    for checkpoint in (CLEANED_TO, RECOVERY_POINTS, LOG_STARTS):
        assert rows(ours / checkpoint) == rows(theirs / checkpoint)


def with_entries(files: dict[str, object]) -> dict[str, object]:
    """Without a snapshot of no producer and a file of no epoch, as Kafka writes them where a log begins anew."""
    return {name: held for name, held in files.items() if held not in ([], b"0\n0\n")}


def rows(checkpoint: Path) -> list[tuple[str, int, int]]:
    return list(parse_offsets(checkpoint.read_bytes())) if checkpoint.exists() else []
