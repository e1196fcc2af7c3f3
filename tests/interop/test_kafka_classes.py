"""Our images beside those of Kafka 4.4's own classes."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.api import open_source
from kraftlake.image.metadata_image import image_to_json
from kraftlake.image.topics import topics_image
from kraftlake.kafka_files.writer import write_segment
from kraftlake.records.batch import RecordBatch
from kraftlake.records.serde import ApiMessageAndVersion
from tests.histories import histories, split_histories
from tests.interop.kafka_classes import (
    KafkaClassesError,
    kafka_image_of_checkpoint,
    kafka_image_of_log,
    kafka_local_changes,
    normal,
)

pytestmark = pytest.mark.spark

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
NAMES = ("kafka-4.4", "crash-torn")


def directory(sample: str) -> Path:
    return SAMPLES / sample / "log" / "__cluster_metadata-0"


def segments(sample: str) -> list[Path]:
    return sorted(directory(sample).glob("*.log"))


def expected(sample: str, kind: str) -> list[tuple[list[int], dict[str, Any]]]:
    """The numbers in the name of each expected file, and its content."""
    files = sorted((SAMPLES / sample / "expected").glob(f"{kind}-*.json.gz"))
    assert files
    return [
        ([int(number) for number in re.findall(r"\d+", file.name)], json.loads(gzip.decompress(file.read_bytes())))
        for file in files
    ]


@pytest.mark.parametrize("sample", NAMES)
def test_the_judge_says_what_was_written_down_of_kafka(sample: str) -> None:
    for (at,), image in expected(sample, "image"):
        assert normal(kafka_image_of_log(segments(sample), at)) == normal(image)
    for (start, end, broker), changes in expected(sample, "local"):
        assert kafka_local_changes(segments(sample), broker=broker, start=start, end=end) == changes


@pytest.mark.parametrize("sample", NAMES)
def test_the_snapshots_that_kafka_wrote_are_the_same_images_to_both(sample: str) -> None:
    snapshots = [path for path in directory(sample).glob("*.checkpoint") if not path.name.startswith("0" * 20)]
    assert snapshots
    for path in snapshots:
        end_offset, epoch = map(int, path.stem.split("-"))
        assert_same(open_source(path).image(), kafka_image_of_checkpoint(path, end_offset=end_offset, epoch=epoch))


@pytest.mark.parametrize("sample", NAMES)
def test_kafka_reads_the_checkpoints_that_are_exported(sample: str, tmp_path: Path) -> None:
    source = open_source(directory(sample))
    ends = [batch.last_offset for batch in source.batches() if batch.last_offset > 20]
    ends = ends[:: len(ends) // 8]
    assert len(ends) > 7
    for at in ends:
        report = source.export(tmp_path / f"{at}.checkpoint", at)
        kafka = kafka_image_of_checkpoint(Path(report.path), end_offset=at + 1, epoch=report.epoch)
        image = source.image(at)
        assert kafka["lastContainedLogTimestamp"] == image.provenance.timestamp
        assert_same(image, kafka)


@given(history=histories(), in_bulk=st.booleans())
def test_kafka_reads_the_checkpoint_of_any_image(
    history: list[ApiMessageAndVersion], in_bulk: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("any")
    source = open_source(segment_of(folder, [[message] for message in history]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topics_image, "PACK_FROM", 0 if in_bulk else 10**9)
        report = source.export(folder / "exported.checkpoint")
    kafka = kafka_image_of_checkpoint(Path(report.path), end_offset=report.offset + 1, epoch=report.epoch)
    assert_same(source.image(), kafka)


@given(history=split_histories(), data=st.data())
def test_any_log_is_the_same_image_to_kafka_at_any_offset(
    history: list[list[ApiMessageAndVersion]], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Kafka is given one record a batch, and so a delta: over longer ones it loses SCRAM users and keeps configs."""
    source = open_source(segment_of(tmp_path_factory.mktemp("ours"), history))
    judged = segment_of(tmp_path_factory.mktemp("kafka"), [[message] for group in history for message in group])
    at = data.draw(st.integers(0, source.end_offset - 1))
    assert_same(source.image(at), kafka_image_of_log([judged], at))


@given(history=split_histories(), data=st.data())
def test_any_log_means_to_each_broker_what_kafka_says(
    history: list[list[ApiMessageAndVersion]], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    segment = segment_of(tmp_path_factory.mktemp("log"), history)
    source = open_source(segment)
    end = data.draw(st.integers(0, source.end_offset - 1))
    start = data.draw(st.integers(0, end))
    for broker in range(1, 6):
        ours = source.local_changes(broker, start, end).to_json()
        assert ours == kafka_local_changes([segment], broker=broker, start=start, end=end)


def test_what_kafka_throws_is_raised(tmp_path: Path) -> None:
    (tmp_path / "no.checkpoint").write_bytes(b"not a snapshot at all, and not even as long as a batch header is")
    with pytest.raises(KafkaClassesError, match="Exception"):
        kafka_image_of_checkpoint(tmp_path / "no.checkpoint", end_offset=5, epoch=1)


def segment_of(folder: Path, groups: list[list[ApiMessageAndVersion]]) -> Path:
    """One segment from offset 0 with a batch for each group that is not empty."""
    batches = []
    offset = 0
    for group in groups:
        if group:
            batches.append(RecordBatch.of(offset, 1, 1_700_000_000_000 + offset, group))
            offset += len(group)
    path = folder / f"{0:020d}.log"
    write_segment(path, batches)
    return path


def assert_same(image: Any, kafka: dict[str, Any]) -> None:
    ours = normal(json.loads(json.dumps(image_to_json(image, show_secrets=True))))
    kafka = {name: value for name, value in normal(kafka).items() if name != "lastContainedLogTimestamp"}
    for name, value in kafka.items():
        assert ours[name] == value, name
    assert ours == kafka
