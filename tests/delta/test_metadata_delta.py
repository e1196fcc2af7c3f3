"""Every way to split records into deltas reaches the same image; what contradicts it is refused in every way."""

from __future__ import annotations

from itertools import combinations

import attrs
import pytest
from hypothesis import given

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.records import metadata_records as r
from kraftlake.records.control_records import LeaderChangeMessage
from kraftlake.records.metadata_version import from_feature_level
from kraftlake.records.serde import UnknownRecord
from kraftlake.runtime.errors import ReplayError, UnknownRecordError
from tests.at_least_one import at_least_one
from tests.histories import histories, split_histories, uuid_of

HERE = MetadataProvenance(offset=9, epoch=1)
PARTS = [field.name for field in attrs.fields(MetadataImage) if field.name != "provenance"]


def applied(*batches, base=MetadataImage.EMPTY):
    """The image after one delta for each batch of messages."""
    image = base
    for batch in batches:
        delta = MetadataDelta(image)
        for message in batch:
            delta.replay(message)
        image = delta.apply(HERE)
    return image


def every_split(messages):
    """The messages cut into one or more batches in every possible way."""
    for count in range(len(messages)):
        for cuts in combinations(range(1, len(messages)), count):
            yield [messages[a:b] for a, b in zip([0, *cuts], [*cuts, len(messages)], strict=True)]


def topic(name="foo", topic_id=5):
    return r.TopicRecord(name=name, topic_id=uuid_of(topic_id))


def partition(number=0, topic_id=5, **fields):
    return r.PartitionRecord(
        partition_id=number, topic_id=uuid_of(topic_id), replicas=(1, 2), isr=(1, 2), leader=1, leader_epoch=0,
        partition_epoch=0, **fields,
    )  # fmt: skip


def remove_topic(topic_id=5):
    return r.RemoveTopicRecord(topic_id=uuid_of(topic_id))


def config(value, name="retention.ms", resource="foo"):
    return r.ConfigRecord(resource_type=2, resource_name=resource, name=name, value=value)


def scram(user, mechanism=1):
    return r.UserScramCredentialRecord(
        name=user, mechanism=mechanism, salt=b"s", stored_key=b"k", server_key=b"t", iterations=4096
    )


def remove_scram(user, mechanism=1):
    return r.RemoveUserScramCredentialRecord(name=user, mechanism=mechanism)


@given(split_histories())
def test_every_split_of_a_history_reaches_the_same_image(batches):
    messages = [[record.message for record in batch] for batch in batches]
    whole = applied([message for batch in messages for message in batch])
    assert applied(*messages) == whole
    assert applied(*([message] for batch in messages for message in batch)) == whole


SCRIPTS = {
    "a topic created, configured and deleted": [
        topic(), partition(), config("1"), remove_topic(), topic("foo", 6), config("2"), config("3", "segment.bytes"),
    ],
    "a topic configured before, deleted, created again under its name": [
        config("1"), topic(), partition(), remove_topic(), topic("foo", 6), partition(1, 6),
    ],
    "users set and removed": [
        scram("alice"), remove_scram("alice"), scram("bob"), remove_scram("nobody"), scram("carol", 2),
    ],
    "a topic created again with its id": [
        topic(), partition(last_known_elr=(1,)), remove_topic(), topic(), partition(1, last_known_elr=(2,)),
        r.ClearElrRecord(topic_name=""),
    ],
    "an ACL that comes, changes, goes and comes again": [
        r.AccessControlEntryRecord(id=uuid_of(7), host="a"),
        r.AccessControlEntryRecord(id=uuid_of(7), host="b"),
        r.RemoveAccessControlEntryRecord(id=uuid_of(7)),
        r.AccessControlEntryRecord(id=uuid_of(7), host="c"),
    ],
    "eligible replicas cleared by name and for all": [
        topic(), partition(eligible_leader_replicas=(2,)), r.ClearElrRecord(topic_name="foo"),
        topic("bar", 6), partition(0, 6, last_known_elr=(2,)), r.ClearElrRecord(topic_name=""),
    ],
    "configs that Kafka has removed, set and removed": [
        config("2.8", "message.format.version"), topic(), config("1"), config(None, "message.format.version"),
        config("9", "message.timestamp.difference.max.ms", "bar"), config("3", "no.such", "bar"), remove_topic(),
    ],
    "a snapshot's topic record in mid-log drops the partitions before it": [
        topic(), partition(0), partition(1), topic(), partition(0),
    ],
}  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda name: name.replace(" ", "-"))
def test_every_possible_split_of_a_script_reaches_the_same_image(script):
    splits = list(every_split(SCRIPTS[script]))
    reference = applied(*splits[-1])
    assert len(splits[-1]) == len(SCRIPTS[script])
    assert all(applied(*split) == reference for split in splits)


