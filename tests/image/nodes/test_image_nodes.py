"""The nodes of the samples' checkpoints beside what Kafka's own metadata shell printed of them."""

from __future__ import annotations

import attrs
import pytest
from rpds import HashTrieMap

from kraftlake.api import open_source
from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotaImage, ClientQuotasImage
from kraftlake.image.configurations_image import ConfigResource, ConfigurationImage, ConfigurationsImage
from kraftlake.image.metadata_image import MetadataImage, image_to_json
from kraftlake.image.nodes.image_nodes import root_node
from kraftlake.image.nodes.node import Directory, Leaf, Subject
from kraftlake.image.nodes.paths import FoundNode, matching
from tests.image.nodes import recorded


def root_of(image: MetadataImage, *, show_secrets: bool = True) -> Directory:
    return root_node(image, version="1.2", show_secrets=show_secrets)


def the_one(root: Directory, pattern: str) -> FoundNode:
    (found,) = matching(root, pattern)
    return found


@pytest.mark.parametrize("sample", recorded.NAMES)
def test_every_path_that_kafka_prints_is_found(sample: str) -> None:
    root = root_of(open_source(recorded.checkpoint(sample)).image())
    ours = {found.path for found in FoundNode((), root).below()}
    kafka = recorded.found(sample)
    assert len(kafka) > 1_000
    assert set(kafka) <= ours
    for path in kafka:
        assert the_one(root, path).path == path


@pytest.mark.parametrize("sample", recorded.NAMES)
def test_what_kafka_shows_of_a_path_is_shown_in_the_same_words(sample: str) -> None:
    root = root_of(open_source(recorded.checkpoint(sample)).image())
    kafka = recorded.texts(sample)
    # Kafka's shell counts the records of the file there, not the offsets of the log that they stand for.
    end_offset = int(recorded.checkpoint(sample).name[:20])
    assert not kafka.pop("/image/provenance").startswith(f"offset {end_offset - 1},")
    assert len(kafka) > 800
    for path, text in kafka.items():
        leaf = the_one(root, path).node
        assert isinstance(leaf, Leaf), path
        assert leaf.text == text, path


def test_kafkas_shell_has_no_more_than_ours() -> None:
    """What ours has beyond what was asked of Kafka's: quotas, whose defaults end its `find`, and the shell itself."""
    root = root_of(open_source(recorded.checkpoint("kafka-4.4")).image())
    more = {found.path for found in FoundNode((), root).below()} - set(recorded.found("kafka-4.4"))
    rest = {path for path in more if not path.startswith("/image/clientQuotas")}
    assert rest == {"/", "/image", "/local", "/local/commitId", "/local/version"}
    assert the_one(root, "/local/version").node.value == "1.2"


@pytest.mark.parametrize("path", ["/image/scram/*/*", "/image/delegationToken/*", "/image/configs/*/*"])
def test_secrets_are_redacted_as_in_the_images_json(path: str) -> None:
    image = open_source(recorded.checkpoint("kafka-4.4")).image()
    shown = [found.node for found in matching(root_of(image), path)]
    hidden = [found.node for found in matching(root_of(image, show_secrets=False), path)]
    assert len(shown) == len(hidden) > 0
    form = image_to_json(image)
    if "configs" not in path:
        key = "scram" if "scram" in path else "delegationTokens"
        entries = (
            form[key].values() if key == "delegationTokens" else [u for m in form[key].values() for u in m.values()]
        )
        assert sorted(map(str, entries)) == sorted(str(leaf.value) for leaf in hidden)
        for one, two in zip(shown, hidden, strict=True):
            assert isinstance(one, Leaf)
            assert isinstance(two, Leaf)
            assert "(redacted)" in two.text
            assert two.text != one.text


