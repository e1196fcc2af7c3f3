"""Metadata, DescribeTopicPartitions, DescribeCluster and ApiVersions, asked of brokers and controllers."""

from __future__ import annotations

import struct
from dataclasses import replace
from uuid import UUID

from tests.server.matrix.sides import BROKERS, CONTROLLER, Side, Sides

_UNKNOWN = UUID(int=77)


def api_versions(sides: Sides, side: Side) -> None:
    """The whole answers in each version, also to one that is not known, and to none at all."""
    for node in (1, CONTROLLER):
        for version in range(5):
            side.call(
                f"of {node}", "api_versions", version, node, client_software_name="matrix", client_software_version="1"
            )
        for version in (99, -1):
            side.call_raw(f"api_versions v{version} of {node}", struct.pack(">hhihB", 18, version, 7, -1, 0), node)
        side.call(
            f"of {node}, name of software is wrong", "api_versions", 3, node, client_software_name="a b",
            client_software_version="1",
        )  # fmt: skip


def metadata(sides: Sides, side: Side) -> None:
    """By names, by ids, of all, of none, with operations, from each broker."""
    side.create("seen", [1, 2], [2, 3], [3, 1])
    for version in sides.versions("metadata"):
        for label, topics in {
            "one": [{"name": "seen"}], "none": [], "all": None, "unknown": [{"name": "unknown"}],
            "wrong name": [{"name": "a b"}], "twice": [{"name": "seen"}, {"name": "seen"}],
            "empty name": [{"name": ""}],
        }.items():  # fmt: skip
            if topics is None and version == 0:
                continue
            answer = side.ask(
                "metadata", version, topics=topics, allow_auto_topic_creation=True,
                include_topic_authorized_operations=True, include_cluster_authorized_operations=True,
            )  # fmt: skip
            if topics is None or (version == 0 and not topics):  # all of them, also those of other tests
                answer = replace(answer, topics=tuple(one for one in answer.topics if one.name == "seen"))
            side.keep(f"metadata v{version} {label}", answer)
    for version in (10, 11, 12, 13):
        ids = {"known": side.id_of("seen"), "unknown": _UNKNOWN, "zero": None}
        for label, id_ in ids.items():
            side.call(f"{label} id", "metadata", version, topics=[{"name": None, "topic_id": id_}])
        side.call("id and name", "metadata", version, topics=[{"name": "seen", "topic_id": side.id_of("seen")}])
    for broker in BROKERS:
        side.call(f"by {broker}", "metadata", 12, broker, topics=[{"name": "seen"}], allow_auto_topic_creation=False)


def describe_topic_partitions(sides: Sides, side: Side) -> None:
    """By pages, with and without a cursor."""
    side.create("pages", [1, 2], [2, 1], [3, 2], [1, 3])
    side.create("second", [2], [3])
    both = [{"name": "pages"}, {"name": "second"}]
    cases = {
        "both": {"topics": both}, "unknown": {"topics": [*both, {"name": "unknown"}]},
        "two": {"topics": both, "response_partition_limit": 2},
        "from 2": {"topics": both, "cursor": {"topic_name": "pages", "partition_index": 2}},
        "from 9": {"topics": both, "cursor": {"topic_name": "pages", "partition_index": 9}},
        "from −1": {"topics": both, "cursor": {"topic_name": "pages", "partition_index": -1}},
        "from a later topic": {"topics": both, "cursor": {"topic_name": "q", "partition_index": 0}},
        "limit 0": {"topics": both, "response_partition_limit": 0},
        "limit −1": {"topics": both, "response_partition_limit": -1},
        "twice": {"topics": [*both, *both]}, "wrong name": {"topics": [{"name": "a b"}]},
    }  # fmt: skip
    for version in sides.versions("describe_topic_partitions"):
        for label, values in cases.items():
            side.call(label, "describe_topic_partitions", version, **{"response_partition_limit": 2000, **values})


def describe_cluster(sides: Sides, side: Side) -> None:
    """Of brokers and of controllers, by both."""
    for node in (1, CONTROLLER):
        for version in sides.versions("describe_cluster", node):
            for label, values in {
                "plain": {}, "operations": {"include_cluster_authorized_operations": True},
                "controllers": {"endpoint_type": 2}, "other endpoints": {"endpoint_type": 3},
                "fenced": {"include_fenced_brokers": True},
                "fenced controllers": {"include_fenced_brokers": True, "endpoint_type": 2},
            }.items():  # fmt: skip
                side.call(f"{label} of {node}", "describe_cluster", version, node, **{"endpoint_type": 1, **values})


def unknown_requests(sides: Sides, side: Side) -> None:
    """APIs and versions that no node has, and bytes that are no request."""
    head = struct.Struct(">hhih")
    for node in (1, CONTROLLER):
        for label, frame in {
            "unknown API": head.pack(999, 0, 7, -1), "unknown version": head.pack(3, 99, 7, -1),
            "version −1": head.pack(3, -1, 7, -1), "cut off": head.pack(3, 4, 7, -1) + b"\0\0\0\x09",
            "no header": b"\0", "left over": head.pack(3, 4, 7, -1) + b"\0\0\0\0\0" + b"left over",
            "a controller's": head.pack(63, 0, 7, -1) + b"\0" * 12,
        }.items():  # fmt: skip
            wire = side.new_wire(node)
            answer = wire.exchange(frame)
            side.keep(f"{label} of {node}", "closed" if answer is None else "answered")
            wire.close()


CASES = (api_versions, metadata, describe_topic_partitions, describe_cluster, unknown_requests)
