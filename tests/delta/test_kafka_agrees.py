"""Random logs through Kafka 4.4's own classes: the same images, records, metrics and local changes."""

from __future__ import annotations

import base64
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from kraftlake.api import open_source
from kraftlake.delta.topics import widening_change
from kraftlake.image.cluster_counts import count_cluster
from kraftlake.image.metadata_image import MetadataImage, image_to_json
from kraftlake.image.topics import topics_image
from kraftlake.kafka_files.writer import write_segment
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.schema import Message, type_name
from kraftlake.records.serde import ApiMessageAndVersion, decode_value, encode_value
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.loader.fold import changes_between
from kraftlake.replay.queries.local_changes import LocalChanges
from kraftlake.runtime.errors import UnwritableMetadataError
from tests.interop.kafka_classes import kafka_history, normal
from tests.metadata_logs import metadata_logs

pytestmark = pytest.mark.spark

HISTORIES = 1_000 if os.environ.get("KRAFTLAKE_TESTS") == "long" else 100
SEED = int(os.environ.get("KRAFTLAKE_SEED") or 0)
BROKERS = range(7)
"""Those of the histories, 1 to 5, and two that nobody has heard of."""
FORMS = ((0, 0), (0, 10**9), (4, 0), (topics_image.PACK_FROM, 0), (topics_image.PACK_FROM, 10**9))
"""How many partitions the overlay of an image has, and ALONE_BELOW: the topics that records name are changed alone."""


@attrs.define
class Tally:
    """What was compared: a run that met too little has shown nothing."""

    histories: int = 0
    images: int = 0
    local_changes: int = 0
    records: Counter[str] = attrs.field(factory=Counter)

    def note(self, log: list[RecordBatch], images: int, local_changes: int) -> None:
        self.histories += 1
        self.images += images
        self.local_changes += local_changes
        for batch in log:
            self.records.update(type_name(type(record.message)) for record in batch.messages())

    def keep(self) -> None:
        """For the tool that runs the tests at full size."""
        if place := os.environ.get("KRAFTLAKE_TALLY"):
            Path(place).write_text(json.dumps(attrs.asdict(self)), "utf-8")


def test_kafka_makes_the_same_of_every_log(tmp_path: Path) -> None:
    """Batch by batch: each image, its records, the controller's metrics, and what ranges mean to each broker."""
    tally = Tally()
    logs = metadata_logs(min_steps=10) | metadata_logs(min_steps=20, topics_only=True)
    range_ = st.tuples(st.integers(-1, 60), st.integers(0, 60))

    @seed(SEED)
    @settings(max_examples=HISTORIES)
    @given(logs, st.lists(range_, min_size=3, max_size=3), st.sampled_from(FORMS))
    def judge(log: list[RecordBatch], wanted: list[tuple[int, int]], form: tuple[int, int]) -> None:
        end = log[-1].last_offset
        ranges = sorted((min(pair[0], end), min(sum(pair) + 1, end)) for pair in wanted)
        segment = tmp_path / f"{0:020d}.log"
        segment.unlink(missing_ok=True)
        write_segment(segment, log)
        kafka = kafka_history(segment, brokers=BROKERS, ranges=ranges)
        with (
            pytest.MonkeyPatch.context() as patch
        ):  # large images and changes have other forms: have them in small ones
            patch.setattr(topics_image, "PACK_FROM", form[0])
            patch.setattr(widening_change, "ALONE_BELOW", form[1])
            assert_same_images(log, kafka["published"])
            assert_same_local_changes(segment, ranges, kafka["local"])
        tally.note(log, len(kafka["published"]), len(kafka["local"]))

    judge()
    assert tally.histories >= HISTORIES
    assert tally.images > 2 * HISTORIES
    missing = {type_name(cls) for cls in ALL_TYPES} - set(tally.records)
    assert len(missing) <= (0 if HISTORIES >= 1000 else 4), missing
    tally.keep()


ALL_TYPES = [value for value in vars(r).values() if isinstance(value, type) and value.__name__.endswith("Record")]


def assert_same_images(log: list[RecordBatch], published: list[dict[str, Any]]) -> None:
    """Kafka loses SCRAM users and keeps configs in a delta of several records: there, one delta a record is right."""
    images: list[MetadataImage] = []
    loader = MetadataBatchLoader(publish=lambda _delta, image, _manifest: images.append(image))
    for batch in log:
        loader.load_batch(batch)
        loader.flush()
    assert [image.offset for image in images] == [theirs["image"]["offset"] for theirs in published]
    for image, theirs in zip(images, published, strict=True):
        right = theirs["image"] | {"configs": theirs["configs"], "scram": theirs["scram"]}
        assert normal(as_json(image_to_json(image, show_secrets=True))) == normal(right)
        assert image.provenance.timestamp == theirs["timestamp"]
        assert image.provenance.batch_aligned == theirs["batchAligned"]
        assert written(image) == in_order(theirs["written"])
        assert count_cluster(image).by_metric() == theirs["metrics"]


def assert_same_local_changes(segment: Path, ranges: list[tuple[int, int]], theirs: list[dict[str, Any]]) -> None:
    reader = open_source(segment).reader
    ours = []
    for start, end in ranges:
        loader = changes_between(reader, start, end)
        ours += [LocalChanges.of(loader, broker, start, end).to_json() for broker in BROKERS]
    assert as_json(ours) == theirs


def written(image: MetadataImage) -> list[tuple[str, bytes]] | None:
    try:
        values = [encode_value(record.message, record.version) for record in image.write()]
    except UnwritableMetadataError:
        return None
    return in_order([base64.b64encode(value).decode() for value in values])


def in_order(records: list[str] | None) -> list[tuple[str, bytes]] | None:
    """Records by bytes: Kafka writes them, and the parts of some, in the order of its hash maps."""
    if records is None:
        return None
    normal_form = (_with_parts_in_order(decode_value(base64.b64decode(record))) for record in records)
    return sorted((type_name(type(n.message)), encode_value(n.message, n.version)) for n in normal_form)


_PARTS_OF = {
    r.RegisterBrokerRecord: ("end_points", "features"),
    r.RegisterControllerRecord: ("end_points", "features"),
    r.ClientQuotaRecord: ("entity",),
    r.DelegationTokenRecord: ("renewers",),
}


def _with_parts_in_order(record: ApiMessageAndVersion) -> ApiMessageAndVersion:
    message: Message = record.message
    parts = {name: tuple(sorted(getattr(message, name), key=repr)) for name in _PARTS_OF.get(type(message), ())}
    return ApiMessageAndVersion(attrs.evolve(message, **parts), record.version)


def as_json(form: Any) -> Any:
    return json.loads(json.dumps(form))
