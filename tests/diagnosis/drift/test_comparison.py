from __future__ import annotations

import attrs
from hypothesis import given

from kraftlake.diagnosis.drift.comparison import compare
from kraftlake.diagnosis.drift.description import FACTS, ClusterDescription, describe
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records import metadata_records as r
from tests.diagnosis.trial.clusters import image_of
from tests.histories import histories, uuid_of


def cluster(first_id: int, *more, replicas=(1, 2), level=25) -> MetadataImage:
    """A cluster with a topic, its configs, an ACL, a quota and a user; ids and epochs depend on `first_id`."""
    topic = uuid_of(first_id)
    return image_of(
        r.FeatureLevelRecord(name="metadata.version", feature_level=level),
        r.TopicRecord(name="orders", topic_id=topic),
        *(
            r.PartitionRecord(
                partition_id=number, topic_id=topic, replicas=replicas, isr=replicas, leader=replicas[0],
                leader_epoch=first_id, partition_epoch=first_id,
            )
            for number in range(3)
        ),
        r.ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="1"),
        acl(first_id, "User:alice"),
        r.ClientQuotaRecord(
            entity=(r.EntityData(entity_type="user", entity_name="alice"),), key="producer_byte_rate", value=1.0
        ),
        r.UserScramCredentialRecord(
            name="alice", mechanism=2, salt=b"salt", stored_key=b"k", server_key=b"s", iterations=4096
        ),
        *more,
    )  # fmt: skip


def acl(number: int, principal: str, **fields):
    return r.AccessControlEntryRecord(
        **{
            "id": uuid_of(number), "resource_type": 2, "resource_name": "orders", "pattern_type": 3,
            "principal": principal, "host": "*", "operation": 3, "permission_type": 3,
        } | fields
    )  # fmt: skip


def drift(one: MetadataImage, two: MetadataImage, *, also=(), **options):
    return compare(describe(one, also=also), describe(two, also=also), **options)


def lines(found) -> list[str]:
    return [one.change.describe() for one in found.changes]


def test_clusters_with_other_ids_epochs_and_leaders_are_equal() -> None:
    assert drift(cluster(5), cluster(90)).is_empty()
    assert drift(cluster(5), cluster(90), also=["placement"]).is_empty()


def test_each_fact_that_is_asked_for_is_compared() -> None:
    other = cluster(90, r.PartitionChangeRecord(topic_id=uuid_of(90), partition_id=1, leader=2, isr=(2,)))
    found = {fact: lines(drift(cluster(5), other, also=[fact])) for fact in FACTS}
    assert found["id"] == [f"orders id {uuid_of(5)} → {uuid_of(90)}"]
    assert found["leaders"] == ["orders leaders [1, 1, 1] → [1, 2, 1]"]
    assert found["isr"] == ["orders isr [[1, 2], [1, 2], [1, 2]] → [[1, 2], [2], [1, 2]]"]
    assert "epochs" in found["epochs"][0]
    assert (found["placement"], found["incarnations"]) == ([], [])
    moved = lines(drift(cluster(5), cluster(5, replicas=(2, 1)), also=["placement"]))
    assert moved == ["orders replicas [[1, 2], [1, 2], [1, 2]] → [[2, 1], [2, 1], [2, 1]]"]


def test_a_reassignment_under_way_counts_as_done() -> None:
    moving = r.PartitionChangeRecord(
        topic_id=uuid_of(5), partition_id=0, replicas=(3, 2, 1), adding_replicas=(3,), removing_replicas=(1,)
    )
    assert lines(drift(cluster(5), cluster(5, moving), also=["placement"])) == [
        "orders replicas [[1, 2], [1, 2], [1, 2]] → [[3, 2], [1, 2], [1, 2]]"
    ]
    assert drift(cluster(5), cluster(5, moving)).is_empty()


def test_acls_are_the_same_by_what_they_say() -> None:
    found = drift(
        cluster(5, acl(6, "User:bob")), cluster(5, acl(7, "User:bob"), acl(8, "User:bob"), acl(9, "User:c/d"))
    )
    assert [one.path for one in found.changes] == ["acl/User:c%2Fd/TOPIC/orders/LITERAL/READ/ALLOW/*"]
    assert found.changes[0].change.kind == "added"


