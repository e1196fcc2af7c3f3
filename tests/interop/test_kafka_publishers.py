"""What our broker answers its requests from, beside Kafka 4.4's own classes: on random ACLs, quotas and images."""

from __future__ import annotations

import base64
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.publisher.authorizer import is_in_range
from kraftlake.publisher.client_quotas import ClientQuotas
from kraftlake.publisher.cluster_view import cluster_of
from kraftlake.publisher.credentials import describe_scram_credentials
from kraftlake.publisher.metadata_cache import MetadataCache
from kraftlake.publisher.metadata_responses import Node
from kraftlake.publisher.quota_filter import FilterComponent, Match, QuotaFilter, describe_client_quotas
from kraftlake.records import metadata_records as r
from kraftlake.records.serde import ApiMessageAndVersion, encode_value
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.inet_address import AddressRange, inet_address
from tests.histories import TOPIC_NAMES, USERS, histories
from tests.interop.authorized import decisions, kafkas_decisions
from tests.interop.kafka_publishers import ask_broker
from tests.publisher.updates import cluster

pytestmark = pytest.mark.spark

names = st.sampled_from(["a", "ab", "a", "ab", "ac", "abc", "*", "!", "föö"])
principals = st.sampled_from(["User:alice", "User:alice", "User:*", "User:bob", "User:", "Group:alice", "User:a:b"])
ranges = ["10.0.0.0/8", "10.0.0.5/30", "192.168.0.0/16", "2001:db8::/32", "10.0.0.0/0", "10.0.0.0/33", "nonsense/8"]
hosts = ["10.0.0.7", "10.0.0.5", "192.168.1.1", "2001:db8:0:0:0:0:0:5"]
acls = st.builds(
    StandardAcl,
    resource_type=st.integers(2, 3),
    resource_name=names,
    pattern_type=st.sampled_from([3, 4]),
    principal=principals,
    host=st.just("*") | st.sampled_from([*hosts, *ranges]),
    operation=st.integers(2, 12),
    permission_type=st.sampled_from([2, 3, 3, 3]),
)
requests = st.fixed_dictionaries(
    {
        "principal": st.sampled_from(["User:alice", "User:alice", "User:bob", "User:root", "Group:alice", "User:a:b"]),
        "host": st.sampled_from(hosts),
        "operation": st.sampled_from([8, 10, 8, 10, *range(3, 13)]),
        "resourceType": st.integers(2, 3),
        "resourceName": names,
    }
)


@given(st.sets(acls, min_size=1, max_size=8), st.lists(requests, min_size=20, max_size=60), st.booleans())
def test_decisions_and_the_acls_that_make_them_are_kafkas(
    rules: set[StandardAcl], asked: list[dict[str, Any]], everyone: bool
) -> None:
    numbered = list(rules)
    assert decisions(numbered, asked, everyone=everyone) == kafkas_decisions(numbered, asked, everyone=everyone)


octets = st.sampled_from(["0", "10", "010", "255", "256", "1", "00001", "", "٣", "0x1"])
ipv4_texts = st.lists(octets, min_size=1, max_size=5).map(".".join)
groups = st.sampled_from(["0", "fe80", "2001", "db8", "", "", "12345", "000ff", "ffff", "10.0.0.1", "g", "1.2.3.256"])
ipv6_texts = st.builds(
    lambda parts, zone, bracketed: f"[{':'.join(parts)}{zone}]" if bracketed else ":".join(parts) + zone,
    st.lists(groups, min_size=2, max_size=9),
    st.sampled_from(["", "", "", "%1", "%", "%4294967296"]),
    st.booleans(),
)
prefix_lengths = st.sampled_from(
    ["0", "1", "8", "08", "008", "24", "30", "32", "33", "64", "127", "128", "129", "+8", "-0", "-1", "", " 8", "٨",
     "8/8", "255.0.0.0", "99999999999"]
)  # fmt: skip
range_texts = st.builds(
    "{}/{}".format, st.sampled_from(["10.0.0.0", "fe80::", "[fe80::]"]) | ipv4_texts, prefix_lengths
)
range_texts |= st.builds("{}/{}".format, ipv6_texts, prefix_lengths)
literals = st.sampled_from(
    ["10.0.0.1", "0.0.0.0", "1.2.3.4", "fe80:0:0:0:0:0:0:1", "0:0:0:0:0:0:0:0", "2001:db8::1", "::"]
)


@given(st.lists(st.tuples(literals, range_texts), min_size=10, max_size=40))
def test_address_ranges_are_kafkas(asked: list[tuple[str, str]]) -> None:
    theirs = ask_broker("ranges", {"ranges": [{"host": host, "pattern": pattern} for host, pattern in asked]})

    def valid(pattern: str) -> bool:
        try:
            AddressRange.parse(pattern)
        except ValueError:
            return False
        return True

    ours = [[valid(pattern), is_in_range(host, pattern)] for host, pattern in asked]
    assert dict(zip(asked, ours, strict=True)) == dict(zip(asked, theirs, strict=True))


