"""Resources of Strimzi, read and written."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given

from kraftlake.diagnosis.drift.comparison import compare
from kraftlake.diagnosis.drift.declared import read_declared
from kraftlake.diagnosis.drift.description import ClusterDescription, describe
from kraftlake.diagnosis.drift.fields import Fields
from kraftlake.diagnosis.drift.strimzi import StrimziReader
from kraftlake.diagnosis.drift.strimzi_writer import kubernetes_name, strimzi_resources
from kraftlake.runtime.errors import CorruptDataError
from tests.diagnosis.drift.test_comparison import cluster
from tests.diagnosis.trial.clusters import image_of
from tests.histories import histories

TOPIC = """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaTopic
metadata: {name: my-orders, labels: {strimzi.io/cluster: kafka}}
spec: {topicName: orders, partitions: 3, replicas: 2, config: {retention.ms: 1}}
"""
USER = """
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata: {name: alice}
spec:
  authentication: {type: scram-sha-512}
  authorization:
    type: simple
    acls:
      - {resource: {type: topic, name: orders, patternType: literal}, operations: [Read]}
  quotas: {producerByteRate: 1}
"""


def described(*texts: str) -> ClusterDescription:
    reader = StrimziReader()
    for text in texts:
        reader.add(Fields.of("f", yaml.safe_load(text)))
    return reader.description()


def test_a_topic_and_a_user_are_what_a_cluster_has() -> None:
    found = compare(describe(cluster(5)), described(TOPIC, USER))
    assert found.is_empty(), [one.change.describe() for one in found.changes]


def test_topics_alone_say_nothing_of_users() -> None:
    assert compare(describe(cluster(5)), described(TOPIC)).is_empty()
    other = compare(describe(image_of()), described(TOPIC))
    assert [one.path for one in other.changes] == ["topic/orders", "config/TOPIC/orders"]


def test_a_user_with_a_certificate_is_named_by_it() -> None:
    text = (
        USER.replace("scram-sha-512", "tls").replace("literal", "prefix").replace("[Read]", "[Read, DescribeConfigs]")
    )
    found = described(text)
    assert [acl.principal for acl in found.acls] == ["User:CN=alice"] * 2
    assert sorted((acl.operation, acl.pattern_type) for acl in found.acls) == [(3, 4), (10, 4)]
    assert not found.scram


def test_a_list_of_kubectl_and_other_kinds_are_read(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    items = [yaml.safe_load(TOPIC), {"apiVersion": "v1", "kind": "Secret"}]
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}) + f"---\n{USER}")
    assert compare(describe(cluster(5)), read_declared(str(file))).is_empty()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TOPIC.replace("v1beta2", "v1alpha1"), "is read in kafka.strimzi.io/v1beta2 and kafka.strimzi.io/v1"),
        (TOPIC.replace("partitions: 3", "partitions: three"), "has to be a whole number"),
        (USER.replace("[Read]", "[Reed]"), "did you mean READ?"),
        (USER.replace("literal", "regex"), "has to be literal or prefix"),
        (USER.replace("name: alice", "x: y"), "metadata.name is nothing"),
    ],
)
def test_anything_else_is_an_error_with_its_place(text: str, said: str) -> None:
    with pytest.raises(CorruptDataError, match=said.replace(".", r"\.").replace("?", r"\?")):
        described(text)


def test_the_same_topic_twice_is_an_error() -> None:
    with pytest.raises(CorruptDataError, match="a second time"):
        described(TOPIC, TOPIC)


@given(histories())
def test_what_is_written_reads_back_but_for_what_is_left_out(history) -> None:
    whole = describe(image_of(*(record.message for record in history)))
    made = strimzi_resources(whole, "kafka", show_secrets=True)
    read = described(*(yaml.safe_dump(one) for one in made.documents))
    found = compare(whole, read, internal=True)
    for one in found.changes:  # may assert nothing: a history may have topics alone
        fields = {f"{one.path}/{field.field}" for field in one.change.fields}
        assert one.path in made.left_out or fields <= {*made.left_out}, one.change.describe()


def test_names_that_kubernetes_refuses_are_replaced() -> None:
    assert kubernetes_name("orders") == "orders"
    made = {kubernetes_name(name) for name in ("Orders", "orders_", "__", "ORDERS", "x" * 249)}
    assert len(made) == 5
    assert all(len(name) < 254 and name == name.lower() for name in made)