def test_credentials_survive_the_removal_of_another_user_in_the_same_delta():
    users = [f"user-{number}" for number in range(20)]
    messages = [scram("first"), remove_scram("first"), *(scram(user) for user in users)]
    assert sorted(applied(messages).scram.mechanisms[1]) == sorted(users)
    base = applied([scram("old")])
    assert sorted(applied([remove_scram("old"), scram("new")], base=base).scram.mechanisms[1]) == ["new"]


def test_one_credential_changes_and_another_stays():
    base = applied([scram("alice"), scram("bob")])
    image = applied([attrs.evolve(scram("bob"), iterations=8192)], base=base)
    assert {user: c.iterations for user, c in image.scram.mechanisms[1].items()} == {"alice": 4096, "bob": 8192}
    assert image.scram.mechanisms[1]["alice"] is base.scram.mechanisms[1]["alice"]


def test_an_acl_of_the_base_image_can_be_removed_once():
    base = applied([r.AccessControlEntryRecord(id=uuid_of(7))])
    delta = MetadataDelta(base)
    delta.replay(r.RemoveAccessControlEntryRecord(id=uuid_of(7)))
    with pytest.raises(ReplayError, match="does not exist"):
        delta.replay(r.RemoveAccessControlEntryRecord(id=uuid_of(7)))
    assert delta.apply(HERE).acls.is_empty()


OLD = config("2.8", "message.format.version")


def test_configs_that_kafka_has_removed_are_no_part_of_the_image():
    image = applied(
        [topic(), OLD, config("1"), r.ConfigRecord(resource_type=8, resource_name="1", name="a", value="1")]
    )
    assert image == applied([topic(), config("1")])
    assert image.configs.ignored_words == "message.format.version of topic foo; a of broker logger 1"
    assert [record.message.name for record in image.configs.write()] == ["retention.ms"]
    assert (
        applied([config(None, OLD.name)], [remove_topic()], base=image).configs.ignored_words == "a of broker logger 1"
    )


@pytest.mark.parametrize("gone", [config(None, OLD.name), remove_topic()], ids=["removed", "with its topic"])
def test_an_ignored_config_is_named_for_as_long_as_the_log_has_it(gone):
    base = applied([topic(), OLD])
    assert applied([gone], base=base).configs.ignored_words == ""
    assert applied([gone, OLD], base=base).configs.ignored_words == "message.format.version of topic foo"


def test_a_snapshot_says_which_configs_are_ignored_from_there_on():
    delta = MetadataDelta(applied([topic(), OLD, config("1", "old.too")]))
    delta.replay_all([topic(), config("9", "old.too")])
    delta.finish_snapshot()
    assert delta.apply(HERE).configs.ignored_words == "old.too of topic foo"


def test_many_ignored_configs_are_counted():
    image = applied([config("1", OLD.name, f"t-{number}") for number in range(5)])
    assert image.configs.ignored_words == "message.format.version of topics t-0, t-1, t-2 and 2 more"


