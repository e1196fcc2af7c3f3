"""The tree that our shell walks in beside that of Kafka 4.4's own metadata shell: the same paths, the same values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.api import open_source
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.nodes.image_nodes import root_node
from kraftlake.image.nodes.node import Directory, Leaf
from kraftlake.image.nodes.paths import matching
from kraftlake.kafka_files.writer import write_segment
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.serde import ApiMessageAndVersion
from tests.at_least_one import at_least_one
from tests.histories import histories
from tests.interop.kafka_classes import kafka_nodes_of_checkpoint, kafka_nodes_of_log
from tests.interop.test_kafka_classes import NAMES, directory, segment_of, segments

pytestmark = pytest.mark.spark

_QUOTAS = "/image/clientQuotas/"
"""Where Kafka leaves a default user, client id or IP out of a name, which then names nothing, or another entity."""


@pytest.mark.parametrize("sample", NAMES)
def test_the_checkpoints_that_kafka_wrote(sample: str) -> None:
    for path in at_least_one(directory(sample).glob("*.checkpoint")):
        end_offset, epoch = map(int, path.stem.split("-"))
        if end_offset:
            kafka = kafka_nodes_of_checkpoint(path, end_offset=end_offset, epoch=epoch)
            assert found_in(open_source(path).image(), kafka) > 700


@pytest.mark.parametrize("sample", NAMES)
def test_the_samples_at_many_offsets(sample: str) -> None:
    source = open_source(directory(sample))
    ends = [batch.last_offset for batch in source.batches()]
    for at in at_least_one(ends[:: len(ends) // 8]):
        image = source.image(at)
        found_in(image, kafka_nodes_of_log(segments(sample), at))


@given(history=histories())
def test_any_image(history: list[ApiMessageAndVersion], tmp_path_factory: pytest.TempPathFactory) -> None:
    """One record a batch, and so a delta: over longer ones Kafka loses SCRAM users and keeps configs."""
    segment = segment_of(tmp_path_factory.mktemp("any"), [[message] for message in history])
    source = open_source(segment)
    assert found_in(source.image(), kafka_nodes_of_log([segment], source.end_offset - 1)) > 10


@given(values=st.lists(st.floats(allow_nan=False), min_size=1, max_size=20))
def test_quotas_of_any_value(values: list[float], tmp_path_factory: pytest.TempPathFactory) -> None:
    records = [r.FeatureLevelRecord(name="metadata.version", feature_level=27)] + [
        r.ClientQuotaRecord(
            entity=(r.EntityData(entity_type="user", entity_name=f"u{number}"),), key="consumer_byte_rate", value=value
        )
        for number, value in enumerate(values)
    ]
    batch = RecordBatch.of(0, 1, 1_700_000_000_000, [ApiMessageAndVersion(record, 0) for record in records])
    segment = tmp_path_factory.mktemp("quotas") / f"{0:020d}.log"
    write_segment(segment, [batch])
    kafka = kafka_nodes_of_log([segment], len(values))
    assert found_in(open_source(segment).image(), kafka) > 2 * len(values)


def found_in(image: MetadataImage, kafka: dict[str, Any]) -> int:
    """The number of paths of Kafka's that are in ours with the same value; none may be missing."""
    root = root_node(image, version="", show_secrets=True)
    compared = 0
    for path, text in kafka.items():
        if text == []:
            assert path.startswith(_QUOTAS), f"Kafka's find ends at {path}"
            continue
        (found,) = matching(root, _literal(path))
        node = found.node
        assert isinstance(node, Directory) if text is None else isinstance(node, Leaf), path
        if isinstance(node, Leaf) and not (path.startswith(_QUOTAS) and _is_longer(text, node.text)):
            assert node.text == text, path
        compared += 1
    return compared


def _is_longer(text: str, shortest: str) -> bool:
    """Whether a Java before 19 wrote a number with more digits than tell it from others."""
    return len(text) > len(shortest) and float(text) == float(shortest)


def _literal(path: str) -> str:
    """The path as a pattern: backslashes, which Kafka has in names of quotas' entities, and a user without a name."""
    pattern = path.replace("\\", "\\\\")
    return f"{pattern}%" if pattern.endswith("/") else pattern
