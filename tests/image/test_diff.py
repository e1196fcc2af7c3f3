from __future__ import annotations

import json
from itertools import pairwise

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rpds import HashTrieMap

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.diff import diff_images
from kraftlake.image.json_form import partition_json
from kraftlake.image.metadata_image import MetadataImage, image_to_json
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.topics.partition_registration import LeaderRecoveryState, PartitionRegistration
from kraftlake.records import metadata_records as r
from tests.at_least_one import at_least_one
from tests.histories import split_histories, uuid_of
from tests.image.sample_images import expected, images


def after(image, *messages, offset=None):
    delta = MetadataDelta(image)
    for message in messages:
        delta.replay(message)
    return delta.apply(MetadataProvenance(offset=image.offset + 1 if offset is None else offset, epoch=1))


def partition(number, topic=5, **fields):
    return r.PartitionRecord(
        partition_id=number, topic_id=uuid_of(topic), replicas=(1, 2, 3), isr=(1, 2, 3), leader=1, leader_epoch=0,
        partition_epoch=0, **fields,
    )  # fmt: skip


BASE = after(
    MetadataImage.EMPTY,
    r.FeatureLevelRecord(name="metadata.version", feature_level=20),
    r.TopicRecord(name="foo", topic_id=uuid_of(5)),
    *(partition(number) for number in range(12)),
    r.ConfigRecord(resource_type=2, resource_name="foo", name="retention.ms", value="1"),
    r.ConfigRecord(resource_type=4, resource_name="1", name="secret.thing", value="hunter2"),
    r.UserScramCredentialRecord(name="alice", mechanism=2, salt=b"salt", stored_key=b"k", iterations=4096),
    r.ClientQuotaRecord(entity=(r.EntityData(entity_type="user", entity_name=None),), key="k", value=1.0),
)


def test_an_image_does_not_differ_from_itself():
    assert diff_images(BASE, BASE).is_empty()
    moved = attrs.evolve(BASE, provenance=MetadataProvenance(offset=99, epoch=2))
    assert diff_images(BASE, moved).to_json() == {"from": 0, "to": 99}


def test_a_leader_change_reads_as_a_sentence():
    change = r.PartitionChangeRecord(partition_id=3, topic_id=uuid_of(5), leader=2, isr=(2, 3))
    diff = diff_images(BASE, after(BASE, change))
    assert [entry.describe() for entry in diff.changes] == [
        "foo-3 isr [1, 2, 3] → [2, 3], leader 1 → 2, leaderEpoch 0 → 1, partitionEpoch 0 → 1"
    ]
    assert diff.to_json() == {
        "from": 0,
        "to": 1,
        "partitions": {
            "changed": {
                "foo-3": {
                    "isr": [[1, 2, 3], [2, 3]],
                    "leader": [1, 2],
                    "leaderEpoch": [0, 1],
                    "partitionEpoch": [0, 1],
                }
            }
        },
    }
    (entry,) = diff.changes
    assert entry.path == ("foo", "3")


def test_a_topic_that_was_created_again_is_removed_and_added():
    again = after(
        BASE,
        r.RemoveTopicRecord(topic_id=uuid_of(5)),
        r.TopicRecord(name="foo", topic_id=uuid_of(6)),
        partition(0, topic=6),
    )
    form = diff_images(BASE, again).to_json()
    assert form["topics"] == {
        "removed": {"foo": {"id": str(uuid_of(5))}},
        "added": {"foo": {"id": str(uuid_of(6))}},
    }
    assert len(form["partitions"]["removed"]) == 12
    assert list(form["partitions"]["added"]) == ["foo-0"]
    assert list(form["partitions"]["removed"])[-1] == "foo-11"


def test_secrets_are_redacted_but_that_they_changed_is_shown():
    changed = after(
        BASE,
        r.ConfigRecord(resource_type=4, resource_name="1", name="secret.thing", value="hunter3"),
        r.ConfigRecord(resource_type=4, resource_name="1", name="other.secret", value="hunter4"),
        r.UserScramCredentialRecord(name="alice", mechanism=2, salt=b"pepper", stored_key=b"k", iterations=8192),
        r.DelegationTokenRecord(owner="User:o", requester="User:q", token_id="t"),
    )
    diff = diff_images(BASE, changed)
    form = diff.to_json()
    assert form["configs"]["changed"]["BROKER:1"] == {
        "secret.thing": ["(redacted)", "(redacted)"],
        "other.secret": [None, "(redacted)"],
    }
    assert form["scram"]["changed"]["SCRAM-SHA-512:alice"] == {
        "salt": ["(redacted)", "(redacted)"],
        "iterations": [4096, 8192],
    }
    shown = json.dumps(form) + "".join(entry.describe() for entry in diff.changes) + repr(diff)
    assert not any(secret in shown for secret in ("hunter", b"pepper".hex(), "User:o"))
    assert diff.to_json(show_secrets=True)["configs"]["changed"]["BROKER:1"]["secret.thing"] == ["hunter2", "hunter3"]


