"""Compaction of a partition's log beside Kafka's own cleaner: the same parts are dirty, and the same files are left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.data_batches import keyed
from tests.interop.kafka_classes import KafkaClasses
from tests.interop.kafka_logs import kafka_logs
from tests.interop.logs_of_both import PRODUCERS, Script, content, kafka_log, our_log

pytestmark = pytest.mark.spark

EXAMPLES = 400 if os.environ.get("KRAFTLAKE_TESTS") == "long" else 15
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


PUT = st.tuples(
    st.just("put"),
    st.sampled_from([None, *PRODUCERS]),
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 6), st.sampled_from([True, True, True, False])), min_size=1, max_size=5),
    st.sampled_from(["", "", "append time"]),
)
STEPS = st.lists(
    st.one_of(
        PUT,
        PUT,
        PUT,
        PUT,
        st.tuples(st.just("end"), st.sampled_from(PRODUCERS), st.booleans(), st.none()),
        st.tuples(st.just("end"), st.sampled_from(PRODUCERS), st.booleans(), st.none()),
        st.tuples(st.just("elect")),
        st.tuples(st.just("cut"), st.integers(0, 4)),
        st.tuples(st.just("start_at"), st.integers(0, 6)),
        st.tuples(st.just("age")),
        st.tuples(st.just("clean"), st.sampled_from([0, HOUR_MS, 30 * HOUR_MS]), st.sampled_from([6, 9, 1000])),
    ),
    min_size=25,
    max_size=80,
)
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


@settings(max_examples=EXAMPLES)
@given(steps=STEPS, configs=CONFIGS)
def test_kafkas_cleaner_and_ours_leave_the_same_files(
    kafka: KafkaClasses,
    steps: list[tuple[Any, ...]],
    configs: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    ours, theirs = tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("theirs")
    script = KeyedScript()
    for name, *arguments in steps:
        getattr(script, name)(*arguments)
    for producer in PRODUCERS:
        script.end(producer, commit=True, horizon=None)
    script.clean(0, 1000)
    told = our_log(ours, script.steps, configs=configs)
    assert told == kafka_log(kafka, theirs, script.steps, configs=configs)
    assert content(ours) == content(theirs)