def test_codes_that_kafka_does_not_know_are_unknown():
    rule = r.AccessControlEntryRecord(id=uuid_of(7), resource_type=99, pattern_type=5, operation=16, permission_type=-1)
    image = applied(
        [
            rule,
            scram("alice", 3),
            scram("bob", -1),
            scram("carol", 99),
            r.RemoveUserScramCredentialRecord(name="bob", mechanism=7),
        ]
    )
    acl = image.acls.acls[uuid_of(7)]
    assert (acl.resource_type, acl.pattern_type, acl.operation, acl.permission_type) == (0, 0, 0, 0)
    assert {mechanism: sorted(users) for mechanism, users in image.scram.mechanisms.items()} == {0: ["alice", "carol"]}


def test_configs_of_a_topic_that_came_and_went_within_a_delta_are_gone():
    assert applied([topic(), config("1"), remove_topic()]).configs.is_empty()
    assert applied([config("1", resource="other"), topic(), remove_topic()]).configs.resource_data


@given(histories())
def test_an_empty_delta_gives_the_same_image(history):
    image = applied([record.message for record in history])
    assert MetadataDelta(image).apply(image.provenance) is image
    delta = MetadataDelta(image)
    delta.replay(r.NoOpRecord())
    assert delta.apply(image.provenance) is image


@given(histories())
def test_a_delta_that_changes_nothing_gives_the_same_parts(history):
    image = applied([record.message for record in history])
    delta = MetadataDelta(image)
    for record in image.write():
        if not isinstance(record.message, r.TopicRecord):
            delta.replay(record.message)
    later = delta.apply(MetadataProvenance(offset=10, epoch=1))
    assert later.offset == 10
    assert all(getattr(later, part) is getattr(image, part) for part in PARTS)


def test_a_topic_created_and_deleted_in_one_delta_leaves_no_trace():
    base = applied([topic("bar", 6)])
    delta = MetadataDelta(base)
    for message in (topic(), partition(), remove_topic()):
        delta.replay(message)
    assert delta.apply(base.provenance) is base
    assert not delta.topics_delta.changed_topics
    assert not delta.topics_delta.deleted_topic_ids
    assert not delta.topics_delta.created_topic_ids


def test_only_the_parts_that_records_touch_have_a_delta():
    delta = MetadataDelta(MetadataImage.EMPTY)
    delta.replay(config("1"))
    assert delta.configs_delta is not None
    assert (delta.topics_delta, delta.acls_delta, delta.features_delta) == (None, None, None)


def test_a_change_of_the_metadata_version_gives_every_part_a_delta():
    delta = MetadataDelta(MetadataImage.EMPTY)
    delta.replay(r.FeatureLevelRecord(name="group.version", feature_level=1))
    assert (delta.topics_delta, delta.metadata_version_changed) == (None, None)
    delta.replay(r.FeatureLevelRecord(name="metadata.version", feature_level=20))
    assert delta.topics_delta is not None
    assert delta.delegation_token_delta is not None
    assert delta.metadata_version_changed == from_feature_level(20)
    assert delta.apply(HERE).features.metadata_version.name == "3.8-IV0"


