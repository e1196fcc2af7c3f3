"""Random histories through Kafka 4.4's own classes: the same images, the same local changes."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.delta import MetadataDelta, local_changes_to_json
from kraftlake.image import MetadataImage, MetadataProvenance, image_to_json
from kraftlake.records.batch import RecordBatch, encode_batch
from tests.histories import histories
from tests.interop.kafka_classes import kafka_image_of_log, kafka_local_changes, normal

pytestmark = pytest.mark.spark


def _image(base, records, offset):
    delta = MetadataDelta(base)
    for record in records:
        delta.replay(record.message)
    return delta, delta.apply(MetadataProvenance(offset=offset, epoch=1))


def _as_json(form):
    return json.loads(json.dumps(form))


@given(histories(), st.floats(0, 1), st.integers(1, 5))
def test_kafka_makes_the_same_of_every_history(records, where, broker):
    """One record a batch, as one delta over many loses SCRAM users and keeps configs in Kafka."""
    last, cut = len(records) - 1, int((len(records) - 1) * where)
    batches = [RecordBatch.of(offset, 1, 1_700_000_000_000, [record]) for offset, record in enumerate(records)]
    with tempfile.TemporaryDirectory() as folder:
        segment = Path(folder) / "00000000000000000000.log"
        segment.write_bytes(b"".join(encode_batch(batch) for batch in batches))
        theirs = kafka_image_of_log([segment], last)
        local = kafka_local_changes([segment], broker=broker, start=cut, end=last)
    _, base = _image(MetadataImage.EMPTY, records[: cut + 1], cut)
    delta, image = _image(base, records[cut + 1 :], last)
    assert normal(_as_json(image_to_json(image, show_secrets=True))) == normal(theirs)
    changes = None if delta.topics_delta is None else delta.topics_delta.local_changes(broker)
    ours = local_changes_to_json(changes, broker=broker, from_offset=cut, to_offset=last)
    assert _as_json(ours) == local
