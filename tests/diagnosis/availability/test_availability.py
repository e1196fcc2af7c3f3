"""Availability is what the images of the log, one after the other, have; however the log is cut."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.api import Source
from kraftlake.diagnosis.availability.availability import Availability
from kraftlake.diagnosis.availability.window_log import WindowLog
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.log_record import log_records
from kraftlake.records.rows import to_rows
from kraftlake.replay.log.log_replay import LogReplay
from tests.diagnosis.availability import brute_force
from tests.few_examples import few_examples
from tests.metadata_logs import metadata_logs
from tests.replay import made_logs as log
from tests.tables.logs_for_writers import REAL_LOGS, cut, generated_log, real_log

T = log.TIME
LENGTH = None if os.environ.get("KRAFTLAKE_TESTS") == "long" else 700
"""How many batches of a log are looked at image by image."""


def source_of(batches: Sequence[RecordBatch], start: int = 0, *ends: int) -> Source:
    """A log in memory, from `start` on, with snapshots that end at `ends`."""
    return Source(log.trimmed(batches, start, *ends), SourceKind.DIRECTORY, "made", None)  # type: ignore[arg-type]


def by_key(found: Availability, *columns: str) -> dict[Any, dict[str, Any]]:
    rows = found.rows.to_pylist()
    return {(row["topic_id"], row["partition"]): {name: row[name] for name in columns} for row in rows}


def check(batches: list[RecordBatch], found: Availability, first: int = 0, begin: int | None = None) -> None:
    """The answer by partition is that of the images; of a window that begins at an offset, or at a time."""
    fold, since, last = brute_force.fold([one for one in batches if one.base_offset <= found.last_offset], first, begin)
    assert found.begin == since
    assert found.end <= last
    stretches = fold.stretches(found.begin, found.end)
    expected = brute_force.rows_by_partition(fold, stretches)
    columns = next(iter(expected.values()), {})
    assert by_key(found, *columns) == expected
    offline = [one for one in stretches if one.state == "offline"]
    assert found.total["any_offline_seconds"] == brute_force.union(offline) / 1000
    assert found.total["partitions"] == len(expected)


@pytest.mark.parametrize("sample", REAL_LOGS)
def test_real_logs_have_the_availability_of_their_images(sample: str) -> None:
    batches = real_log(sample)[:LENGTH]
    found = source_of(batches).availability(by="partition")
    check(batches, found)
    assert found.total["one_in_sync_seconds"] > 0 or sample == "crash-torn"


@pytest.mark.parametrize("factor", [1, 3])
def test_generated_logs_have_the_availability_of_their_images(factor: int) -> None:
    batches = generated_log(factor)[:LENGTH]
    check(batches, source_of(batches).availability(by="partition"))


@st.composite
def logs(draw: st.DrawFn) -> list[RecordBatch]:
    """Logs whose clocks go back and miss times, with changes of min.insync.replicas among their records."""
    made = draw(metadata_logs())
    names = sorted({m.name for batch in made for m in messages(batch) if isinstance(m, r.TopicRecord)})
    values = st.sampled_from([None, "1", "2", "3", "many"])
    resources = st.sampled_from([(4, ""), (4, "1"), *((2, name) for name in names)])
    configs = draw(st.lists(st.tuples(st.integers(0, len(made)), resources, values), max_size=6))
    batches: list[RecordBatch] = []
    offset, time = 0, T
    for number, batch in enumerate(made):
        for _, (kind, name), value in (one for one in configs if one[0] == number):
            config = r.ConfigRecord(resource_type=kind, resource_name=name, name="min.insync.replicas", value=value)
            batches.append(log.data(offset, config, epoch=batch.epoch, time=time))
            offset += 1
        time += draw(st.integers(-3, 9))
        stamp = time if batch is made[0] or batch is made[-1] or draw(st.integers(0, 5)) else -1
        batches.append(attrs.evolve(batch, base_offset=offset, timestamp=stamp))
        offset += batch.record_count
    return batches


def messages(batch: RecordBatch) -> Iterable[Any]:
    return [] if batch.control else [record.message for record in log_records(batch)]


@few_examples
@given(logs())
def test_random_histories_have_the_availability_of_their_images(batches: list[RecordBatch]) -> None:
    check(batches, source_of(batches).availability(by="partition"))


@few_examples
@given(logs(), st.data())
def test_a_window_is_that_part_of_the_log(batches: list[RecordBatch], data: st.DataObject) -> None:
    end = data.draw(st.sampled_from([batch for batch in batches if batch.timestamp >= 0]))
    first = data.draw(st.sampled_from([batch.base_offset for batch in batches if batch.base_offset <= end.base_offset]))
    last = end.last_offset
    check(batches, source_of(batches).availability(first, last, by="partition"), first)


def summary_of(pieces: Iterable[Sequence[RecordBatch]], by: str) -> tuple[dict[str, Any], pa.Table]:
    measured, replay = WindowLog(MetadataImage.EMPTY, None, None, lambda _: True), LogReplay()
    for piece in pieces:
        for chunk in replay.take(to_rows(piece)) if piece else ():
            measured.take(chunk)
    assert measured.clock.begin is not None
    return measured.summary(by, measured.clock.begin, measured.clock.now)


@few_examples
@given(logs(), st.lists(st.integers(0, 40), max_size=6))
def test_every_split_of_the_log_has_the_same_answer(batches: list[RecordBatch], cuts: list[int]) -> None:
    for by in ("partition", "broker"):
        assert summary_of(cut(batches, cuts), by) == summary_of([batches], by)


@few_examples
@given(logs())
def test_the_sums_are_the_same_by_topic_by_partition_and_by_broker(batches: list[RecordBatch]) -> None:
    source, names = source_of(batches), ("offline_seconds", "under_min_isr_seconds", "one_in_sync_seconds")
    for by in ("topic", "partition", "broker"):
        found = source.availability(by=by)
        totals = [sum(round(1000 * value) for value in found.rows[name].to_pylist()) for name in names]
        assert totals == [round(1000 * found.total[name]) for name in names]
