"""The nodes of an image: `/image/topics/byName/foo/0`, `/image/cluster/brokers/1`, … as in Kafka's metadata shell.

Source: org.apache.kafka.image.node. Two names differ: where Kafka leaves the default user, client id or IP out of the
name of a quota's entity, and its `find` ends with an error, the entity has the bare type here (`user`, `clientId`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotaImage
from kraftlake.image.configurations_image import ConfigResource, ConfigurationImage
from kraftlake.image.features_image import METADATA_VERSION, FeaturesImage
from kraftlake.image.json_form import (
    acl_json,
    broker_json,
    controller_json,
    delegation_token_json,
    metadata_version_json,
    partition_json,
    redacted_scram_json,
    redacted_token_json,
    scram_json,
)
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.nodes import kafka_text
from kraftlake.image.nodes.node import Directory, Leaf, Node, Subject, fixed, number
from kraftlake.image.scram_image import ScramCredentialData, ScramImage, mechanism_name
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.redaction import redact_config
from kraftlake.records.uuid import Uuid

K = TypeVar("K")
V = TypeVar("V")

_SCRAM_MECHANISMS: Final = (1, 2)
"""The mechanisms of Kafka: their directories exist without users, too."""
_FINALIZED: Final = "finalized_"
_ENTITY_TYPES: Final = {"client-id": "clientId", "ip": "ip", "user": "user"}


def root_node(image: MetadataImage, *, version: str, show_secrets: bool = False) -> Directory:
    """The root: `/image`, and `/local` with the `version` of the shell that shows it.

    Secrets (see `records.redaction`) are `(redacted)` unless `show_secrets`.
    """
    local = {"commitId": _text(None, "unknown"), "version": _text(None, version)}
    return fixed(Subject("image"), {"image": _image(image, show_secrets), "local": fixed(None, local)})


def _image(image: MetadataImage, show_secrets: bool) -> Directory:
    children: dict[str, Node] = {
        "acls": fixed(Subject("acls"), {"byId": _acls(image)}),
        "clientQuotas": _client_quotas(image),
        "cluster": fixed(Subject("cluster"), {"brokers": _brokers(image), "controllers": _controllers(image)}),
        "configs": _configs(image, show_secrets),
        "delegationToken": _delegation_tokens(image, show_secrets),
        "features": _features(image.features),
        "producerIds": _producer_ids(image),
        "provenance": Leaf(None, lambda: kafka_text.provenance_text(image.provenance), image.provenance.to_json),
        "scram": _scram(image.scram, show_secrets),
        "topics": _topics(image.topics),
    }
    return fixed(Subject("image"), children)


def _keyed(
    subject: Subject,
    entries: Mapping[K, V],
    node: Callable[[K, V], Node],
    *,
    key_of: Callable[[str], K | None],
    name_of: Callable[[K], str] = str,
    keys: Callable[[], Iterable[K]] | None = None,
) -> Directory:
    """A directory with a child for each entry of a map; `keys` returns them in order, by default that of names."""

    def names() -> Iterable[str]:
        return sorted(map(name_of, entries)) if keys is None else map(name_of, keys())

    def child(name: str) -> Node | None:
        key = key_of(name)
        entry = None if key is None else entries.get(key)
        return None if key is None or entry is None else node(key, entry)

    return Directory(subject, names, child)


def _by_number(
    subject: Subject, kind: str, entries: Mapping[int, V], text: Callable[[V], str], form: Callable[[V], Any]
) -> Directory:
    def leaf(id_: int, entry: V) -> Leaf:
        return Leaf(Subject(kind, id_), lambda: text(entry), lambda: form(entry))

    return _keyed(subject, entries, leaf, key_of=number, keys=lambda: sorted(entries))


def _brokers(image: MetadataImage) -> Directory:
    return _by_number(Subject("brokers"), "broker", image.cluster.brokers, kafka_text.text_of, broker_json)


def _controllers(image: MetadataImage) -> Directory:
    registrations = image.cluster.controllers
    return _by_number(Subject("controllers"), "controller", registrations, kafka_text.text_of, controller_json)


def _acls(image: MetadataImage) -> Directory:
    return _keyed(
        Subject("acls"),
        image.acls.acls,
        lambda id_, acl: Leaf(Subject("acl", id_), lambda: kafka_text.acl_text(acl), lambda: acl_json(acl)),
        key_of=_uuid,
    )


def _topics(topics: TopicsImage) -> Directory:
    by_name = _keyed(Subject("topics"), topics.topics_by_name(), lambda _, topic: _topic(topic), key_of=str)
    by_id = _keyed(Subject("topics"), topics.topics_by_id(), lambda _, topic: _topic(topic), key_of=_uuid)
    return fixed(Subject("topics"), {"byId": by_id, "byName": by_name})


def _topic(topic: TopicImage) -> Directory:
    subject = Subject("topic", topic.name)

    def names() -> Iterable[str]:
        return (*map(str, sorted(topic.partitions)), "id", "name")

    def child(name: str) -> Node | None:
        if name in ("id", "name"):
            return _text(subject, str(topic.id) if name == "id" else topic.name)
        id_ = number(name)
        partition = None if id_ is None else topic.partitions.get(id_)
        if partition is None:
            return None
        return Leaf(
            Subject("partition", (topic.name, id_)),
            lambda: kafka_text.text_of(partition),
            lambda: partition_json(partition),
        )

    return Directory(subject, names, child)


def _configs(image: MetadataImage, show_secrets: bool) -> Directory:
    def name_of(resource: ConfigResource) -> str:
        return f"{resource.type_name}:{resource.name}" if resource.name else resource.type_name

    resources = image.configs.resource_data
    by_name = {name_of(resource): resource for resource in resources}

    def node(resource: ConfigResource, configs: ConfigurationImage) -> Node:
        def leaf(name: str, value: str) -> Leaf:
            shown = value if show_secrets else redact_config(resource.type, name, value)
            return _text(Subject("config", (resource, name)), shown or "")

        return _keyed(Subject("resource", resource), configs.data, leaf, key_of=str)

    return _keyed(Subject("configs"), resources, node, key_of=by_name.get, name_of=name_of)


def _client_quotas(image: MetadataImage) -> Directory:
    entities = image.client_quotas.entities
    by_name = {_entity_name(entity): entity for entity in entities}

    def node(entity: ClientQuotaEntity, quotas: ClientQuotaImage) -> Node:
        def leaf(key: str, value: float) -> Leaf:
            return Leaf(Subject("quota", (entity, key)), lambda: kafka_text.double_text(value), lambda: value)

        return _keyed(Subject("entity", entity), quotas.quotas, leaf, key_of=str)

    return _keyed(Subject("clientQuotas"), entities, node, key_of=by_name.get, name_of=_entity_name)


def _entity_name(entity: ClientQuotaEntity) -> str:
    """`clientId(c1)_user(alice)`, in Kafka's order and with its escapes; a default is the bare type."""
    names = dict(entity.entries)
    known = [(shown, names[type_]) for type_, shown in _ENTITY_TYPES.items() if type_ in names]
    known += [(type_, name) for type_, name in entity.entries if type_ not in _ENTITY_TYPES]
    return "_".join(type_ if name is None else f"{type_}({_escaped(name)})" for type_, name in known)


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _features(features: FeaturesImage) -> Directory:
    version = features.metadata_version
    children: dict[str, Node] = {
        f"{_FINALIZED}{name}": _plain(Subject("feature", name), level)
        for name, level in sorted(features.finalized_versions.items())
    }
    children["metadataVersion"] = Leaf(
        Subject("feature", METADATA_VERSION),
        lambda: kafka_text.optional_text(version),
        lambda: None if version is None else metadata_version_json(version),
    )
    return fixed(Subject("features"), children)


