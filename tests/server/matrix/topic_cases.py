"""CreateTopics, DeleteTopics, CreatePartitions, and the configs of topics and brokers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from tests.server.matrix.sides import CONTROLLER, LONG, NODES, Side, Sides

_UNKNOWN = UUID(int=77)
_TOPIC, _BROKER, _LOGGER, _CLIENT_METRICS, _GROUP = 2, 4, 8, 16, 32
_SET, _DELETE, _APPEND, _SUBTRACT = 0, 1, 2, 3


def _new(name: str, partitions: int = -1, factor: int = -1, **more: Any) -> dict[str, Any]:
    configs = [{"name": key, "value": value} for key, value in more.get("configs", {}).items()]
    assignments = [
        {"partition_index": number, "broker_ids": tuple(ids)} for number, ids in more.get("replicas", {}).items()
    ]
    return {
        "name": name, "num_partitions": partitions, "replication_factor": factor, "assignments": assignments,
        "configs": configs,
    }  # fmt: skip


def create_topics(sides: Sides, side: Side) -> None:
    """What is right and what is wrong of a new topic, created or validated only, at a broker and at the controller."""
    side.create("is-there", [1, 2, 3])
    asked: Mapping[str, list[dict[str, Any]]] = {
        "right": [_new("right", 2, 3)], "defaults": [_new("defaults")],
        "configs": [_new("configs", 1, 2, configs={"retention.ms": "1000", "cleanup.policy": "compact,delete"})],
        "placed": [_new("placed", replicas={0: [1, 2], 1: [2, 3]})],
        "is there": [_new("is-there", 1, 1)], "collides": [_new("is.there_", 1, 1), _new("is_there.", 1, 1)],
        "collides with one that is there": [_new("is-there.x_", 1, 1), _new("is-there_x.", 1, 1)],
        "name": [_new("a b", 1, 1)], "empty": [_new("", 1, 1)], "dots": [_new("..", 1, 1)],
        "long": [_new("x" * 250, 1, 1)], "no partitions": [_new("none", 0, 1)], "minus": [_new("minus", -2, 1)],
        "no replicas": [_new("none", 1, 0)], "many replicas": [_new("many", 1, 4)],
        "minus replicas": [_new("minus", 1, -2)], "unknown config": [_new("c", 1, 1, configs={"no.such": "1"})],
        "wrong config": [_new("c", 1, 1, configs={"retention.ms": "x"})],
        "config out of range": [_new("c", 1, 1, configs={"min.insync.replicas": "0"})],
        "config without a value": [_new("c", 1, 1, configs={"retention.ms": None})],
        "config of the broker": [_new("c", 1, 1, configs={"log.retention.ms": "5"})],
        "remote storage": [_new("c", 1, 1, configs={"remote.storage.enable": "true"})],
        "contradicting configs": [
            _new("c", 1, 1, configs={"local.retention.ms": "2000", "retention.ms": "1000"}),
        ],
        "unknown broker": [_new("p", replicas={0: [9]})], "replica twice": [_new("p", replicas={0: [1, 1]})],
        "other lengths": [_new("p", replicas={0: [1], 1: [1, 2]})], "a gap": [_new("p", replicas={0: [1], 2: [1]})],
        "no zero": [_new("p", replicas={1: [1]})], "nobody": [_new("p", replicas={0: []})],
        "both": [_new("p", 1, 1, replicas={0: [1]})], "placed and a number": [_new("p", 1, -1, replicas={0: [1]})],
        "twice": [_new("twice", 1, 1), _new("twice", 2, 1), _new("once", 1, 1)], "nothing": [],
        "the metadata's": [_new("__cluster_metadata", 1, 1)],
        "internal": [_new("__consumer_offsets", 1, 1)], "many": [_new(f"many-{number}", 1, 1) for number in range(5)],
    }  # fmt: skip
    for node in NODES:
        for version in (versions := sides.versions("create_topics", node)):
            for is_dry in (True, False):
                for label, topics in asked.items():
                    is_brief = is_dry and version != 7 if LONG else is_dry or version != versions[-1]
                    if is_brief and label not in ("right", "is there", "configs", "twice"):
                        continue
                    mine = [
                        topic if topic["name"] in _AS_THEY_ARE or len(topic["name"]) > 200 or not topic["name"]
                        else topic | {"name": f"{topic['name']}-{node}-{version}"}
                        for topic in topics
                    ]  # fmt: skip
                    side.call(
                        f"{label} at {node}{', dry' * is_dry}", "create_topics", version, node, topics=mine,
                        timeout=30_000, validate_only=is_dry,
                    )  # fmt: skip


_AS_THEY_ARE = ("is-there", "a b", "..", "__cluster_metadata", "__consumer_offsets")


def delete_topics(sides: Sides, side: Side) -> None:
    """By name and by id."""
    for node in NODES:
        for version in sides.versions("delete_topics", node):
            names = [f"{kind}-{node}-{version}" for kind in ("one", "two", "three")]
            for name in names:
                side.create(name, [1])
            for label, asked in {
                "one": names[:1], "gone": names[:1], "unknown": ["unknown"], "twice": [names[1], names[1]],
                "wrong": ["a b"], "empty": [""], "nothing": [], "some": ["unknown", names[1]],
                "the metadata's": ["__cluster_metadata"],
            }.items():  # fmt: skip
                side.call(
                    f"{label} at {node}", "delete_topics", version, node, topic_names=asked, timeout=30_000,
                    topics=[{"name": name, "topic_id": None} for name in asked],
                )  # fmt: skip
            if version < 6:
                continue
            id_ = side.id_of(names[2])
            for label, topics in {
                "unknown id": [{"name": None, "topic_id": _UNKNOWN}], "zero id": [{"name": None, "topic_id": None}],
                "both": [{"name": names[2], "topic_id": id_}],
                "id twice": [{"name": None, "topic_id": id_}, {"name": None, "topic_id": id_}],
                "id and name": [{"name": None, "topic_id": id_}, {"name": names[2], "topic_id": None}],
                "id": [{"name": None, "topic_id": id_}],
            }.items():  # fmt: skip
                side.call(f"{label} at {node}", "delete_topics", version, node, topics=topics, timeout=30_000)


def create_partitions(sides: Sides, side: Side) -> None:
    """More, fewer, placed."""
    for node in NODES:
        for version in sides.versions("create_partitions", node):
            name = f"grows-{node}-{version}"
            side.create(name, [1, 2], [2, 1])
            for is_dry in (True, False):
                for label, topics in {
                    "more": [(name, 3, None)], "the same": [(name, 2, None)], "fewer": [(name, 1, None)],
                    "zero": [(name, 0, None)], "minus": [(name, -1, None)], "unknown": [("unknown", 3, None)],
                    "placed": [(name, 4, [(1, 2)])], "placed in vain": [(name, 6, [(1, 2)])],
                    "other length": [(name, 6, [(1,), (2,)])], "unknown broker": [(name, 6, [(8, 9), (1, 2)])],
                    "replica twice": [(name, 5, [(1, 1)])], "none placed": [(name, 5, [])],
                    "empty list": [(name, 5, [()])], "twice": [(name, 7, None), (name, 8, None)], "nothing": [],
                    "wrong": [("a b", 2, None)],
                }.items():  # fmt: skip
                    side.call(
                        f"{label} at {node}{', dry' * is_dry}", "create_partitions", version, node, timeout=30_000,
                        validate_only=is_dry,
                        topics=[
                            {
                                "name": topic, "count": count,
                                "assignments": None if placed is None else [{"broker_ids": ids} for ids in placed],
                            }
                            for topic, count, placed in topics
                        ],
                    )  # fmt: skip


def _resource(kind: int, name: str, *configs: tuple[str, int, str | None]) -> dict[str, Any]:
    return {
        "resource_type": kind, "resource_name": name,
        "configs": [
            {"name": key, "config_operation": operation, "value": value} for key, operation, value in configs
        ],
    }  # fmt: skip


def incremental_alter_configs(sides: Sides, side: Side) -> None:
    """Of topics, brokers and what else there is."""
    cases = {
        "set": lambda name: [_resource(_TOPIC, name, ("retention.ms", _SET, "5000"))],
        "set two": lambda name: [
            _resource(_TOPIC, name, ("retention.ms", _SET, "6000"), ("cleanup.policy", _APPEND, "compact"))
        ],
        "subtract": lambda name: [_resource(_TOPIC, name, ("cleanup.policy", _SUBTRACT, "delete"))],
        "append to no list": lambda name: [_resource(_TOPIC, name, ("retention.ms", _APPEND, "5000"))],
        "append what is there": lambda name: [_resource(_TOPIC, name, ("cleanup.policy", _APPEND, "compact"))],
        "subtract what is not there": lambda name: [
            _resource(_TOPIC, name, ("cleanup.policy", _SUBTRACT, "delete"))
        ],
        "delete": lambda name: [_resource(_TOPIC, name, ("retention.ms", _DELETE, None))],
        "delete what is not there": lambda name: [_resource(_TOPIC, name, ("retention.ms", _DELETE, None))],
        "delete with a value": lambda name: [_resource(_TOPIC, name, ("retention.ms", _DELETE, "1"))],
        "set to null": lambda name: [_resource(_TOPIC, name, ("retention.ms", _SET, None))],
        "wrong value": lambda name: [_resource(_TOPIC, name, ("retention.ms", _SET, "x"))],
        "empty value": lambda name: [_resource(_TOPIC, name, ("retention.ms", _SET, ""))],
        "unknown config": lambda name: [_resource(_TOPIC, name, ("no.such", _SET, "1"))],
        "unknown operation": lambda name: [_resource(_TOPIC, name, ("retention.ms", 9, "1"))],
        "config twice": lambda name: [
            _resource(_TOPIC, name, ("retention.ms", _SET, "1"), ("retention.ms", _SET, "2"))
        ],
        "resource twice": lambda name: [
            _resource(_TOPIC, name, ("retention.ms", _SET, "1")), _resource(_TOPIC, name, ("segment.ms", _SET, "2"))
        ],
        "unknown topic": lambda _: [_resource(_TOPIC, "unknown", ("retention.ms", _SET, "1"))],
        "wrong topic": lambda _: [_resource(_TOPIC, "a b", ("retention.ms", _SET, "1"))],
        "no topic": lambda _: [_resource(_TOPIC, "", ("retention.ms", _SET, "1"))],
        "no configs": lambda name: [_resource(_TOPIC, name)],
        "broker": lambda _: [_resource(_BROKER, "1", ("log.cleaner.threads", _SET, "2"))],
        "broker with a wrong value": lambda _: [_resource(_BROKER, "1", ("log.cleaner.threads", _SET, "x"))],
        "broker, unknown config": lambda _: [_resource(_BROKER, "1", ("no.such", _SET, "1"))],
        "broker, fixed config": lambda _: [_resource(_BROKER, "1", ("log.dirs", _SET, "/x"))],
        "broker's throttle": lambda _: [
            _resource(_BROKER, "1", ("leader.replication.throttled.rate", _SET, "100000"))
        ],
        "broker's throttle with a unit": lambda _: [
            _resource(_BROKER, "1", ("leader.replication.throttled.rate", _SET, "10MB"))
        ],
        "broker's throttle below zero": lambda _: [
            _resource(_BROKER, "1", ("leader.replication.throttled.rate", _SET, "-1"))
        ],
        "broker's throttle away": lambda _: [
            _resource(_BROKER, "1", ("leader.replication.throttled.rate", _DELETE, None))
        ],
        "unknown broker": lambda _: [_resource(_BROKER, "9", ("log.cleaner.threads", _SET, "2"))],
        "all brokers": lambda _: [_resource(_BROKER, "", ("log.cleaner.threads", _SET, "1"))],
        "no broker": lambda _: [_resource(_BROKER, "x", ("log.cleaner.threads", _SET, "1"))],
        "logger": lambda _: [_resource(_LOGGER, "1", ("root", _SET, "INFO"))],
        "metrics": lambda _: [_resource(_CLIENT_METRICS, "m", ("interval.ms", _SET, "1000"))],
        "metrics, wrong": lambda _: [_resource(_CLIENT_METRICS, "m", ("interval.ms", _SET, "1"))],
        "group": lambda _: [_resource(_GROUP, "g", ("consumer.session.timeout.ms", _SET, "50000"))],
        "unknown type": lambda _: [_resource(77, "x", ("a", _SET, "1"))],
        "several": lambda name: [
            _resource(_TOPIC, name, ("segment.ms", _SET, "1000")), _resource(_TOPIC, "unknown", ("a", _SET, "1")),
            _resource(_BROKER, "1", ("log.cleaner.threads", _DELETE, None)),
        ],
        "some are wrong": lambda name: [
            _resource(_TOPIC, name, ("segment.ms", _SET, "2000")), _resource(_BROKER, "9", ("a", _SET, "1")),
            _resource(_TOPIC, "unknown", ("retention.ms", _SET, None)),
        ],
        "nothing": lambda _: [],
    }  # fmt: skip
    for node in NODES:
        for version in (versions := sides.versions("incremental_alter_configs", node)):
            name = f"configured-{node}-{version}"
            side.create(name, [1])
            for label, made in cases.items():
                if version != versions[-1] and not LONG and label not in ("set", "wrong value", "several", "nothing"):
                    continue
                if label == "unknown operation" and (node == CONTROLLER or not LONG):
                    continue  # Kafka's controller resigns, which takes a while
                for is_dry in (True, False):
                    if is_dry and not LONG:
                        continue
                    side.call(
                        f"{label} at {node}{', dry' * is_dry}", "incremental_alter_configs", version, node,
                        resources=made(name), validate_only=is_dry,
                    )  # fmt: skip


def describe_configs(sides: Sides, side: Side) -> None:
    """Of topics and brokers, with synonyms and documentation, some and all."""
    side.create("described", [1], retention_ms=5000, cleanup_policy="compact")
    cases: dict[str, list[tuple[int, str, tuple[str, ...] | None]]] = {
        "topic": [(_TOPIC, "described", None)], "topic, some": [(_TOPIC, "described", ("retention.ms", "no.such"))],
        "topic, none": [(_TOPIC, "described", ())], "unknown topic": [(_TOPIC, "unknown", None)],
        "wrong topic": [(_TOPIC, "a b", None)], "no topic": [(_TOPIC, "", None)],
        "broker, some": [(_BROKER, "1", ("log.retention.hours", "log.cleaner.threads", "min.insync.replicas"))],
        "all brokers": [(_BROKER, "", None)], "other broker": [(_BROKER, "2", None)],
        "no broker": [(_BROKER, "x", None)],
        "unknown broker": [(_BROKER, "9", None)],
        "metrics": [(_CLIENT_METRICS, "m", None)], "group": [(_GROUP, "g", None)], "unknown type": [(77, "x", None)],
        "several": [(_TOPIC, "described", ("retention.ms",)), (_TOPIC, "unknown", None)],
        "twice": [(_TOPIC, "described", ("retention.ms",)), (_TOPIC, "described", ("segment.ms",))], "nothing": [],
    }  # fmt: skip
    for version in sides.versions("describe_configs"):
        for label, resources in cases.items():
            for extra in (False, True):
                side.call(
                    f"{label}{', all of it' * extra}", "describe_configs", version,
                    include_synonyms=extra, include_documentation=False,
                    resources=[
                        {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
                        for kind, name, keys in resources
                    ],
                )  # fmt: skip
    side.call(
        "with documentation", "describe_configs", 4, include_documentation=True,
        resources=[{"resource_type": _TOPIC, "resource_name": "described", "configuration_keys": ("retention.ms",)}],
    )  # fmt: skip


CASES = (create_topics, delete_topics, create_partitions, incremental_alter_configs, describe_configs)
