"""Reassignments, elections, the quorum, log directories and broker registrations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.server.matrix.sides import CONTROLLER, NODES, Side, Sides

_PREFERRED, _UNCLEAN = 0, 1


def _moved(topic: str, index: int, replicas: Sequence[int] | None) -> dict[str, Any]:
    return {"name": topic, "partitions": [{"partition_index": index, "replicas": replicas}]}


def reassignments(sides: Sides, side: Side) -> None:
    """What is moved, cancelled, listed, and what can't be."""
    for node in NODES:
        for version in sides.versions("alter_partition_reassignments", node):
            topic = f"moves-{node}-{version}"
            side.create(topic, [1, 2], [2, 1])
            for label, topics in {
                "unknown topic": [_moved("unknown", 0, (1,))], "unknown partition": [_moved(topic, 9, (1,))],
                "unknown broker": [_moved(topic, 0, (1, 9))], "nobody": [_moved(topic, 0, ())],
                "twice the same": [_moved(topic, 0, (1, 1))], "minus": [_moved(topic, 0, (-1,))],
                "nothing to cancel": [_moved(topic, 0, None)], "as it is": [_moved(topic, 0, (1, 2))],
                "other order": [_moved(topic, 1, (1, 2))], "nothing": [], "wrong name": [_moved("a b", 0, (1,))],
                "fewer": [_moved(topic, 1, (2,))],
                "two": [_moved(topic, 0, (1, 2)), _moved("unknown", 0, (1,))],
            }.items():  # fmt: skip
                side.call(
                    f"{label} at {node}", "alter_partition_reassignments", version, node, topics=topics,
                    timeout=30_000,
                )  # fmt: skip
            side.call(
                f"other length at {node}", "alter_partition_reassignments", version, node, timeout=30_000,
                allow_replication_factor_change=False, topics=[_moved(topic, 0, (1, 2, 3))],
            )  # fmt: skip
            side.call(
                f"moved at {node}", "alter_partition_reassignments", version, node, timeout=30_000,
                topics=[_moved(topic, 0, (2, 3))],
            )  # fmt: skip
            side.await_replicas(topic, 0, (2, 3))
            for label, topics in {"all": None, "one": [(topic, (0, 1))], "unknown": [("unknown", (0,))]}.items():
                asked = topics and [{"name": name, "partition_indexes": indexes} for name, indexes in topics]
                side.call(
                    f"{label} at {node} v{version}", "list_partition_reassignments", 0, node, timeout=30_000,
                    topics=asked,
                )  # fmt: skip
            side.call(f"moved {version} at {node}", "metadata", 12, topics=[{"name": topic}])


def elections(sides: Sides, side: Side) -> None:
    """Of preferred and of unclean leaders."""
    for node in NODES:
        for version in sides.versions("elect_leaders", node):
            topic = f"elects-{node}-{version}"
            side.create(topic, [1, 2], [2, 1])
            for label, asked in {
                "unknown": [("unknown", (0,))], "unknown partition": [(topic, (9,))], "not needed": [(topic, (0, 1))],
                "nothing": [], "wrong": [("a b", (0,))], "twice": [(topic, (0, 0))],
            }.items():  # fmt: skip
                for kind in (_PREFERRED, _UNCLEAN) if version else (_PREFERRED,):
                    side.call(
                        f"{label} at {node}, type {kind}", "elect_leaders", version, node, election_type=kind,
                        timeout=30_000, topic_partitions=[{"topic": name, "partitions": ids} for name, ids in asked],
                    )  # fmt: skip
            side.call(
                f"other type at {node}", "elect_leaders", max(version, 1), node, election_type=7, timeout=30_000,
                topic_partitions=[{"topic": topic, "partitions": (0,)}],
            ) if version == 2 else None  # fmt: skip
            side.ask("alter_partition_reassignments", 0, topics=[_moved(topic, 0, (2, 1))], timeout=30_000)
            side.call(
                f"of a new order at {node}", "elect_leaders", version, node, election_type=_PREFERRED, timeout=30_000,
                topic_partitions=[{"topic": topic, "partitions": (0,)}],
            )  # fmt: skip
            side.await_leaders(topic, [2, 2])


def quorum(sides: Sides, side: Side) -> None:
    """As brokers and controllers describe it."""
    for node in (1, CONTROLLER):
        for version in sides.versions("describe_quorum", node):
            for label, topics in {
                "metadata": [("__cluster_metadata", (0,))], "other partition": [("__cluster_metadata", (1,))],
                "other topic": [("unknown", (0,))], "nothing": [],
            }.items():  # fmt: skip
                asked = [
                    {"topic_name": name, "partitions": [{"partition_index": one} for one in ids]}
                    for name, ids in topics
                ]
                side.call(f"{label} at {node}", "describe_quorum", version, node, topics=asked)


def log_directories(sides: Sides, side: Side) -> None:
    """Of some partitions."""
    side.create("in-directories", [1, 2], [2, 1])
    for version in sides.versions("describe_log_dirs"):
        for label, topics in {
            "one": [("in-directories", (0,))], "unknown": [("unknown", (0,))], "none": [],
        }.items():  # fmt: skip
            side.call(
                label, "describe_log_dirs", version,
                topics=[{"topic": name, "partitions": indexes} for name, indexes in topics],
            )  # fmt: skip


def unregistrations(sides: Sides, side: Side) -> None:
    """Of brokers that there are none of."""
    for node in (1, CONTROLLER):
        for version in sides.versions("unregister_broker", node):
            for broker in (9, -1):
                side.call(f"{broker} at {node}", "unregister_broker", version, node, broker_id=broker)


CASES = (reassignments, elections, quorum, log_directories, unregistrations)
