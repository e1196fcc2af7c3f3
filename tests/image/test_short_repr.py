"""Images and what is made of them name themselves on one line, however large the cluster is."""

from __future__ import annotations

import attrs
import pytest

import kraftlake
from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.short_repr import counted
from kraftlake.records.metadata_records import PartitionRecord, TopicRecord
from tests.cli.running import DIRECTORY
from tests.histories import uuid_of

LONGEST = 120
PARTITION = PartitionRecord(topic_id=uuid_of(1), partition_id=0, replicas=(1,), isr=(1,), leader=1)


@pytest.fixture(scope="module")
def source() -> kraftlake.Source:
    return kraftlake.open(DIRECTORY)


def test_an_image_and_each_of_its_parts_is_one_short_line(source: kraftlake.Source) -> None:
    image = source.image(458)
    assert repr(image) == (
        "<MetadataImage at offset 458: 4 brokers, 21 topics, 75 partitions, 22 configured resources, 31 ACLs>"
    )
    assert repr(image.topics) == "<TopicsImage: 21 topics, 75 partitions>"
    assert repr(image.topics.get_topic("fixed-a")) == "<TopicImage 'fixed-a': 6 partitions>"
    assert repr(image.cluster) == "<ClusterImage: 4 brokers, 0 controllers>"
    for part in attrs.astuple(image, recurse=False):
        assert len(repr(part)) <= LONGEST


def test_changes_count_what_they_hold(source: kraftlake.Source) -> None:
    changes = source.changes(403, 458)
    assert repr(changes) == "<LogChanges of __cluster_metadata-0 after offset 402 to 458>"
    (change,) = changes
    assert repr(change.delta) == "<MetadataDelta after offset 402 of cluster, topics>"
    assert repr(change.delta.topics_delta) == "<TopicsDelta of <TopicsImage: 21 topics, 75 partitions>>"
    assert repr(source.local_changes(2, 402, 458).changes) == (
        "<LocalReplicaChanges: 0 to delete, 16 to lead (9 newly elected), 27 to follow, 0 with a directory>"
    )
    assert repr(source.diff(402, 458)) == "<ImageDiff of offsets 402 to 458: 56 changes>"


def test_showing_a_delta_merges_nothing_and_never_raises() -> None:
    delta = MetadataDelta(MetadataImage.EMPTY)
    delta.keep(PARTITION)  # of a topic that there isn't: whoever merges it raises
    assert repr(delta.topics_delta) == "<TopicsDelta of <TopicsImage: 0 topics, 0 partitions>, 1 record not merged yet>"
    delta = MetadataDelta(MetadataImage.EMPTY)
    delta.replay(TopicRecord(name="one", topic_id=uuid_of(1)))
    delta.replay(PARTITION)
    assert (
        repr(delta.apply(MetadataProvenance(offset=1, epoch=0, timestamp=0)).topics)
        == "<TopicsImage: 1 topic, 1 partition>"
    )


def test_counts_are_words_in_the_right_number() -> None:
    assert counted(entities=1, topics=1, partitions=1200) == "1 entity, 1 topic, 1,200 partitions"
