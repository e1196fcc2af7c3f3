"""`image_stream` gives a receiver what one process publishes, whatever the steps are and whenever they are repeated."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException

import kraftlake
from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.diff import diff_images
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import to_rows
from kraftlake.replay.loader.manifest import LoaderManifest, LogDeltaManifest, SnapshotManifest
from kraftlake.spark_jobs import image_stream
from kraftlake.spark_jobs.image_steps import ImageSteps
from kraftlake.spark_jobs.source_faults import KraftSourceError
from tests.metadata_logs import metadata_logs
from tests.replay.made_logs import UNKNOWN, abort, begin, end, log_of, topic
from tests.tables.logs_for_writers import REAL_LOGS, cut, real_log
from tests.tables.sample_log import SAMPLES, append_in, batches_between, lake_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = settings().max_examples // 3
"""Each of them writes a lake."""

Published = tuple[MetadataImage, LoaderManifest, dict[str, Any]]


def change_of(delta: MetadataDelta, image: MetadataImage) -> dict[str, Any]:
    """What there is to see of a change: the image before, the parts that it changes, the local changes of brokers."""
    topics = delta.topics_delta
    local_changes = {} if topics is None else {broker: topics.local_changes(broker) for broker in image.cluster.brokers}
    return {"before": delta.image, "parts": repr(delta), "local_changes": local_changes}


class Receiver:
    """Keeps what it receives, and skips what it has; fails at the calls numbered `failures`, before it keeps them."""

    def __init__(self, *failures: int) -> None:
        self.received: list[Published] = []
        self.repeated = 0
        self.calls = 0
        self.failures = failures

    def __call__(self, delta: MetadataDelta, image: MetadataImage, manifest: LoaderManifest) -> None:
        self.calls += 1
        if self.calls in self.failures:
            raise ValueError("not now")
        assert manifest.provenance == image.provenance
        if self.received and manifest.provenance.offset <= self.offsets[-1]:
            self.repeated += 1
        else:
            self.received.append((image, manifest, change_of(delta, image)))

    @property
    def offsets(self) -> list[int]:
        return [image.provenance.offset for image, *_ in self.received]


def published(lake: Path) -> list[Published]:
    """What one process publishes of the whole log."""
    changes = kraftlake.open(lake).changes()
    return [(each.image, each.manifest, change_of(each.delta, each.image)) for each in changes]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("lakes")
    return (folder / str(number) for number in range(sys.maxsize))  # type: ignore[return-value]


def new_lake(places: Iterator[Path], batches: list[RecordBatch]) -> Path:
    lake = next(places)
    append_in(MetadataLog.create(lake), 1, batches)
    return lake


@settings(max_examples=EXAMPLES)
@given(log=metadata_logs(), data=st.data())
def test_steps_that_fail_and_are_repeated_bring_each_change_of_the_log_in_order(
    places: Iterator[Path], log: list[RecordBatch], data: st.DataObject
) -> None:
    lake = new_lake(places, log)
    receiver = Receiver()
    steps = ImageSteps(lake, receiver)
    for number, batches in enumerate(filter(None, cut(log, data.draw(st.lists(st.integers(0, 30), max_size=6))))):
        rows, is_first = to_rows(batches), number == 0
        match data.draw(st.sampled_from(["go on", "go on", "restart", "repeat", "fail"])):
            case "restart":
                steps = ImageSteps(lake, receiver)
            case "repeat":
                steps.take_rows(rows, is_first=is_first)
            case "fail":
                receiver.failures = (receiver.calls + data.draw(st.integers(1, 3)),)
                try:
                    steps.take_rows(rows, is_first=is_first)
                except ValueError:
                    receiver.failures = ()
        receiver.failures = ()
        steps.take_rows(rows, is_first=is_first)
    assert receiver.received == published(lake)


@settings(max_examples=EXAMPLES)
@given(log=metadata_logs(), data=st.data())
def test_a_stream_that_starts_anywhere_loads_the_image_there_and_goes_on_as_the_whole_log_does(
    places: Iterator[Path], log: list[RecordBatch], data: st.DataObject
) -> None:
    lake = new_lake(places, log)
    start = data.draw(st.integers(0, log[-1].last_offset))
    (batch,) = (batch for batch in log if batch.base_offset <= start <= batch.last_offset)
    receiver = Receiver()
    ImageSteps(lake, receiver).take_rows(to_rows(log).slice(start), is_first=True)
    received = receiver.received
    before = kraftlake.open(lake).image(batch.base_offset - 1) if batch.base_offset else MetadataImage.EMPTY
    if not before.is_empty():
        (image, manifest, change), *received = received
        assert isinstance(manifest, SnapshotManifest)
        assert change["before"].is_empty()
        assert not diff_images(image, before).changes
    assert received == [each for each in published(lake) if each[0].provenance.offset >= batch.base_offset]


@pytest.mark.parametrize("sample", REAL_LOGS)
def test_real_logs_are_published_as_in_one_process(places: Iterator[Path], sample: str) -> None:
    log = real_log(sample)
    lake = new_lake(places, log)
    receiver = Receiver()
    steps = ImageSteps(lake, receiver)
    for number, batches in enumerate(cut(log, range(0, len(log), 700))[1:]):
        steps.take_rows(to_rows(batches), is_first=number == 0)
    assert receiver.received == published(lake)


def test_an_aborted_transaction_publishes_nothing_of_it_and_an_open_one_nothing_yet(places: Iterator[Path]) -> None:
    log = log_of(1, [topic(1), begin(), topic(2)], [topic(3)], [abort()], [begin(), topic(4)], [topic(5), end()])
    lake = new_lake(places, log)
    receiver = Receiver()
    for number, batch in enumerate(log):  # each in a process of its own
        ImageSteps(lake, receiver).take_rows(to_rows([batch]), is_first=number == 0)
    names = [sorted(image.topics.topics_by_name()) for image, *_ in receiver.received]
    assert receiver.offsets == [0, 1, 5, 9]
    assert names == [[], ["topic-1"], ["topic-1"], ["topic-1", "topic-4", "topic-5"]]


def test_a_trimmed_log_begins_with_the_oldest_image_that_it_has(places: Iterator[Path]) -> None:
    lake = next(places)
    shutil.unpack_archive(SAMPLES / "lakes" / "trimmed.tar.gz", lake)
    (lake,) = (found.parent for found in lake.rglob("log") if found.is_dir())
    log = MetadataLog.open(lake)
    assert log.start_offset > 0
    receiver = Receiver()
    ImageSteps(lake, receiver).take_rows(log.rows(), is_first=True)
    first, *others = kraftlake.open(lake).changes()
    assert first.of_snapshot
    assert receiver.received[0][:2] == (first.image, SnapshotManifest(provenance=first.image.provenance))
    assert receiver.received[0][0].provenance.cluster_id == log.cluster_id is not None
    assert receiver.received[1:] == [(each.image, each.manifest, change_of(each.delta, each.image)) for each in others]


def test_a_stream_that_starts_at_the_end_of_a_log_loads_the_image_there_in_a_step_without_rows(
    places: Iterator[Path],
) -> None:
    batches = log_of(1, [topic(1)], [begin(), topic(2)], [topic(3), end()], [topic(4)])
    lake = new_lake(places, batches[:3])  # with a transaction that is open at its end
    receiver = Receiver(1)
    with pytest.raises(ValueError, match="not now"):
        ImageSteps(lake, receiver).take_rows(to_rows([]), is_first=True)
    steps = ImageSteps(lake, receiver)
    for is_first in (True, False):
        steps.take_rows(to_rows([]), is_first=is_first)
    assert [manifest for _, manifest, _ in receiver.received] == [
        SnapshotManifest(provenance=receiver.received[0][0].provenance)
    ]
    MetadataLog.open(lake).append(batches[3:])
    for number, batch in enumerate(batches[3:]):
        taken = ImageSteps(lake, receiver) if number else steps
        taken.take_rows(to_rows([batch]), is_first=False)
    assert receiver.received[1:] == published(lake)[2:]
    empty = next(places)
    MetadataLog.create(empty)
    ImageSteps(empty, Receiver(1)).take_rows(to_rows([]), is_first=True)


def test_faults_of_the_log_are_one_sentence_and_those_of_a_receiver_its_own(places: Iterator[Path]) -> None:
    log = log_of(1, [topic(1)], [UNKNOWN], [topic(2)])
    receiver = Receiver()
    with pytest.raises(KraftSourceError, match="offset 2"):
        ImageSteps(new_lake(places, log), receiver).take_rows(to_rows(log), is_first=True)
    assert receiver.offsets == [0, 1]
    with pytest.raises(ValueError, match="not now"):
        ImageSteps(new_lake(places, log), Receiver(2)).take_rows(to_rows(log), is_first=True)


@pytest.mark.spark
def test_a_query_that_fails_in_a_step_goes_on_with_that_step(spark: SparkSession, tmp_path: Path) -> None:
    lake, checkpoint = tmp_path / "lake", tmp_path / "checkpoint"
    lake_of(lake, commits=2, last=2_000)

    def run(receiver: Receiver) -> None:
        stream = image_stream(spark, lake, receiver, starting_offset=410, max_records_per_trigger=900)
        query = stream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        assert query.awaitTermination(300)

    receiver = Receiver(100)
    with pytest.raises(StreamingQueryException, match="ValueError: not now"):
        run(receiver)
    kept = receiver.offsets[-1]
    run(receiver)
    assert receiver.repeated > 1
    assert kept < receiver.offsets[receiver.offsets.index(kept) + 1]
    load, *changes = receiver.received
    assert isinstance(load[1], SnapshotManifest)
    assert all(isinstance(manifest, LogDeltaManifest) for _, manifest, _ in changes)
    assert load[0] == kraftlake.open(lake).image(load[0].provenance.offset)
    assert changes == [each for each in published(lake) if each[0].provenance.offset > load[0].provenance.offset]

    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    for file in (last, last.with_name(f".{last.name}.crc")):  # as if killed before Spark has noted the step's end
        file.unlink()
    calls = receiver.calls
    run(receiver)
    assert receiver.calls > calls
    assert changes == receiver.received[1:]


@pytest.mark.spark
def test_a_query_that_starts_at_the_end_of_a_log_loads_the_image_there_and_has_what_is_appended(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake, checkpoint = tmp_path / "lake", tmp_path / "checkpoint"
    log = lake_of(lake, commits=2, last=1000)
    receiver = Receiver()
    for last in (1000, 1500, 2000):  # each in a query of its own
        append_in(log, 1, batches_between(log.end_offset, last))
        stream = image_stream(spark, lake, receiver, starting_offset="latest")
        query = stream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        assert query.awaitTermination(300)
    (image, manifest, _), *changes = receiver.received
    assert image.provenance.offset == 1000
    assert isinstance(manifest, SnapshotManifest)
    assert changes == [each for each in published(lake) if each[0].provenance.offset > 1000]
    assert receiver.offsets[-1] > 1500


@pytest.mark.spark
def test_a_receiver_that_exits_ends_the_query(spark: SparkSession, tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", commits=1, last=300)

    def exits(*_: object) -> None:
        sys.exit("enough")

    query = image_stream(spark, tmp_path / "lake", exits).option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(StreamingQueryException, match="the receiver raised SystemExit"):
        query.start().awaitTermination(300)
