"""`source.watch`: the events of a log that grows are those of the whole, however it grows."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kraftlake
from kraftlake.api import Watch
from kraftlake.api.events import rows_of
from kraftlake.image.cluster_counts import count_cluster
from kraftlake.image.cluster_health import count_health
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.batch import RecordBatch
from kraftlake.runtime.errors import OffsetError, ReplayError, UsageError
from kraftlake.tables.events.log_events import LogEvents
from tests.cli.made_logs import unreplayable_log
from tests.cli.running import DIRECTORY
from tests.metadata_logs import metadata_logs
from tests.replay.live.growing import GrowingLog, cut, empty_directory, segment_bytes
from tests.replay.made_logs import MadeLog, begin, end, log_of, metadata_version, reference_image, topic

Rows = list[dict[str, Any]]
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
LAST, EXAMPLES = (5736, 30) if LONG else (200, 6)
"""The last offset of the sample that is taken, a batch's last, and how often."""


def events_of(batches: Sequence[RecordBatch], first: int | None = None) -> Rows:
    if not batches or (first is not None and first > batches[-1].last_offset):
        return []
    return [row for table in LogEvents(MadeLog(records=tuple(batches)), first) for row in rows_of(table)]


def stepped(watch: Watch) -> Rows:
    """The events up to the end of what is there."""
    rows: Rows = []
    watch.has_more = True
    while watch.has_more:
        rows += [row for table in watch.step() for row in rows_of(table)]
    return rows


def log_in_pieces() -> st.SearchStrategy[tuple[list[RecordBatch], list[Sequence[RecordBatch]]]]:
    def pieces(log: list[RecordBatch]) -> st.SearchStrategy[Any]:
        cuts = st.lists(st.integers(0, len(log)), max_size=8)
        return st.tuples(st.just(log), cuts.map(lambda some: list(cut(log, some))))

    return metadata_logs().flatmap(pieces)


@settings(max_examples=500 if LONG else 25)
@given(log_in_pieces(), st.data())
def test_the_events_of_a_log_that_grows_are_those_of_the_whole(
    made: tuple[list[RecordBatch], list[Sequence[RecordBatch]]], data: st.DataObject
) -> None:
    log, pieces = made
    begun = pieces[0]
    reader = MadeLog(records=tuple(begun))
    first = data.draw(st.integers(0, reader.end_offset))
    watch = Watch(GrowingLog(reader, pieces[1:]), first)
    rows: Rows = []
    for _ in range(len(pieces) + 1):
        rows += [row for table in watch.step() for row in rows_of(table)]
    assert rows == events_of(log, first)
    image = reference_image(log)
    assert watch.state.offset == log[-1].last_offset
    assert (watch.state.counts, watch.state.health) == (count_cluster(image), count_health(image))
    assert watch.image.topics == image.topics


@settings(max_examples=EXAMPLES)
@given(st.lists(st.integers(0, 150), max_size=6))
def test_the_events_of_a_lake_that_another_handle_appends_to_are_those_of_the_whole(cuts: list[int]) -> None:
    source = kraftlake.open(DIRECTORY)
    batches = list(source.batches(0, LAST))
    with tempfile.TemporaryDirectory() as folder:
        log = MetadataLog.create(f"{folder}/lake", cluster_id=source.cluster_id, durability="os")
        with kraftlake.open(f"{folder}/lake").watch(0, poll=0.01) as watch:
            rows: Rows = []
            for piece in cut(batches, cuts):
                if piece:
                    log.append(piece)
                rows += stepped(watch)
    assert rows == list(source.events(0, batches[-1].last_offset))


