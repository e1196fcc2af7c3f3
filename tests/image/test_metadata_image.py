from __future__ import annotations

import subprocess
import sys

import attrs
import pytest
from rpds import HashTrieMap

from kraftlake.image.acls_image import AclsImage
from kraftlake.image.client_quotas_image import ClientQuotaImage, ClientQuotasImage
from kraftlake.image.cluster_image import ClusterImage
from kraftlake.image.configurations_image import ConfigurationsImage
from kraftlake.image.delegation_token_image import DelegationTokenImage
from kraftlake.image.features_image import FeaturesImage
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.producer_ids_image import ProducerIdsImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.scram_image import ScramImage
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.image.topics.topics_image import TopicsImage
from tests.histories import uuid_of
from tests.image.sample_images import images

PARTS = (
    AclsImage, ClientQuotaImage, ClientQuotasImage, ClusterImage, ConfigurationsImage, DelegationTokenImage,
    FeaturesImage, ProducerIdsImage, ScramImage, TopicsImage,
)  # fmt: skip


@pytest.mark.parametrize("part", [*PARTS, MetadataImage])
def test_the_empty_value_is_empty_and_equal_to_a_new_one(part):
    assert part.EMPTY.is_empty()
    assert part() == part.EMPTY


@pytest.mark.parametrize("part", [*PARTS, MetadataImage])
def test_an_image_can_not_be_changed(part):
    name = attrs.fields(part)[0].name
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        setattr(part.EMPTY, name, None)


def test_no_part_of_a_full_image_is_empty():
    image = images("kafka-4.4")[5736]
    assert not image.is_empty()
    assert not any(getattr(image, field.name) == field.default for field in attrs.fields(MetadataImage))


def test_an_image_with_one_part_is_not_empty():
    assert not MetadataImage(producer_ids=ProducerIdsImage(next_producer_id=0)).is_empty()
    assert MetadataImage(provenance=MetadataProvenance(offset=5, epoch=1)).is_empty()


def test_topics_are_found_by_name_by_id_and_by_partition():
    topics = images("kafka-4.4")[5736].topics
    foo = next(iter(topics.topics_by_name().values()))
    number, partition = next(iter(foo.partitions.items()))
    assert topics.get_topic(foo.name) is foo
    assert topics.get_topic_by_id(foo.id) is foo
    assert topics.get_partition(foo.id, number) is partition
    assert topics.get_partition(foo.id, 10**6) is None
    assert topics.get_partition(uuid_of(1), 0) is None
    assert topics.get_topic("no such topic") is None
    assert len(topics.topics_by_id()) == len(topics.topics_by_name())
    assert topics.partition_count == sum(len(topic.partitions) for topic in topics.topics_by_id().values()) > 50


def test_two_topics_can_not_share_a_name():
    foo, other = TopicImage(name="foo", id=uuid_of(5)), TopicImage(name="foo", id=uuid_of(6))
    with pytest.raises(AssertionError, match="different names"):
        TopicsImage.EMPTY.changed({}, {foo.id: foo, other.id: other})


def test_a_provenance_names_its_snapshot_as_kafka_does():
    provenance = MetadataProvenance(offset=4592, epoch=2)
    assert provenance.snapshot_name == "00000000000000004593-0000000002"


def test_comparing_maps_relies_on_equality_alone():
    """What `delta.changes` builds on; when `!=` is repaired in rpds, its comment can go."""
    one, two = HashTrieMap({1: 1, 2: 2}), HashTrieMap({1: 1, 2: 3})
    assert not one == two  # noqa: SIM201
    assert HashTrieMap() == HashTrieMap()
    assert one == HashTrieMap({2: 2, 1: 1})


def test_images_and_deltas_need_no_heavy_import():
    code = (
        "import sys, kraftlake.delta.metadata_delta; print({'pyarrow', 'numpy', 'pyspark', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
