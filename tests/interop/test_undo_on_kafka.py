"""Plans that are applied to a real Kafka node, over its broker and over its controller."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from confluent_kafka import admin as ck
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

import kraftlake
from kraftlake.cli.views.undo_view import AppliedView
from kraftlake.diagnosis.undo import applying
from kraftlake.diagnosis.undo.apply_plan import apply_plan
from kraftlake.diagnosis.undo.applying import ApplyError, Taken
from kraftlake.diagnosis.undo.journal import Journal
from kraftlake.diagnosis.undo.step import Action, StepClass
from kraftlake.protocol.describe import OtherClusterError
from kraftlake.runtime.errors import UsageError
from tests.at_least_one import at_least_one
from tests.cli.running import run
from tests.diagnosis.undo.test_tool_commands import calls_by_script
from tests.docs.undo_page import PAGE, SHOWN, printed_on, timeless
from tests.interop.kafka_tools import KafkaTools
from tests.interop.undone_nodes import (
    AUTHORIZED,
    FAST,
    LakeCluster,
    acl,
    await_lines,
    clean,
    delete_all_acls,
    done,
    ended,
    set_configs,
    started,
)
from tests.kafka_node import KafkaNode, started_node

pytestmark = pytest.mark.spark


LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
KILLED_AFTER = range(1, 61, 2) if LONG else (3,)
"""The numbers of steps after which the command is killed."""
TOOLS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs.sh": "org.apache.kafka.tools.ConfigCommand",
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
    "kafka-features.sh": "org.apache.kafka.tools.FeatureCommand",
    "kafka-reassign-partitions.sh": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    with started_node(tmp_path_factory.mktemp("node"), settings=AUTHORIZED) as running:
        yield running


def make_past(client: AdminClient) -> None:
    done(client.create_topics([NewTopic("orders", 3, 1, config={"retention.ms": "600000"}), NewTopic("bills", 1, 1)]))
    done(
        client.create_acls(
            [acl("User:alice", ck.AclOperation.READ), acl("User:mallory", ck.AclOperation.WRITE, deny=True)]
        )
    )
    set_configs(client, ck.ResourceType.BROKER, "1", log_cleaner_threads="2")


def undo_past(client: AdminClient) -> None:
    done(client.delete_topics(["bills"]))
    done(client.create_topics([NewTopic("made-since", 2, 1)]))
    done(client.create_partitions([NewPartitions("orders", 4)]))
    set_configs(client, ck.ResourceType.TOPIC, "orders", retention_ms=None, segment_bytes="2097152")
    set_configs(client, ck.ResourceType.BROKER, "1", log_cleaner_threads="3")
    filters = [ck.AclBindingFilter(
        ck.ResourceType.TOPIC, "orders", ck.ResourcePatternType.LITERAL, None, None, ck.AclOperation.ANY,
        ck.AclPermissionType.ANY,
    )]  # fmt: skip
    done(client.delete_acls(filters))
    done(client.create_acls([acl("User:eve", ck.AclOperation.ALL)]))


@pytest.mark.parametrize("over", ["bootstrap", "controller"])
def test_a_past_state_comes_back(node: KafkaNode, tmp_path: Path, over: str) -> None:
    past_state_comes_back(node, tmp_path, over)


def past_state_comes_back(node: KafkaNode | LakeCluster, tmp_path: Path, over: str) -> None:
    """Undo topics, configs and ACLs, the safe steps first, then all, and once more."""
    clean(node)
    make_past(node.admin)
    then = kraftlake.open(node.controller).end_offset - 1
    undo_past(node.admin)
    source = kraftlake.open(node.controller)
    plan = source.plan_undo(then)
    journal = tmp_path / "journal"
    at = getattr(node, over)

    safe = apply_plan(plan, source, at, journal=journal, pace=FAST)
    assert {one.outcome for one in safe.steps if one.step.step_class is StepClass.SAFE} == {"applied"}
    left = {one.path for one in safe.left.changes}
    assert "acl/User:alice/TOPIC/orders/LITERAL/READ/ALLOW/*" in left
    assert "topic/made-since" in left

    found = apply_plan(plan, source, at, journal=journal, pace=FAST, classes=[*StepClass])
    assert [one.path for one in found.left.changes] == ["topic/orders"]  # partitions can't become fewer
    outcomes = {one.step.action: one.outcome for one in found.steps}
    assert outcomes[Action.CREATE_ACL] == outcomes[Action.DELETE_TOPIC] == "applied"
    assert outcomes[Action.NONE] == "skipped"
    assert outcomes[Action.CREATE_TOPIC] == "already"
    assert source_says(node, then) == ["topic/orders"]

    again = apply_plan(plan, source, at, journal=journal, pace=FAST, classes=[*StepClass])
    assert {one.outcome for one in again.steps} == {"already", "skipped"}
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    sent = [line for line in lines if line["event"] == "send"]
    assert len(sent) == len([one for one in plan.steps if one.action is not Action.NONE])
    assert {line["error"] for line in lines if line["event"] == "answer"} == {"NONE"}


def source_says(node: KafkaNode | LakeCluster, then: int) -> list[str]:
    """The paths that differ from the past, by the log itself."""
    source = kraftlake.open(node.controller)
    return [one.path for one in source.drift(source, None, then).changes]


def test_the_command_goes_on_after_kill_9_and_ends_equal(node: KafkaNode, tmp_path: Path) -> None:
    clean(node)
    client = node.admin
    done(client.create_topics([NewTopic("orders", 1, 1)]))
    done(
        client.create_acls(
            [acl(f"User:u{number}", ck.AclOperation.READ) for number in range(2 * len(KILLED_AFTER) + 10)]
        )
    )
    then = kraftlake.open(node.controller).end_offset - 1
    delete_all_acls(client)
    journal = tmp_path / "journal"
    words = (
        "undo", node.controller, "--to", then, "--kind", "acl", "--apply", "--access", "--yes", "--journal", journal,
        "--rate", 20,
    )  # fmt: skip
    killed = 0
    for steps in KILLED_AFTER:
        with started(*words) as process:
            await_lines(journal, '"read back"', steps)
            process.kill()
        killed += process.returncode == -9
    printed = ended(*words, code=0)
    assert "equal: the cluster, read back whole, is what it was" in printed
    assert source_says(node, then) == []
    assert killed == len(KILLED_AFTER)


def test_a_value_that_somebody_else_has_set_ends_the_command(node: KafkaNode, tmp_path: Path) -> None:
    clean(node)
    client = node.admin
    done(client.create_topics([NewTopic("orders", 1, 1, config={"retention.ms": "600000"})]))
    then = kraftlake.open(node.controller).end_offset - 1
    set_configs(client, ck.ResourceType.TOPIC, "orders", retention_ms="700000")
    source = kraftlake.open(node.controller)
    plan = source.plan_undo(then)
    set_configs(client, ck.ResourceType.TOPIC, "orders", retention_ms="800000")
    for at in (node.bootstrap, node.controller):
        with pytest.raises(ApplyError, match=r"retention\.ms is 800000, and the plan goes from 700000 to 600000"):
            apply_plan(plan, source, at, journal=tmp_path / "journal", pace=FAST, classes=[*StepClass])
    other = attrs.evolve(plan, cluster_id="AnotherClusterAAAAAAAA")
    with pytest.raises(OtherClusterError, match="not of AnotherClusterAAAAAAAA"):
        apply_plan(other, source, node.bootstrap, journal=tmp_path / "journal", pace=FAST)
    with Journal(tmp_path / "journal"), pytest.raises(UsageError, match="Another undo writes to"):
        apply_plan(plan, source, node.bootstrap, journal=tmp_path / "journal", pace=FAST)


def test_another_tool_that_keeps_its_own_state_is_found_by_reading_back(
    node: KafkaNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean(node)
    client = node.admin
    done(client.create_topics([NewTopic("orders", 1, 1, config={"retention.ms": "600000"})]))
    then = kraftlake.open(node.controller).end_offset - 1
    set_configs(client, ck.ResourceType.TOPIC, "orders", retention_ms="700000")
    step = AppliedView.step

    def kept(view: AppliedView, taken: Taken) -> None:
        step(view, taken)
        set_configs(client, ck.ResourceType.TOPIC, "orders", retention_ms="700000")

    monkeypatch.setattr(AppliedView, "step", kept)
    monkeypatch.setattr(applying, "_SETTLED_SECONDS", 0.5)  # the value is not to come back by itself
    words = ("undo", node.controller, "--to", then, "--apply", "--destructive", "--yes", "--journal", tmp_path / "j")
    lines = run(*words, code=3, width=200).stdout.splitlines()
    assert "1 entry still differs:" in lines[-3]
    assert lines[-2].split("  ")[-1] == (
        "it was as wanted, and was changed again: another tool may keep its own state there"
    )


def test_what_the_cluster_refuses_is_reported_before_anything_is_changed(node: KafkaNode, tmp_path: Path) -> None:
    clean(node)
    client = node.admin
    done(client.create_topics([NewTopic("orders", 1, 1, config={"retention.ms": "600000"})]))
    done(client.create_acls([acl("User:alice", ck.AclOperation.READ, deny=True)]))
    then = kraftlake.open(node.controller).end_offset - 1
    set_configs(client, ck.ResourceType.TOPIC, "orders", retention_ms="700000")
    delete_all_acls(client)
    source = kraftlake.open(node.controller)
    plan = source.plan_undo(then)
    (config,) = [step for step in plan.steps if step.action is Action.ALTER_CONFIGS]
    wrong = attrs.evolve(config, changes=(attrs.evolve(config.changes[0], after="soon"),))
    plan = attrs.evolve(plan, steps=tuple(wrong if step is config else step for step in plan.steps))
    for at in (node.bootstrap, node.controller):
        with pytest.raises(ApplyError, match=r"retention\.ms|Invalid value"):
            apply_plan(plan, source, at, journal=tmp_path / "journal", pace=FAST, classes=[*StepClass])
    assert [one.path for one in source.drift(kraftlake.open(node.controller)).changes] == []


def make_everything(client: AdminClient) -> None:
    """A state with each kind of entry, and with names and values that a shell would take apart."""
    done(
        client.create_topics(
            [NewTopic("a.b-c", 2, 1, config={"cleanup.policy": "compact,delete"}), NewTopic("axb-c", 1, 1)]
        )
    )
    set_configs(client, ck.ResourceType.TOPIC, "axb-c", follower_replication_throttled_replicas="*", retention_ms="5")
    set_configs(client, ck.ResourceType.BROKER, "1", log_retention_ms="600000")
    rules = [
        ck.AclBinding(kind, name, pattern, principal, host, operation, permission)
        for kind, name, pattern, principal, host, operation, permission in (
            (ck.ResourceType.TOPIC, "p-", ck.ResourcePatternType.PREFIXED, "User:CN=a b,O=c$d", "10.0.0.1", 10, 3),
            (ck.ResourceType.GROUP, "*", ck.ResourcePatternType.LITERAL, "User:it's", "*", 3, 2),
            (ck.ResourceType.BROKER, "kafka-cluster", ck.ResourcePatternType.LITERAL, "User:*", "*", 12, 3),
            (ck.ResourceType.TRANSACTIONAL_ID, "t x", ck.ResourcePatternType.LITERAL, "User:e", "*", 4, 3),
        )
        for operation, permission in [(ck.AclOperation(operation), ck.AclPermissionType(permission))]
    ]
    done(client.create_acls(rules))


def set_by_tools(node: KafkaNode, tools: KafkaTools, *, added: bool) -> None:
    """Quotas, and a default config of all brokers, which the client has no names for."""
    clients = ("--entity-type", "clients", "--entity-default")
    everything = (
        ("producer_byte_rate", "--entity-type", "users", "--entity-name", "u-1", *clients),
        ("consumer_byte_rate", "--entity-type", "users", "--entity-default"),
        ("connection_creation_rate", "--entity-type", "ips", "--entity-name", "10.0.0.9"),
        ("log.cleaner.threads", "--entity-type", "brokers", "--entity-default"),
    )
    for key, *entity in everything:
        change = ["--add-config", f"{key}=2"] if added else ["--delete-config", key]
        said = tools.run(TOOLS["kafka-configs.sh"], "--bootstrap-server", node.bootstrap, "--alter", *entity, *change)
        assert said.code == 0, said


@pytest.mark.skipif(not LONG, reason="make test-long: a JVM of Kafka's tools")
def test_the_commands_of_recreate_make_an_equal_cluster_by_kafkas_tools(node: KafkaNode, tmp_path: Path) -> None:
    clean(node)
    tools = KafkaTools()
    try:
        make_everything(node.admin)
        set_by_tools(node, tools, added=True)
        then = kraftlake.open(node.controller).end_offset - 1
        source = kraftlake.open(node.controller)
        assert {one.change.part for one in source.drift(source, 5, then).changes} >= {
            "topics",
            "configs",
            "acls",
            "clientQuotas",
        }
        clean(node)
        set_by_tools(node, tools, added=False)
        set_configs(node.admin, ck.ResourceType.BROKER, "1", log_retention_ms=None)
        script = run("recreate", node.controller, "--at", then, "--as", "commands").stdout
        for at, command in at_least_one(enumerate(calls_by_script(tmp_path, script, node.bootstrap))):
            given = tmp_path / f"input-{at}"
            given.write_text(command["input"] or "")
            words = [str(given) if word == "/dev/stdin" else word for word in command["words"]]
            said = tools.run(TOOLS[command["tool"]], *words)
            assert said.code == 0, (command, said)
    finally:
        tools.close()
    now = kraftlake.open(node.controller)
    assert [one.change.describe() for one in now.drift(now, None, then).changes] == []


def test_the_four_commands_of_the_page_bring_the_acls_of_a_topic_back(node: KafkaNode, tmp_path: Path) -> None:
    shown = SHOWN.findall(PAGE.read_text("utf-8"))
    for (words, printed), (_, before) in at_least_one(zip(printed_on(node, tmp_path), shown, strict=True)):
        assert timeless(printed) == timeless(before), words