def _producer_ids(image: MetadataImage) -> Directory:
    next_id = _plain(Subject("producerIds"), image.producer_ids.next_producer_id)
    return fixed(Subject("producerIds"), {"nextProducerId": next_id})


def _scram(scram: ScramImage, show_secrets: bool) -> Directory:
    def mechanism(number_: int) -> Directory:
        def leaf(user: str, credential: ScramCredentialData) -> Leaf:
            def form() -> Any:
                return (scram_json if show_secrets else redacted_scram_json)(credential)

            return Leaf(Subject("credential", (number_, user)), lambda: kafka_text.scram_text(form()), form)

        users: Mapping[str, ScramCredentialData] = scram.mechanisms.get(number_) or {}
        return _keyed(Subject("mechanism", number_), users, leaf, key_of=str)

    numbers = sorted({*_SCRAM_MECHANISMS, *scram.mechanisms})
    return fixed(Subject("scram"), {mechanism_name(one): mechanism(one) for one in numbers})


def _delegation_tokens(image: MetadataImage, show_secrets: bool) -> Directory:
    def leaf(id_: str, token: Any) -> Leaf:
        def form() -> Any:
            return (delegation_token_json if show_secrets else redacted_token_json)(token)

        return Leaf(Subject("token", id_), lambda: kafka_text.delegation_token_text(form()), form)

    return _keyed(Subject("delegationTokens"), image.delegation_tokens.tokens, leaf, key_of=str)


def _text(subject: Subject | None, text: str) -> Leaf:
    return Leaf(subject, lambda: text, lambda: text)


def _plain(subject: Subject, value: int) -> Leaf:
    return Leaf(subject, lambda: str(value), lambda: value)


def _uuid(name: str) -> Uuid | None:
    try:
        return Uuid.from_string(name)
    except ValueError:
        return None
