"""A real Kafka 4.4 controller and ours answer the same requests with the same errors and fields, over the wire."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.index import api_key_map

from kraftlake.controller.access.acls import create_acls
from kraftlake.image.acls_image import StandardAcl
from kraftlake.protocol.error_code import ErrorCode
from tests.controller.kafka_rpc import KafkaRpc
from tests.kafka_node import started_nodes
from tests.server.controller import wire_requests as w
from tests.server.controller.both_wires import BothWires, Side, kio
from tests.server.controller.controllers import ControllerThread, new_lake, started_controller
from tests.waiting import wait_for

pytestmark = pytest.mark.spark

NODE = 100
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SETTINGS = {
    "broker.session.timeout.ms": "600000",
    "auto.leader.rebalance.enable": "false",
    "log.index.size.max.bytes": "65536",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
ACLS = (
    (2, "visible", "alice", 8),  # DESCRIBE
    (2, "hers", "alice", 6),  # DELETE
    (2, "hers", "alice", 5),  # CREATE
    (2, "hers", "alice", 7),  # ALTER
    (2, "plain", "alice", 5),
    (2, "plain", "alice", 11),  # ALTER_CONFIGS
)
"""Type and name of the resource, principal, operation."""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothWires]:
    folder = tmp_path_factory.mktemp("beside")
    cluster_id = "clusterclusterclusterA"
    settings = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
    with (
        started_nodes(folder, {NODE: "controller"}, settings=SETTINGS, cluster_id=cluster_id) as nodes,
        started_controller(new_lake(folder / "lake", cluster_id), NODE, **settings) as ours,
    ):
        ours.await_active()
        theirs = KafkaRpc(nodes[NODE].controller)
        not_yet = ErrorCode.NOT_CONTROLLER
        wait_for(lambda: theirs.ask(w.unregister(999)).error_code != not_yet, "Kafka's controller leads")
        made = BothWires(
            theirs=Side(rpc=theirs, port=nodes[NODE].controller_port),
            ours=Side(rpc=ours.rpc(), port=ours.server.listeners[0].port),
        )
        add_acls(theirs, ours)
        yield made
        for side in made.sides:
            side.rpc.close()


def add_acls(theirs: KafkaRpc, ours: ControllerThread) -> None:
    """The same ACLs for both."""
    m = kio("create_acls", 3)
    creations = tuple(
        m.AclCreation(
            resource_type=kind, resource_name=name, resource_pattern_type=3, principal=f"User:{user}", host="*",
            operation=operation, permission_type=3,
        )
        for kind, name, user, operation in ACLS
    )  # fmt: skip
    assert not [one for one in theirs.ask(m.CreateAclsRequest(creations=creations)).results if one.error_code]
    acls = [
        StandardAcl(
            resource_type=kind, resource_name=name, pattern_type=3, principal=f"User:{user}", host="*",
            operation=operation, permission_type=3,
        )
        for kind, name, user, operation in ACLS
    ]  # fmt: skip
    ours.node.controller.submit(lambda state: create_acls(state, acls)).result(30)


def test_what_is_served_has_kafkas_versions(both: BothWires) -> None:
    request = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
    theirs, ours = (
        {int(one.api_key): (int(one.min_version), int(one.max_version)) for one in side.rpc.ask(request).api_keys}
        for side in both.sides
    )
    assert {*ours} < {*theirs}
    different = {api_key_map[key]: (ours[key], theirs[key]) for key in ours if ours[key] != theirs[key]}
    assert different == {"api_versions": ((0, 4), (0, 5))}  # of 5 kio has no schema: it is answered as unknown
    left_out = {api_key_map.get(key, str(key)) for key in {*theirs} - {*ours}}
    assert left_out == {
        "add_raft_voter", "begin_quorum_epoch", "end_quorum_epoch", "remove_raft_voter", "94", "update_raft_voter",
        "vote",
    }  # fmt: skip
    features = [
        {one.name: (one.min_version, one.max_version) for one in side.rpc.ask(request).supported_features}
        for side in both.sides
    ]
    assert features[0] == features[1]
    finalized = [
        {one.name: one.max_version_level for one in side.rpc.ask(request).finalized_features} for side in both.sides
    ]
    assert finalized[0] == finalized[1]


def test_the_answers_are_kafkas(both: BothWires) -> None:
    for part in (_brokers, _topics, _configs, _described, _partitions, _quorum, _forwarded, _denied, _leaving):
        part(both)
    assert len(both.steps) > 100
    assert [one for one in both.differences if one.step not in KNOWN] == []


KNOWN = {
    # Kafka knows observers by their fetches, ours by the heartbeats of brokers, too
    *(f"the quorum {version}" for version in range(3)),
    # ours does not answer the types of a node's settings
    "configs of all", "some of its own configs",
    # Kafka 4.4 has nothing to send in place of records, and fails with UNKNOWN_SERVER_ERROR
    "no snapshot", "the bootstrap snapshot", "a snapshot of an old epoch",
}  # fmt: skip
"""The steps at which ours differs."""


def _brokers(both: BothWires) -> None:
    both.ask("heartbeat of nobody", lambda _: w.heartbeat(1, 5))
    both.ask("another cluster", lambda _: w.registration(1, cluster_id="anotheranotheranotherA"))
    both.ask("no directory", lambda _: w.registration(1, dirs=0))
    _register(both, 1, dirs=2)
    _register(both, 2)
    _register(both, 2)
    _register(both, 2, process=1)
    _register(both, 3)
    _register(both, 3, version=3)
    for broker in (1, 2, 3):
        both.ask(f"not caught up {broker}", lambda s, b=broker: w.heartbeat(b, s.epochs[b], offset=0))
        both.ask(f"caught up {broker}", lambda s, b=broker: w.heartbeat(b, s.epochs[b]))
    both.ask("another process", lambda _: w.registration(2, process=2))
    both.ask("of an old epoch", lambda s: w.heartbeat(1, s.epochs[1] - 1))
    both.ask("producer ids", lambda s: w.producer_ids(1, s.epochs[1]))
    both.ask("more producer ids", lambda s: w.producer_ids(2, s.epochs[2]))
    both.ask("producer ids of an old epoch", lambda s: w.producer_ids(1, s.epochs[1] + 1))
    both.ask("unregister nobody", lambda _: w.unregister(77))


def _register(both: BothWires, broker: int, **options: Any) -> None:
    answers = [side.rpc.ask(w.registration(broker, **options)) for side in both.sides]
    for side, answer in zip(both.sides, answers, strict=True):
        side.epochs[broker] = int(answer.broker_epoch)
    both.compare(f"register {broker} {options}", *answers)


def _create(both: BothWires, step: str, *topics: tuple[str, dict[str, Any]], **options: Any) -> None:
    answers = [side.rpc.ask(w.create_topics(topics, **options)) for side in both.sides]
    for side, answer in zip(both.sides, answers, strict=True):
        side.topics |= {one.name: one.topic_id for one in answer.topics}
    both.compare(step, *answers)


def _topics(both: BothWires) -> None:
    three = {"assignments": [[1, 2, 3], [2, 3, 1]]}
    _create(both, "topics", ("orders", three), ("hers", {"assignments": [[1, 2]]}))
    _create(both, "by the defaults", ("plain", {}))
    _create(
        both, "with configs", ("configured", {**three, "configs": {"retention.ms": "5", "cleanup.policy": "compact"}})
    )
    for version in range(2, 8):
        topics = [(f"v{version}", {"partitions": 1, "factor": 2, "configs": {"retention.ms": "9"}})]
        both.ask(f"create {version}", lambda _, t=topics, v=version: w.create_topics(t, version=v, validate_only=True))
    refused: list[tuple[str, dict[str, Any]]] = [
        ("orders", {}), ("a/b", {}), ("", {}), ("x" * 250, {}), ("twice", {}), ("twice", {}),
        ("__cluster_metadata", {}), ("many", {"factor": 9}), ("none", {"factor": 0}), ("negative", {"partitions": -2}),
        ("odd", {"configs": {"retention.ms": "x"}}), ("null", {"configs": {"retention.ms": None}}),
        ("unknown", {"configs": {"no.such": "1"}}), ("both", {"partitions": 1, "assignments": [[1]]}),
        ("gone", {"assignments": [[99]]}), ("same", {"assignments": [[1, 1]]}),
    ]  # fmt: skip
    both.ask("refused topics", lambda _: w.create_topics(refused))
    both.ask("no topics", lambda _: w.create_topics([]))
    both.ask("no time", lambda _: w.create_topics([("late", {})], seconds=-1))
    both.ask("more partitions", lambda _: w.create_partitions(("orders", 4, None), validate_only=True))
    both.ask("new partitions", lambda _: w.create_partitions(("hers", 2, [[2, 1]])))
    both.ask(
        "refused partitions",
        lambda _: w.create_partitions(
            ("orders", 1, None), ("orders", 9, None), ("hers", 1, None), ("absent", 2, None), ("plain", 2, [[9]]),
            ("configured", 5, [[1, 2, 3]]), ("", 3, None),
        ),
    )  # fmt: skip
    both.ask(
        "refused deletions",
        lambda s: w.delete_topics(
            ("absent", None), ("plain", None), ("plain", None), ("orders", s.topics["orders"]), (None, None),
            (None, w.LOG_ID), ("", None), ("hers", None), (None, s.topics["hers"]),
        ),
    )  # fmt: skip
    both.ask("by name", lambda _: w.delete_topics(("configured", None)))
    both.ask("by id", lambda s: w.delete_topics((None, s.topics["hers"])))
    v1 = kio("delete_topics", 1)
    both.ask(
        "an older version", lambda _: v1.DeleteTopicsRequest(topic_names=("absent", "absent2"), timeout=w.timeout())
    )
    _create(both, "hers again", ("hers", {"assignments": [[1, 2]]}), ("visible", {"assignments": [[1]]}))


def _configs(both: BothWires) -> None:
    set_, delete, append, subtract = range(4)
    both.ask(
        "set and append",
        lambda _: w.change_configs(
            (TOPIC, "orders", [("retention.ms", set_, "77"), ("cleanup.policy", append, "compact")]),
            (BROKER, "", [("log.retention.ms", set_, "5")]), (BROKER, "1", [("log.cleaner.threads", set_, "2")]),
            (GROUP, "g", [("consumer.session.timeout.ms", set_, "50000")]),
            (METRICS, "sub", [("interval.ms", set_, "60000")]),
        ),
    )  # fmt: skip
    both.ask(
        "refused configs",
        lambda _: w.change_configs(
            (TOPIC, "absent", [("retention.ms", set_, "1")]), (TOPIC, "orders", [("retention.ms", set_, "x")]),
            (BROKER, "77", [("log.retention.ms", set_, "5")]), (BROKER, "x", [("log.retention.ms", set_, "5")]),
            (TOPIC, "plain", [("retention.ms", append, "1")]), (5, "x", [("a", set_, "b")]),
            (TOPIC, "hers", [("retention.ms", set_, "1")]), (TOPIC, "hers", [("retention.ms", set_, "2")]),
            (TOPIC, "visible", [("no.such", set_, "1")]), (0, "x", []),
            (BROKER, "2", [("cordoned.log.dirs", set_, "*")]),
        ),
    )  # fmt: skip
    both.ask(
        "only checked", lambda _: w.change_configs((TOPIC, "orders", [("retention.ms", set_, "1")]), validate_only=True)
    )
    both.ask(
        "deleted",
        lambda _: w.change_configs(
            (TOPIC, "orders", [("retention.ms", delete, None), ("cleanup.policy", subtract, "compact")])
        ),
    )
    both.ask("nothing", lambda _: w.change_configs())
    both.ask(
        "replaced",
        lambda _: w.replace_configs(
            (TOPIC, "orders", {"retention.ms": "8"}),
            (BROKER, "", {"log.retention.ms": "6", "min.insync.replicas": "1"}),
        ),
    )
    both.ask(
        "refused replacements",
        lambda _: w.replace_configs(
            (TOPIC, "absent", {}), (TOPIC, "orders", {"retention.ms": "x"}), (LOGGER, "1", {"kafka": "INFO"}),
            (3, "y", {}), (TOPIC, "hers", {}), (TOPIC, "hers", {}),
        ),
    )  # fmt: skip


def _described(both: BothWires) -> None:
    wait_for(lambda: both.agree(lambda _: w.describe_configs((TOPIC, "orders", None))))
    both.ask("configs of a topic", lambda _: w.describe_configs((TOPIC, "orders", None)))
    both.ask("some configs of a topic", lambda _: w.describe_configs((TOPIC, "configured", ["retention.ms", "x"])))
    both.ask("configs of no topic", lambda _: w.describe_configs((TOPIC, "absent", None)))
    both.ask("configs of all", lambda _: w.describe_configs((BROKER, "", None)))
    both.ask("some of its own configs", lambda _: w.describe_configs((BROKER, str(NODE), ["log.retention.ms"])))
    both.ask("configs of another", lambda _: w.describe_configs((BROKER, "1", None)))


def _partitions(both: BothWires) -> None:
    both.ask("no reassignment", lambda _: w.list_reassignments())
    both.ask("reassigned", lambda _: w.reassign(("orders", 0, (1, 2)), ("orders", 1, (2, 1, 3)), ("hers", 0, (3, 2))))
    both.ask("all of them", lambda _: w.list_reassignments())
    both.ask("some of them", lambda _: w.list_reassignments(("hers", [0, 5]), ("absent", [0]), ("orders", [0])))
    both.ask(
        "refused reassignments",
        lambda _: w.reassign(
            ("absent", 0, (1,)), ("orders", 9, (1,)), ("plain", 0, None), ("visible", 0, ()), ("visible", 0, (9,)),
            ("visible", 0, (1, 1)),
        ),
    )  # fmt: skip
    both.ask("another factor", lambda _: w.reassign(("visible", 0, (1, 2)), allow_replication_factor_change=False))
    both.ask("an older version", lambda _: w.reassign(("absent", 0, (1,)), version=0))
    both.ask("cancelled", lambda _: w.reassign(("hers", 0, None)))
    both.ask("elected", lambda _: w.elect(0, ("orders", [0, 1, 9]), ("absent", [0])))
    both.ask("unclean", lambda _: w.elect(1, ("orders", [0])))
    both.ask("all", lambda _: w.elect(0))
    both.ask("of no kind", lambda _: w.elect(7, ("orders", [0])))
    v0 = kio("elect_leaders", 0)
    both.ask(
        "elected by name",
        lambda _: v0.ElectLeadersRequest(
            topic_partitions=(v0.TopicPartitions(topic="orders", partitions=(0,)),), timeout=w.timeout()
        ),
    )
    both.ask(
        "isr", lambda s: w.alter_partition(1, s.epochs[1], s.topics["hers"], 0, [(1, s.epochs[1])], partition_epoch=2)
    )
    both.ask("isr of no topic", lambda s: w.alter_partition(1, s.epochs[1], w.LOG_ID, 0, [(1, -1)]))
    both.ask("isr of no partition", lambda s: w.alter_partition(1, s.epochs[1], s.topics["hers"], 7, [(1, -1)]))
    both.ask("isr of an old epoch", lambda s: w.alter_partition(1, s.epochs[1] - 1, s.topics["hers"], 0, [(1, -1)]))
    both.ask(
        "isr of another leader",
        lambda s: w.alter_partition(2, s.epochs[2], s.topics["hers"], 0, [(2, -1)], partition_epoch=3),
    )
    both.ask(
        "isr of a later epoch",
        lambda s: w.alter_partition(1, s.epochs[1], s.topics["hers"], 0, [(1, -1)], leader_epoch=99),
    )
    both.ask("assigned", lambda s: w.assign(1, s.epochs[1], 0, s.topics["hers"], 0))
    both.ask("assigned wrongly", lambda s: w.assign(1, s.epochs[1], 1, s.topics["hers"], 5))
    both.ask("assigned of nobody", lambda s: w.assign(1, s.epochs[1] + 3, 1, s.topics["hers"], 0))
    both.ask("assigned of no topic", lambda s: w.assign(1, s.epochs[1], 1, w.LOG_ID, 0))


def _quorum(both: BothWires) -> None:
    for version in (0, 1, 2):
        both.ask(f"cluster {version}", lambda _, v=version: w.describe_cluster(version=v))
        theirs, ours = both.ask(f"the quorum {version}", lambda _, v=version: w.describe_quorum(version=v))
        (partition,), (kafkas,) = ours.topics[0].partitions, theirs.topics[0].partitions
        assert {one.replica_id for one in partition.observers} == {1, 2, 3}
        assert both.ours.normal(replace(partition, observers=())) == both.theirs.normal(kafkas)
        both.ask(f"another topic {version}", lambda _, v=version: w.describe_quorum("orders", version=v))
    both.ask("brokers", lambda _: w.describe_cluster(1))
    both.ask("of no kind", lambda _: w.describe_cluster(9))
    both.ask("operations", lambda _: w.describe_cluster(operations=True))
    both.ask("another partition", lambda _: w.describe_quorum(index=4))
    epochs = {id(side): side.rpc.ask(w.describe_quorum()).topics[0].partitions[0].leader_epoch for side in both.sides}
    for version in (12, 13, 15, 16, 17):
        both.ask(f"no epoch {version}", lambda _, v=version: w.fetch(-1, version=v))
        both.ask(f"old epoch {version}", lambda s, v=version: w.fetch(epochs[id(s)] - 1, version=v))
        both.ask(f"later epoch {version}", lambda s, v=version: w.fetch(epochs[id(s)] + 1, version=v))
        both.ask(
            f"no such offset {version}", lambda s, v=version: w.fetch(epochs[id(s)], 10**9, epochs[id(s)], version=v)
        )
    both.ask("another cluster", lambda s: w.fetch(epochs[id(s)], cluster_id="anotheranotheranotherA"))
    both.ask("another topic", lambda s: w.fetch(epochs[id(s)], topic=s.topics["orders"]))
    both.ask("another partition", lambda s: w.fetch(epochs[id(s)], index=1))
    both.ask("a last epoch too high", lambda s: w.fetch(epochs[id(s)], 1, epochs[id(s)] + 1))
    both.ask("no snapshot", lambda s: w.fetch_snapshot(epochs[id(s)], 5, 1))
    both.ask("the bootstrap snapshot", lambda s: w.fetch_snapshot(epochs[id(s)], 0, 0))
    both.ask("a snapshot of an old epoch", lambda s: w.fetch_snapshot(epochs[id(s)] - 1, 5, 1))
    both.ask(
        "a snapshot of another cluster",
        lambda s: w.fetch_snapshot(epochs[id(s)], 5, 1, cluster_id="anotheranotheranotherA"),
    )


def _inner(both: BothWires, step: str, request: Any) -> None:
    """Compare what is inside of envelopes, too."""
    answers = [side.rpc.ask(w.envelope(w.encoded(request))) for side in both.sides]
    assert [answer.error_code for answer in answers] == [0, 0], step
    both.compare(step, *(w.inside(request, answer) for answer in answers))


def _forwarded(both: BothWires) -> None:
    frame = w.encoded(w.create_topics([("absent", {})]))
    both.ask("no principal", lambda _: w.envelope(frame, user=b"\0\0junk"))
    both.ask("another principal version", lambda _: w.envelope(frame, user=b"\0\7" + w.principal("alice")[2:]))
    both.ask("no address", lambda _: w.envelope(frame, host=b"abc"))
    both.ask("nothing inside", lambda _: w.envelope(b""))
    both.ask("not to be forwarded", lambda _: w.envelope(w.encoded(w.heartbeat(1, 1))))
    both.ask("an envelope inside", lambda _: w.envelope(w.encoded(w.envelope(frame))))
    both.ask("no such version", lambda _: w.envelope(frame[:2] + b"\0\x63" + frame[4:]))
    both.ask("torn", lambda _: w.envelope(frame[:-9]))


def _denied(both: BothWires) -> None:
    created = [("hers", {"partitions": 1}), ("secret", {}), ("plain", {}), ("hers", {}), ("__cluster_metadata", {})]
    _inner(both, "create as alice", w.create_topics(created))
    _inner(
        both,
        "validate as alice",
        w.create_topics([("plain", {"factor": 1}), ("hers", {"factor": 1})], validate_only=True),
    )
    _inner(both, "grow as alice", w.create_partitions(("hers", 5, None), ("orders", 9, None), validate_only=True))
    _inner(both, "delete as alice", w.delete_topics(("orders", None), ("visible", None), ("absent", None)))
    _inner(both, "delete ids as alice", w.delete_topics((None, w.LOG_ID)))
    _inner(
        both,
        "configs as alice",
        w.change_configs((TOPIC, "orders", []), (TOPIC, "plain", []), (BROKER, "", []), (GROUP, "g", [])),
    )
    _inner(both, "replace as alice", w.replace_configs((TOPIC, "orders", {}), (METRICS, "sub", {})))
    _inner(both, "reassign as alice", w.reassign(("orders", 0, (1, 2)), ("hers", 0, (1,))))
    _inner(both, "list as alice", w.list_reassignments(("orders", [0])))
    _inner(both, "elect as alice", w.elect(0, ("orders", [0])))
    _inner(both, "unregister as alice", w.unregister(3))
    _inner(both, "quorum as alice", w.describe_quorum())


def _leaving(both: BothWires) -> None:
    # where the replicas of other topics went is chance, and a broker that leads nothing may leave at once
    _create(both, "led", ("led", {"assignments": [[3, 2]]}))
    both.ask("controlled shutdown", lambda s: w.heartbeat(3, s.epochs[3], shut_down=True))
    both.ask("fenced", lambda s: w.heartbeat(2, s.epochs[2], fence=True))
    both.ask("unregistered", lambda _: w.unregister(3))
    both.ask("heartbeat after that", lambda s: w.heartbeat(3, s.epochs[3]))