@given(st.lists(ipv4_texts | ipv6_texts, min_size=10, max_size=40))
def test_addresses_are_read_as_java_reads_them(texts: list[str]) -> None:
    """What is neither an IPv4 address nor has a colon is left out: Java asks the name service for it."""
    texts = [text for text in texts if ":" in text or inet_address(text) is not None]
    theirs = ask_broker("addresses", {"texts": texts})
    ours = [address and address.hex() for address in map(inet_address, texts)]
    assert dict(zip(texts, ours, strict=True)) == dict(zip(texts, theirs, strict=True))


entity_names = st.sampled_from(["alice", "bob", "ü%", None])
quota_changes = st.fixed_dictionaries(
    {"value": st.none() | st.integers(1, 1000)}, optional={"user": entity_names, "client-id": entity_names}
).filter(lambda change: len(change) > 1)
quota_questions = st.tuples(
    st.sampled_from(["alice", "bob", "carol", "ü%"]), st.sampled_from(["alice", "bob", "x", ""])
)


@given(st.lists(quota_changes | quota_questions, min_size=1, max_size=40))
def test_quotas_are_kafkas(steps: list[dict[str, Any] | tuple[str, str]]) -> None:
    steps = [*steps, *((user, client) for user in ("alice", "bob", "carol") for client in ("alice", "x", ""))]
    theirs = ask_broker(
        "quotas", {"steps": [{"ask": list(step)} if isinstance(step, tuple) else step for step in steps]}
    )
    quotas, ours = ClientQuotas(), []
    made = cluster(parts=(quotas,))
    for step in steps:
        if isinstance(step, tuple):
            ours.append(quotas.limit("producer_byte_rate", user=step[0], client_id=step[1]))
            continue
        entity = tuple(
            r.EntityData(entity_type=kind, entity_name=step[kind]) for kind in ("client-id", "user") if kind in step
        )
        value = step["value"]
        made.change(
            r.ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=float(value or 0), remove=value is None)
        )
    assert ours == theirs


LISTENERS = ("PLAINTEXT", "SASL", "EXTERNAL")
components = st.tuples(
    st.sampled_from(["user", "client-id", "ip", "host"]), st.integers(0, 2), st.sampled_from([None, *USERS])
)
filters = st.fixed_dictionaries({"strict": st.booleans(), "components": st.lists(components, max_size=3)})


@given(
    histories(),
    st.lists(filters, max_size=6),
    st.integers(0, 3),
    st.integers(1, 6),
    st.lists(st.sampled_from([*USERS, "nobody"]), max_size=4),
)
def test_a_cache_answers_as_kafkas(
    history: list[ApiMessageAndVersion], asked: list[dict[str, Any]], start: int, limit: int, users: list[str]
) -> None:
    delta = MetadataDelta(MetadataImage.EMPTY)
    for record in history:
        delta.replay(record.message)
    image = delta.apply(MetadataProvenance(offset=len(history), epoch=1, timestamp=1))
    written = [base64.b64encode(encode_value(m.message, m.version)).decode() for m in image.write()]
    topics = [*TOPIC_NAMES, "nobody", "no/body"]
    theirs = ask_broker(
        "cache",
        {
            "records": written, "offset": image.offset, "topics": topics,
            "listeners": LISTENERS, "start": start, "limit": limit, "filters": asked, "users": users,
        },
    )  # fmt: skip
    cache = MetadataCache(1, kraft_version=lambda: 1)
    cache.update(image)
    assert ours_of(cache, topics, asked, start, limit, users) == in_order(theirs)


def in_order(answers: dict[str, Any]) -> dict[str, Any]:
    """Kafka's answers with what has no order put in one."""
    answers["names"].sort()
    in_any_order(answers["cluster"])
    for listener in answers["listeners"].values():
        for nodes in (listener["alive"], listener["all"]):
            nodes.sort(key=lambda node: node["id"])
        for topics in listener["metadata"]:
            for topic in topics.values():
                topic["partitions"].sort(key=lambda partition: partition["partition"])
    answers["quotas"] = [found if found == "refused" else sorted(found, key=repr_of) for found in answers["quotas"]]
    return answers


def in_any_order(cluster: dict[str, Any]) -> None:
    """A client's cluster has no order: its nodes come from hash maps, and so do those of a broker's listeners."""
    for partition in cluster["partitions"]:
        for nodes in (partition["replicas"], partition["isr"], partition["offline"]):
            nodes.sort(key=repr)
    for everything in (cluster["nodes"], cluster["partitions"], cluster["internal"]):
        everything.sort(key=repr)