def test_a_config_that_may_be_a_secret_is_redacted() -> None:
    resource = ConfigResource(4, "1")
    configs = ConfigurationImage(
        resource=resource, data=HashTrieMap({"ssl.key.password": "hunter2", "log.retention.ms": "1"})
    )
    image = attrs.evolve(
        MetadataImage.EMPTY, configs=ConfigurationsImage(resource_data=HashTrieMap({resource: configs}))
    )
    path = "/image/configs/BROKER:1/ssl.key.password"
    assert the_one(root_of(image), path).node.value == "hunter2"
    assert the_one(root_of(image, show_secrets=False), path).node.value == "(redacted)"
    assert the_one(root_of(image, show_secrets=False), "/image/configs/BROKER:1/log.retention.ms").node.value == "1"


@pytest.mark.parametrize(
    ("entries", "name"),
    [
        ((("user", "alice"),), "user(alice)"),
        ((("client-id", "c1"), ("user", "alice")), "clientId(c1)_user(alice)"),
        ((("ip", "10.0.0.1"),), "ip(10.0.0.1)"),
        ((("user", "a(b)\\c"),), "user(a\\(b\\)\\\\c)"),
        ((("user", None),), "user"),
        ((("client-id", None), ("user", "alice")), "clientId_user(alice)"),
        ((("client-id", None), ("user", None)), "clientId_user"),
        ((("group", "g"),), "group(g)"),
    ],
)
def test_the_entities_of_quotas(entries: tuple[tuple[str, str | None], ...], name: str) -> None:
    entity = ClientQuotaEntity(entries)
    quotas = ClientQuotasImage(
        entities=HashTrieMap({entity: ClientQuotaImage(HashTrieMap({"producer_byte_rate": 1e7}))})
    )
    root = root_of(attrs.evolve(MetadataImage.EMPTY, client_quotas=quotas))
    (found,) = matching(root, "/image/clientQuotas/*")
    assert found.names[-1] == name
    assert found.node.subject == Subject("entity", entity)
    (leaf,) = found.children()
    assert isinstance(leaf.node, Leaf)
    assert (leaf.node.text, leaf.node.value) == ("1.0E7", 1e7)
    assert leaf.node.subject == Subject("quota", (entity, "producer_byte_rate"))


def test_an_empty_image_has_its_directories() -> None:
    root = root_of(MetadataImage.EMPTY)
    assert {found.path: found.node.text for found in FoundNode((), root).below() if isinstance(found.node, Leaf)} == {
        "/image/features/metadataVersion": "Optional.empty",
        "/image/producerIds/nextProducerId": "-1",
        "/image/provenance": "offset -1, epoch -1, time unknown",
        "/local/commitId": "unknown",
        "/local/version": "1.2",
    }
    assert the_one(root, "/image/scram/SCRAM-SHA-512").node.value == {}


def test_numbers_are_listed_by_size_and_found_as_they_are_listed_alone() -> None:
    root = root_of(open_source(recorded.checkpoint("kafka-4.4")).image())
    names = next(
        found.node.names
        for found in matching(root, "/image/topics/byName/*")
        if isinstance(found.node, Directory) and len(found.node.names) > 12
    )
    assert names == (*map(str, range(len(names) - 2)), "id", "name")
    for name in ("01", "+1", " 1", "-1", "1.0", "٣", "99999999999999999999"):
        assert not [*matching(root, f"/image/cluster/brokers/{name}")]


def test_the_value_of_a_directory_has_that_of_all_below() -> None:
    image = open_source(recorded.checkpoint("crash-torn")).image()
    root = root_of(image)
    form = image_to_json(image, show_secrets=True)
    assert the_one(root, "/image/cluster").node.value == {
        "brokers": form["brokers"], "controllers": form["controllers"]
    }  # fmt: skip
    name = next(iter(form["topics"]))
    assert the_one(root, f"/image/topics/byName/{name}").node.value == {
        **form["topics"][name]["partitions"], "id": form["topics"][name]["id"], "name": name
    }  # fmt: skip