CONTRADICTIONS = {
    "a partition of no topic": ([], partition(), "the topic with id .* does not exist"),
    "a change in no topic": ([], r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(5)), "does not exist"),
    "a change of no partition": (
        [topic()],
        r.PartitionChangeRecord(partition_id=3, topic_id=uuid_of(5)),
        "topic 'foo' has no partition 3",
    ),
    "a change of a deleted topic": (
        [topic(), partition(), remove_topic()],
        r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(5)),
        "does not exist",
    ),
    "a partition of a deleted topic": ([topic(), remove_topic()], partition(), "does not exist"),
    "a topic deleted twice": ([topic(), remove_topic()], remove_topic(), "does not exist"),
    "a topic id with two names": ([topic()], topic("bar", 5), "'bar' gets the id .*, which 'foo' has"),
    "clearing the eligible replicas of no topic": ([], r.ClearElrRecord(topic_name="foo"), "'foo' does not exist"),
    "clearing those of a deleted topic": (
        [topic(), remove_topic()],
        r.ClearElrRecord(topic_name="foo"),
        "'foo' does not exist",
    ),
    "an ACL removed twice": (
        [r.AccessControlEntryRecord(id=uuid_of(7)), r.RemoveAccessControlEntryRecord(id=uuid_of(7))],
        r.RemoveAccessControlEntryRecord(id=uuid_of(7)),
        "the ACL with id .* does not exist",
    ),
    "fencing no broker": ([], r.FenceBrokerRecord(id=1, epoch=1), "broker 1 is not registered"),
    "unfencing another incarnation": (
        [r.RegisterBrokerRecord(broker_id=1, broker_epoch=5)],
        r.UnfenceBrokerRecord(id=1, epoch=4),
        "named with epoch 4, but is registered with 5",
    ),
    "changing a broker that is gone": (
        [
            r.RegisterBrokerRecord(broker_id=1, broker_epoch=5),
            r.UnregisterBrokerRecord(broker_id=1, broker_epoch=5),
        ],
        r.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5),
        "not registered",
    ),
    "a fencing that means nothing": (
        [r.RegisterBrokerRecord(broker_id=1, broker_epoch=5)],
        r.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=2),
        "fenced is 2",
    ),
    "a shutdown that means nothing": (
        [r.RegisterBrokerRecord(broker_id=1, broker_epoch=5)],
        r.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, in_controlled_shutdown=-1),
        "inControlledShutdown is -1",
    ),
    "a listener without a name": (
        [],
        r.RegisterBrokerRecord(broker_id=1, end_points=(r.BrokerEndpoint(host="h"),)),
        "listener without a name",
    ),
    "a controller with a strange listener": (
        [],
        r.RegisterControllerRecord(controller_id=1, end_points=(r.ControllerEndpoint(name="C", security_protocol=9),)),
        "'C' with the unknown security protocol 9",
    ),
    "a token of nobody": (
        [],
        r.DelegationTokenRecord(token_id="t", owner="alice", requester="User:bob"),
        "'alice' is no principal",
    ),
    "a metadata.version that is too old": (
        [],
        r.FeatureLevelRecord(name="metadata.version", feature_level=4),
        "metadata.version 4 is below 7 .*upgrade",
    ),
    "a metadata.version of the future": (
        [],
        r.FeatureLevelRecord(name="metadata.version", feature_level=1000),
        "metadata.version 1000 is not known",
    ),
    "a transaction marker": ([], r.EndTransactionRecord(), "transaction begins or ends where none is expected"),
}


@pytest.mark.parametrize("case", CONTRADICTIONS, ids=lambda name: name.replace(" ", "-"))
@pytest.mark.parametrize("same_delta", [True, False])
def test_a_contradiction_names_its_offset_and_leaves_no_trace(case, same_delta):
    before, message, sentence = CONTRADICTIONS[case]
    base = MetadataImage.EMPTY if same_delta else applied(before)
    delta = MetadataDelta(base)
    for earlier in before if same_delta else ():
        delta.replay(earlier)
    expected = delta.apply(HERE)
    with pytest.raises(ReplayError, match=f"offset 42, [A-Z_]+_RECORD: .*{sentence}") as caught:
        delta.replay(message, 42)
    assert caught.value.offset == 42
    assert delta.apply(HERE) == expected
    with pytest.raises(ReplayError, match=sentence) as caught:
        delta.replay(message)
    assert caught.value.offset is None
    assert "offset" not in str(caught.value)


