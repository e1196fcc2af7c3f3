"""The count of partitions under min ISR is, after each change, that of the whole image."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.broker_partitions import min_insync_replicas
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.partition_health import is_under_min_isr
from kraftlake.publisher.under_min_isr import UnderMinIsrCounter
from kraftlake.records import metadata_records as r
from kraftlake.records.schema import Message
from kraftlake.replay.loader.manifest import LogDeltaManifest, SnapshotManifest
from tests.replay.made_logs import partition, topic

TOPICS = range(3)
NUMBERS = st.sampled_from(TOPICS)


def change(number: int, isr: tuple[int, ...]) -> Message:
    return r.PartitionChangeRecord(partition_id=0, topic_id=topic(number).topic_id, isr=isr)


def config(type_: int, name: str, value: str | None) -> Message:
    return r.ConfigRecord(resource_type=type_, resource_name=name, name="min.insync.replicas", value=value)


VALUES = st.sampled_from(["1", "2", "3", "many", None])
CHANGES = st.one_of(
    st.builds(change, NUMBERS, st.sampled_from([(1,), (1, 2), (1, 2, 3)])),
    st.builds(config, st.just(2), NUMBERS.map("topic-{}".format), VALUES),
    st.builds(config, st.just(4), st.just(""), VALUES),
    st.builds(config, st.just(4), st.just("1"), VALUES),
)


def whole_count(image: MetadataImage) -> int:
    return sum(
        is_under_min_isr(len(partition.isr), len(partition.replicas), min_insync_replicas(image, name))
        for name, topic_ in image.topics.topics_by_name().items()
        for partition in topic_.partitions.values()
    )


def counted(records: list[list[Message]], *, first_as_snapshot: bool = False) -> list[int]:
    """The counts after each delta, each held against the whole image."""
    counter, image, counts = UnderMinIsrCounter(), MetadataImage.EMPTY, list[int]()
    for number, batch in enumerate(records):
        delta = MetadataDelta(image)
        for record in batch:
            delta.replay(record)
        image = delta.apply(image.provenance)
        snapshot = first_as_snapshot and number == 0
        manifest = SnapshotManifest if snapshot else LogDeltaManifest
        options = {} if snapshot else {"base_offset": number, "num_batches": 1, "num_bytes": 0}
        counter.on_metadata_update(delta, image, manifest(provenance=image.provenance, **options))  # type: ignore[arg-type]
        assert counter.count == whole_count(image)
        counts.append(counter.count)
    return counts


def made() -> list[Message]:
    return [record for number in TOPICS for record in (topic(number), partition(number, replicas=(1, 2, 3)))]


@given(st.lists(st.lists(CHANGES, min_size=1, max_size=3), max_size=8), st.booleans())
def test_each_change_is_counted_as_the_whole_image_would_be(changes: list[list[Message]], snapshot: bool) -> None:
    assert len(counted([made(), *changes], first_as_snapshot=snapshot)) == 1 + len(changes)


def test_a_topics_end_ends_its_count() -> None:
    removed = r.RemoveTopicRecord(topic_id=topic(0).topic_id)
    batches = [made(), [config(4, "", "2")], [change(0, (1,)), change(1, (1,))], [removed], [config(4, "", None)]]
    assert counted(batches) == [0, 0, 2, 1, 0]