@settings(max_examples=EXAMPLES)
@given(st.integers(0, 2**32))
def test_a_directory_that_is_written_byte_by_byte_has_the_events_of_its_whole_batches(seed: int) -> None:
    """Most writes end within a batch: a torn tail that the next one completes."""
    chance = random.Random(seed)
    source = kraftlake.open(DIRECTORY)
    content = segment_bytes(list(source.batches(0, LAST)))
    with tempfile.TemporaryDirectory() as folder:
        directory, segment = empty_directory(Path(folder))
        watch = kraftlake.open(directory).watch(0, include_uncommitted=True)
        rows: Rows = []
        at = 0
        with segment.open("ab", buffering=0) as file:
            while at < len(content):
                size = chance.choice([1, 60, 500, 8_000])
                file.write(content[at : at + size])
                at += size
                rows += stepped(watch)
    assert rows == list(source.events(0, LAST))
    assert watch.state.seen_to == LAST + 1


def test_without_a_beginning_only_what_comes_is_shown() -> None:
    log = log_of(1, [metadata_version()], [topic(1)], [topic(2)], 2, [begin(), topic(3)], [end()])
    watch = Watch(GrowingLog(MadeLog(records=tuple(log[:3])), [log[3:5], log[5:]]), None)
    assert [watch.state.leader, watch.state.epoch, watch.state.offset] == [3000, 1, 2]
    seen = [(event["offset"], event["kind"], event["topic"]) for event in stepped(watch)]
    assert seen == [
        (3, "topic_created", "topic-2"), (4, "controller_elected", None), (7, "topic_created", "topic-3"),
    ]  # fmt: skip
    assert watch.state.epoch == 2


def test_a_beginning_after_what_is_committed_hides_what_comes_before_it() -> None:
    log = log_of(1, [metadata_version()], [topic(1)], [topic(2)], [topic(3)])
    watch = Watch(GrowingLog(MadeLog(records=tuple(log[:2])), [log[2:]]), 4)
    assert [event["topic"] for event in stepped(watch)] == ["topic-3"]


def test_what_comes_before_a_record_that_cannot_be_replayed_is_shown_and_lenient_goes_on(tmp_path: Path) -> None:
    source = kraftlake.open(unreplayable_log(tmp_path))
    watch = source.watch(0, include_uncommitted=True)
    rows: Rows = []
    with pytest.raises(ReplayError, match="offset 2"):
        rows += [row for table in watch.step() for row in rows_of(table)]
    rows = []
    steps = source.watch(0, include_uncommitted=True).step()
    rows += rows_of(next(steps))
    assert rows[-1]["topic"] == "foo"
    lenient = source.watch(0, include_uncommitted=True, lenient=True)
    assert stepped(lenient) == rows
    assert [record.offset for record in lenient.skipped] == [2]


def test_an_iteration_gives_events_and_sleeps_between_the_steps_that_read_nothing() -> None:
    log = log_of(1, [metadata_version()], [topic(1)], [topic(2)])
    live = GrowingLog(MadeLog(records=tuple(log[:2])))
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            live.pieces = [log[2:]]

    with Watch(live, None, poll=7, sleep=sleep) as watch:
        assert [event["topic"] for event in islice(watch, 2)] == ["topic-1", "topic-2"]
    assert slept == [7, 7, 7]
    assert live.closed


def test_brokers_choose_what_they_host(tmp_path: Path) -> None:
    source = kraftlake.open(DIRECTORY)
    kraftlake.import_source(DIRECTORY, tmp_path / "lake")
    with kraftlake.open(tmp_path / "lake").watch(5500, of_brokers=[3]) as watch:
        expected = list(source.events(5500, of_brokers=[3]))
        assert list(islice(watch, len(expected))) == expected


@pytest.mark.parametrize(
    ("source", "options", "error", "sentence"),
    [
        (DIRECTORY / "00000000000000000000.log", {}, UsageError, "can't be watched"),
        (DIRECTORY, {"from_offset": 9999}, OffsetError, "9999 is not in __cluster_metadata-0"),
        (DIRECTORY, {"poll": 0}, UsageError, "0 is no poll interval"),
        (DIRECTORY, {"include_uncommitted": True, "quorum": print}, UsageError, "not both"),
    ],
)
def test_what_cannot_be_watched_is_refused(source: Path, options: dict[str, Any], error: Any, sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        kraftlake.open(source).watch(**options)