def test_added_and_removed_entries_have_all_their_fields():
    form = diff_images(MetadataImage.EMPTY, BASE).to_json()
    assert form["features"]["added"]["metadata.version"] == {"level": 20, "name": "3.8-IV0"}
    assert form["clientQuotas"]["added"] == {'{"user":null}': {"k": 1.0}}
    assert form["partitions"]["added"]["foo-0"] == image_to_json(BASE)["topics"]["foo"]["partitions"]["0"]
    reverse = diff_images(BASE, MetadataImage.EMPTY).to_json()
    assert reverse["partitions"]["removed"] == form["partitions"]["added"]


def test_a_listener_among_others_that_has_moved_is_reported_and_no_listeners_are_no_change():
    def registered(epoch, *ports):
        endpoints = tuple(
            r.BrokerEndpoint(name=name, host="h", port=port, security_protocol=0)
            for name, port in zip("ABC", ports, strict=False)
        )
        return r.RegisterBrokerRecord(
            broker_id=1, incarnation_id=uuid_of(9), broker_epoch=epoch, end_points=endpoints, features=(), rack=None
        )

    image, fields = BASE, []
    for record in (registered(1), registered(2), registered(3, 1, 2), registered(4, 1, 2), registered(5, 1, 3)):
        new = after(image, record)
        fields += [sorted(field.field for field in change.fields) for change in diff_images(image, new).changes[:1]]
        image = new
    assert fields[1:] == [["epoch"], ["epoch", "listeners"], ["epoch"], ["epoch", "listeners"]]


def test_parts_that_are_shared_are_not_looked_into():
    class Explosive(dict):
        def __iter__(self):
            raise AssertionError("looked into")

        items = __iter__

    topics = BASE.topics
    object.__setattr__(topics, "_by_name", Explosive())
    try:
        assert diff_images(BASE, attrs.evolve(BASE, provenance=MetadataProvenance(offset=5, epoch=1))).is_empty()
        with pytest.raises(AssertionError, match="looked into"):
            diff_images(BASE, attrs.evolve(BASE, topics=attrs.evolve(topics, by_name=Explosive())))
    finally:
        object.__setattr__(topics, "_by_name", HashTrieMap({"foo": topics.get_topic_by_id(uuid_of(5))}))


def _entries(image):
    """Every entry of an image by part and key, from its JSON: what a diff talks about, found another way."""
    form = image_to_json(image, show_secrets=True)
    entries = {("features", name): {"level": level} for name, level in form["features"].items()}
    if form["metadataVersion"]:
        entries["features", "metadata.version"] = form["metadataVersion"]
    entries["producerIds", "nextProducerId"] = {"nextProducerId": form["nextProducerId"]}
    for part in ("brokers", "controllers", "acls", "delegationTokens"):
        entries |= {(part, key): value for key, value in form[part].items()}
    for name, topic in form["topics"].items():
        entries["topics", name] = {"id": topic["id"]}
        entries |= {
            ("partitions", f"{name}-{id_}"): {**p, "topic": topic["id"]} for id_, p in topic["partitions"].items()
        }
    for part in ("configs", "scram"):
        for outer, inner in form[part].items():
            entries |= {(part, f"{outer}:{key}"): value for key, value in inner.items()}
    for quota in form["clientQuotas"]:
        text = json.dumps(quota["entity"], ensure_ascii=False, separators=(",", ":"))
        entries["clientQuotas", text] = quota["quotas"]
    return entries


@given(split_histories())
def test_a_diff_names_exactly_the_entries_that_differ(history):
    image = older = MetadataImage.EMPTY
    for number, batch in enumerate(history):
        image = after(image, *(record.message for record in batch), offset=number)
        if number == len(history) // 2:
            older = image
    diff = diff_images(older, image)
    olds, news = _entries(older), _entries(image)
    differing = {key for key in olds | news if olds.get(key) != news.get(key)}
    assert {(change.part, change.key) for change in diff.changes} == differing
    for change in diff.changes:
        old, new = olds.get((change.part, change.key)), news.get((change.part, change.key))
        for field in change.fields:
            if change.kind != "added":
                assert field.before == (old or {}).get(field.field)
            if change.kind != "removed":
                assert field.after == (new or {}).get(field.field)


def test_a_real_log_can_be_compared_at_any_two_offsets():
    offsets = sorted(offset for (offset,) in expected("kafka-4.4", r"image-(\d+)"))
    for one, other in at_least_one(pairwise(offsets)):
        diff = diff_images(images("kafka-4.4")[one], images("kafka-4.4")[other])
        assert not diff.is_empty()
        assert diff.to_json()["to"] == other
        assert all(change.fields or change.part == "topics" for change in diff.changes)


ids = st.lists(st.integers(1, 3), max_size=3).map(tuple)
partitions = st.builds(
    lambda directories, **fields: PartitionRegistration(directories=tuple(map(uuid_of, directories)), **fields),
    ids,
    replicas=ids,
    isr=ids,
    elr=ids,
    last_known_elr=ids,
    removing_replicas=ids,
    adding_replicas=ids,
    leader=st.integers(-1, 1),
    leader_recovery_state=st.sampled_from(LeaderRecoveryState),
    leader_epoch=st.integers(0, 1),
    partition_epoch=st.integers(0, 1),
)


@given(partitions, partitions)
def test_of_a_partition_those_fields_have_changed_whose_json_differs(old, new):
    found = partition_json.changes(old, new)
    forms = zip(partition_json(old).items(), partition_json(new).values(), strict=True)
    assert found == [(name, before, after) for (name, before), after in forms if before != after]
