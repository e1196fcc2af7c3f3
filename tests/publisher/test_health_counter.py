"""The counts of what is not as it should be are, after each change, those of the whole image."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.cluster_health import HEALTH_COUNTS, ClusterHealth, count_health
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics import topics_image
from kraftlake.publisher.health_counter import HealthCounter
from kraftlake.records import metadata_records as r
from kraftlake.records.schema import Message
from kraftlake.replay.loader.manifest import LogDeltaManifest, SnapshotManifest
from kraftlake.runtime.metrics import MetricsRegistry
from tests.health_changes import CHANGES, HERE, change, config, fence, lose, made, reassign, recover
from tests.replay.made_logs import topic


def counted(records: list[list[Message]], *, first_as_snapshot: bool = False) -> list[ClusterHealth]:
    """The counts after each delta, each held against the whole image."""
    counter, image, counts = HealthCounter(), MetadataImage.EMPTY, list[ClusterHealth]()
    for number, batch in enumerate(records):
        delta = MetadataDelta(image)
        for record in batch:
            delta.replay(record)
        image = delta.apply(image.provenance)
        snapshot = first_as_snapshot and number == 0
        manifest = SnapshotManifest if snapshot else LogDeltaManifest
        options = {} if snapshot else {"base_offset": number, "num_batches": 1, "num_bytes": 0}
        counter.on_metadata_update(delta, image, manifest(provenance=image.provenance, **options))  # type: ignore[arg-type]
        assert counter.health == count_health(image)
        counts.append(counter.health)
    return counts


@given(st.lists(st.lists(CHANGES, min_size=1, max_size=3), max_size=8), st.booleans())
def test_each_change_is_counted_as_the_whole_image_would_be(changes: list[list[Message]], snapshot: bool) -> None:
    assert len(counted([made(), *changes], first_as_snapshot=snapshot)) == 1 + len(changes)


def test_a_topics_end_ends_its_count() -> None:
    removed = r.RemoveTopicRecord(topic_id=topic(0).topic_id)
    batches = [made(), [config(4, "", "2")], [change(0, (1,)), change(1, (1,))], [removed], [config(4, "", None)]]
    assert [one.under_min_isr_partitions for one in counted(batches)] == [0, 0, 2, 1, 0]


def test_each_trouble_has_its_count() -> None:
    batches = [
        made(), [change(0, (1, 2))], [fence(1, 1)], [reassign(1, (4,))], [recover(2, 1)], [lose(3, (HERE,))],
    ]  # fmt: skip
    expected = ClusterHealth(
        under_replicated_partitions=2, led_by_fenced_partitions=3, reassigning_partitions=1, recovering_partitions=1,
        offline_directories=1,
    )  # fmt: skip
    assert counted(batches)[-1] == expected


def test_the_counts_are_gauges_with_a_meaning_each() -> None:
    registry = MetricsRegistry()
    HealthCounter().register(registry)
    assert {sample.name.name: sample.description for sample in registry.samples()} == HEALTH_COUNTS


@given(st.lists(st.lists(CHANGES, min_size=1, max_size=3), max_size=8))
def test_columns_count_what_objects_count(changes: list[list[Message]]) -> None:
    few = counted([made(), *changes])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topics_image, "PACK_FROM", 0)
        assert counted([made(), *changes]) == few