def test_keys_of_credentials_are_compared_and_never_shown() -> None:
    new = r.UserScramCredentialRecord(name="alice", mechanism=2, salt=b"salt", stored_key=b"hunter", iterations=4096)
    form = drift(cluster(5), cluster(5, new)).to_json(show_secrets=True)
    assert form["scram"] == {"changed": {"SCRAM-SHA-512:alice": {"keys": ["(redacted)", "(redacted)"]}}}


def test_sensitive_configs_are_redacted() -> None:
    secret = r.ConfigRecord(
        resource_type=4, resource_name="1", name="listener.name.x.ssl.key.password", value="hunter2"
    )
    found = drift(cluster(5), cluster(5, secret))
    assert "hunter2" not in str(found.to_json())
    assert "hunter2" in str(found.to_json(show_secrets=True))


def test_patterns_leave_out_entries_topics_with_their_configs_and_fields() -> None:
    other = image_of(
        r.FeatureLevelRecord(name="metadata.version", feature_level=26),
        r.ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="2"),
        r.ConfigRecord(resource_type=4, resource_name="", name="log.cleaner.threads", value="2"),
    )
    whole = {one.path for one in drift(cluster(5), other).changes}
    assert whole == {
        "feature/metadata.version", "topic/orders", "config/TOPIC/orders", "config/BROKER/",
        "acl/User:alice/TOPIC/orders/LITERAL/READ/ALLOW/*", "quota/user/alice", "scram/alice/SCRAM-SHA-512",
    }  # fmt: skip
    ignore = ["topic/o*", "acl/User:alice/*", "quota/user/*", "scram/*"]
    left = {one.path for one in drift(cluster(5), other, ignore=ignore).changes}
    assert left == {"feature/metadata.version", "config/BROKER/"}
    left = {one.path for one in drift(cluster(5), other, ignore=["config/TOPIC/*/retention.ms"]).changes}
    assert left == whole - {"config/TOPIC/orders"}


def test_internal_topics_are_compared_only_on_demand() -> None:
    more = (
        r.TopicRecord(name="__consumer_offsets", topic_id=uuid_of(70)),
        r.ConfigRecord(resource_type=2, resource_name="__consumer_offsets", name="cleanup.policy", value="compact"),
    )
    assert drift(cluster(5), cluster(5, *more)).is_empty()
    assert len(drift(cluster(5), cluster(5, *more), internal=True).changes) == 2


def test_what_a_side_does_not_cover_is_not_compared() -> None:
    described = describe(cluster(5))
    assert compare(ClusterDescription(covers=lambda part, _: False), described).is_empty()
    topics_alone = attrs.evolve(ClusterDescription(), covers=lambda part, _: part == "topics")
    assert [one.path for one in compare(topics_alone, described).changes] == ["topic/orders"]


@given(histories(), histories())
def test_two_clusters_are_equal_where_a_reading_of_their_json_says_so(one, two) -> None:
    """The independent reading: sets of texts made of the parts, without ids."""
    images = [image_of(*(record.message for record in history)) for history in (one, two)]
    found = drift(*images, also=["placement"], internal=True)
    readings = [reading(image) for image in images]
    assert found.is_empty() == (readings[0] == readings[1])
    reverse = drift(*reversed(images), also=["placement"], internal=True)
    assert {one.path for one in reverse.changes} == {one.path for one in found.changes}
    assert drift(images[0], images[0], internal=True).is_empty()


def reading(image: MetadataImage) -> set[tuple[object, ...]]:
    features = image.features
    facts: set[tuple[object, ...]] = {("feature", *item) for item in features.finalized_versions.items()}
    facts |= {("version", features.metadata_version)}
    for name, topic in image.topics.topics_by_name().items():
        replicas = [
            tuple(id_ for id_ in one.replicas if id_ not in one.removing_replicas)
            for _, one in sorted(topic.partitions.items())
        ]
        facts.add(("topic", name, tuple(replicas)))
    facts |= {("config", key, *item) for key, one in image.configs.resource_data.items() for item in one.data.items()}
    facts |= {("acl", rule) for rule in image.acls.acls.values()}
    facts |= {("quota", key, *item) for key, one in image.client_quotas.entities.items() for item in one.quotas.items()}
    facts |= {("scram", *item, m) for m, users in image.scram.mechanisms.items() for item in users.items()}
    return facts