def test_a_record_that_nobody_knows_is_named_by_type_and_offset():
    delta = MetadataDelta(MetadataImage.EMPTY)
    with pytest.raises(
        UnknownRecordError, match="offset 17, UNKNOWN: record type 99 in version 3 is not known"
    ) as caught:
        delta.replay(UnknownRecord(99, 3, b"..."), 17)
    assert caught.value.offset == 17


def test_control_records_change_no_image():
    with pytest.raises(UnknownRecordError, match="LEADER_CHANGE_MESSAGE changes no image"):
        MetadataDelta(MetadataImage.EMPTY).replay(LeaderChangeMessage())


def test_every_record_type_but_the_transaction_markers_is_replayed():
    refused = set()
    for cls in r.METADATA_RECORDS.values():
        try:
            MetadataDelta(MetadataImage.EMPTY).replay(cls())
        except ReplayError as error:
            if "transaction" in str(error):
                refused.add(cls)
    assert refused == {r.BeginTransactionRecord, r.EndTransactionRecord, r.AbortTransactionRecord}


def test_a_second_topic_of_a_name_is_refused_before_it_becomes_an_image():
    for batches in at_least_one(every_split([topic(), topic("foo", 6), remove_topic()])):
        with pytest.raises(ReplayError, match=r"'foo' was created while the topic with id .* had that name"):
            applied(*batches)


def test_a_snapshot_may_bring_another_topic_of_a_name():
    base = applied([topic(), partition(), config("1")])
    delta = MetadataDelta(base)
    for message in (topic("foo", 6), partition(0, 6)):
        delta.replay(message)
    delta.finish_snapshot()
    image = delta.apply(HERE)
    assert image == applied([topic("foo", 6), partition(0, 6)])
    assert delta.topics_delta.topic_was_deleted("foo")
    assert sorted(str(tp) for tp in delta.topics_delta.local_changes(2).deletes) == ["foo-0"]


def test_a_snapshot_without_a_metadata_version_or_producer_ids_keeps_them():
    base = applied(
        [r.FeatureLevelRecord(name="metadata.version", feature_level=9), r.ProducerIdsRecord(next_producer_id=5000)]
    )
    delta = MetadataDelta(base)
    delta.finish_snapshot()
    assert delta.apply(base.provenance) is base


def test_features_come_and_go_and_kraft_version_is_not_one_of_them():
    def feature(name, level):
        return r.FeatureLevelRecord(name=name, feature_level=level)

    image = applied([feature("group.version", 1), feature("kraft.version", 1), feature("x", 2)])
    assert dict(image.features.finalized_versions) == {"group.version": 1, "x": 2}
    assert image.features.metadata_version is None
    assert dict(applied([feature("x", 0)], base=image).features.finalized_versions) == {"group.version": 1}
    elr = feature("eligible.leader.replicas.version", 1)
    assert applied([elr]).features.is_elr_enabled
    assert not image.features.is_elr_enabled


def test_the_directories_of_a_broker_are_in_kafkas_order():
    high, low = uuid_of(300), attrs.evolve(r.RegisterBrokerRecord(), incarnation_id=uuid_of(1)).incarnation_id
    negative = type(high)(b"\xff" * 16)
    broker = r.RegisterBrokerRecord(broker_id=1, broker_epoch=5, log_dirs=(high, negative, low))
    image = applied([broker])
    assert image.cluster.brokers[1].directories == (negative, low, high)
    unchanged = r.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, log_dirs=(low, high, negative))
    delta = MetadataDelta(image)
    delta.replay(unchanged)
    assert not delta.cluster_delta.changed_brokers


def test_elections_are_counted():
    delta = MetadataDelta(applied([topic(), partition(eligible_leader_replicas=(2,))]))
    change = r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(5), leader=2, leader_recovery_state=1)
    delta.replay(change)
    delta.replay(attrs.evolve(change, leader=1))
    foo = delta.topics_delta.changed_topic(uuid_of(5))
    assert (foo.elr_elections, foo.unclean_elections) == ({0: 1}, {0: 2})