def of_cluster(cache: MetadataCache) -> dict[str, Any]:
    cluster = cluster_of(cache.image, "cluster", Random())
    assert cluster.cluster_id == "cluster"
    made = {
        "nodes": [of_node(node) for node in cluster.nodes],
        "partitions": [
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "leader": of_node(partition.leader),
                "replicas": [of_node(node) for node in partition.replicas],
                "isr": [of_node(node) for node in partition.in_sync_replicas],
                "offline": [of_node(node) for node in partition.offline_replicas],
            }
            for partition in cluster.partitions
        ],
        "internal": sorted(cluster.internal_topics),
        "controllerIsFenced": cluster.controller.is_fenced,
        "hasController": cluster.controller != Node.NO_NODE,
    }
    in_any_order(made)
    return made


def repr_of(entry: dict[str, Any]) -> str:
    return repr(sorted(entry["entity"].items()))


def ours_of(  # noqa: PLR0917
    cache: MetadataCache, topics: list[str], asked: list[dict[str, Any]], start: int, limit: int, users: list[str]
) -> dict[str, Any]:
    features = cache.features()
    return {
        "cluster": of_cluster(cache),
        "features": {"levels": dict(features.levels), "epoch": features.epoch},
        "listeners": {name: of_listener(cache, name, topics, start, limit) for name in LISTENERS},
        "topics": [of_topic(cache, topic) for topic in topics],
        "names": sorted(cache.all_topics()),
        "quotas": [of_filter(cache, wanted) for wanted in asked],
        "scram": {
            answer.user: {
                "error": int(answer.error),
                "iterations": {str(mechanism): count for mechanism, count in answer.iterations.items()},
            }
            for answer in describe_scram_credentials(cache.image.scram, users)
        },
    }


def of_topic(cache: MetadataCache, topic: str) -> list[Any]:
    state = cache.partition(topic, 0)
    return [
        cache.contains(topic),
        None if state is None else [state.leader, state.leader_epoch, state.partition_epoch],
    ]


def of_node(node: Node | None) -> dict[str, Any] | None:
    if node is None:
        return None
    return {"id": node.id, "host": node.host, "port": node.port, "rack": node.rack, "fenced": node.is_fenced}


def of_listener(cache: MetadataCache, listener: str, topics: list[str], start: int, limit: int) -> dict[str, Any]:
    described = cache.describe_topics(topics, listener, start_index=lambda _: start, limit=limit)
    cursor = described.next_cursor
    return {
        "alive": [of_node(node) for node in cache.alive_broker_nodes(listener)],
        "all": [of_node(node) for node in cache.broker_nodes(listener)],
        "metadata": [
            {
                topic.name: {
                    "error": int(topic.error),
                    "id": str(topic.topic_id),
                    "internal": topic.is_internal,
                    "partitions": [
                        {
                            "error": int(p.error), "partition": p.partition_index, "leader": p.leader_id,
                            "epoch": p.leader_epoch, "replicas": list(p.replica_nodes), "isr": list(p.isr_nodes),
                            "offline": list(p.offline_replicas),
                        }
                        for p in topic.partitions
                    ],
                }
                for topic in cache.topic_metadata(
                    topics,
                    listener,
                    error_unavailable_endpoints=bool(number & 1),
                    error_unavailable_listeners=bool(number & 2),
                )
            }
            for number in range(4)
        ],
        "described": {
            "topics": [
                {
                    "name": topic.name,
                    "error": int(topic.error),
                    "id": str(topic.topic_id),
                    "partitions": [
                        {
                            "partition": p.partition_index, "leader": p.leader_id, "epoch": p.leader_epoch,
                            "replicas": list(p.replica_nodes), "isr": list(p.isr_nodes),
                            "offline": list(p.offline_replicas), "elr": list(p.eligible_leader_replicas),
                            "lastKnownElr": list(p.last_known_elr),
                        }
                        for p in topic.partitions
                    ],
                }
                for topic in described.topics
            ],
            "cursor": None if cursor is None else [cursor.topic_name, cursor.partition_index],
        },
        "endpoints": [
            of_node(cache.partition_leader_endpoint(topic, number, listener))
            for topic in topics
            for number in range(3)
        ],
    }  # fmt: skip


def of_filter(cache: MetadataCache, wanted: dict[str, Any]) -> Any:
    parts = tuple(FilterComponent(kind, Match(match), name) for kind, match, name in wanted["components"])
    try:
        found = describe_client_quotas(cache.image.client_quotas, QuotaFilter(parts, wanted["strict"]))
    except UsageError:
        return "refused"
    entries = [{"entity": dict(e.entries), "values": dict(values.items())} for e, values in found.items()]
    return sorted(entries, key=repr_of)
