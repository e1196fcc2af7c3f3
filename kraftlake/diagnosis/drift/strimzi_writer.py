"""A description as KafkaTopic and KafkaUser resources of Strimzi, and what these can't express."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from kraftlake.diagnosis.drift.comparison import paths_of
from kraftlake.diagnosis.drift.description import ClusterDescription
from kraftlake.diagnosis.drift.strimzi import API_VERSIONS, PATTERNS, QUOTAS, SCRAM, TOPIC, USER
from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.configurations_image import TOPIC_RESOURCE, ConfigResource
from kraftlake.image.json_form import Json
from kraftlake.image.kafka_names import CLUSTER_NAME, AclOperation, AclPermissionType, PatternType, ResourceType
from kraftlake.records.redaction import redact_config

_LABEL: Final = "strimzi.io/cluster"
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,200}[a-z0-9])?")
"""Names that Kubernetes takes."""
_PRINCIPAL: Final = "User:"
_OF_TLS: Final = "CN="
_RESOURCES: Final[Mapping[int, str]] = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.CLUSTER: "cluster",
    ResourceType.TRANSACTIONAL_ID: "transactionalId",
}
_PATTERN_NAMES: Final[Mapping[int, str]] = {int(number): name for name, number in PATTERNS.items()}
_QUOTA_NAMES: Final = {own: theirs for theirs, own in QUOTAS.items()}


@attrs.frozen(kw_only=True)
class StrimziResources:
    """The resources of a cluster; `left_out` has the paths of what they can't express."""

    documents: tuple[Json, ...]
    left_out: tuple[str, ...]


def strimzi_resources(described: ClusterDescription, cluster: str, *, show_secrets: bool = False) -> StrimziResources:
    """A KafkaTopic for each topic and a KafkaUser for each user, for the operators of the Kafka resource `cluster`."""
    left_out: list[str] = []
    topics = [_topic(name, described, cluster, show_secrets) for name in sorted(described.topics)]
    left_out += [path for key in described.configs for path in _without_topic(key, described)]
    left_out += [paths_of("features", name)[0] for name in described.features]
    users = _Users(described, cluster)
    documents = [*topics, *users.documents()]
    return StrimziResources(documents=tuple(documents), left_out=tuple(sorted([*left_out, *users.left_out])))


def _without_topic(resource: ConfigResource, described: ClusterDescription) -> list[str]:
    is_of_topic = resource.type == TOPIC_RESOURCE and resource.name in described.topics
    return [] if is_of_topic else [paths_of("configs", resource)[0]]


def _head(kind: str, name: str, cluster: str, spec: Json) -> Json:
    metadata = {"name": name, "labels": {_LABEL: cluster}}
    return {"apiVersion": API_VERSIONS[0], "kind": kind, "metadata": metadata, "spec": spec}


def _topic(name: str, described: ClusterDescription, cluster: str, show_secrets: bool) -> Json:
    topic = described.topics[name]
    spec: Json = {"topicName": name, "partitions": topic.partitions, "replicas": topic.replication_factor}
    configs = described.configs.get(ConfigResource(TOPIC_RESOURCE, name))
    if configs is not None:
        spec["config"] = {
            key: value if show_secrets else redact_config(TOPIC_RESOURCE, key, value)
            for key, value in sorted(configs.data.items())
        }
    return _head(TOPIC, kubernetes_name(name), cluster, {key: one for key, one in spec.items() if one is not None})


def kubernetes_name(name: str) -> str:
    """A name that Kubernetes takes: the name itself, or one made of it and of its digest."""
    if _NAME.fullmatch(name):
        return name
    plain = re.sub(r"[^a-z0-9.-]+", "-", name.lower()).strip("-.")[:180]
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{plain}-{digest}" if plain else f"topic-{digest}"


class _Users:
    """The users of ACLs, quotas and credentials."""

    def __init__(self, described: ClusterDescription, cluster: str) -> None:
        self.left_out: list[str] = []
        self._cluster = cluster
        self._specs: dict[str, Json] = {}
        for acl in sorted(described.acls, key=lambda one: [*map(str, attrs.astuple(one))]):
            self._add_acl(acl)
        for entity, image in described.client_quotas.items():
            user = dict(entity.entries).get("user") if len(entity.entries) == 1 else None
            path = paths_of("clientQuotas", entity)[0]
            if user is None or not self._is_known(user):
                self.left_out.append(path)
                continue
            quotas = {_QUOTA_NAMES[key]: value for key, value in sorted(image.quotas.items()) if key in _QUOTA_NAMES}
            self.left_out += [f"{path}/{key}" for key in image.quotas if key not in _QUOTA_NAMES]
            if quotas:
                self._spec(user)["quotas"] = quotas
        for user, mechanism in described.scram:
            if mechanism != SCRAM or not self._is_known(user) or user.startswith(_OF_TLS):
                self.left_out.append(paths_of("scram", (user, mechanism))[0])
            else:
                self._spec(user)["authentication"] = {"type": "scram-sha-512"}

    def documents(self) -> Iterator[Json]:
        """A resource for each user."""
        for user, spec in sorted(self._specs.items()):
            yield _head(USER, user.removeprefix(_OF_TLS), self._cluster, spec)

    def _is_known(self, user: str) -> bool:
        """Whether a resource can be of this user: its name is the resource's, and it has one way to log in."""
        name = user.removeprefix(_OF_TLS)
        other = name if user.startswith(_OF_TLS) else _OF_TLS + name
        return _NAME.fullmatch(name) is not None and other not in self._specs

    def _spec(self, user: str) -> Json:
        return self._specs.setdefault(user, {"authentication": {"type": "tls"}} if user.startswith(_OF_TLS) else {})

    def _add_acl(self, acl: StandardAcl) -> None:
        user = acl.principal.removeprefix(_PRINCIPAL)
        is_known = acl.principal.startswith(_PRINCIPAL) and self._is_known(user)
        if not is_known or not _is_expressible(acl):
            self.left_out.append(paths_of("acls", acl)[0])
            return
        resource: dict[str, Any] = {"type": _RESOURCES[acl.resource_type]}
        if acl.resource_type != ResourceType.CLUSTER:
            resource |= {"name": acl.resource_name, "patternType": _PATTERN_NAMES[acl.pattern_type]}
        rule = {
            "type": "deny" if acl.permission_type == AclPermissionType.DENY else "allow",
            "resource": resource,
            "host": acl.host,
            "operations": [_operation(acl.operation)],
        }
        simple = self._spec(user).setdefault("authorization", {"type": "simple", "acls": []})
        for other in simple["acls"]:  # the operations of one rule stand together
            if {**other, "operations": []} == {**rule, "operations": []}:
                other["operations"].append(_operation(acl.operation))
                return
        simple["acls"].append(rule)


def _is_expressible(acl: StandardAcl) -> bool:
    """Whether a rule can say what an ACL says of its resource, whoever the principal is."""
    of_cluster = acl.resource_type == ResourceType.CLUSTER
    is_named = not of_cluster or (acl.resource_name, acl.pattern_type) == (CLUSTER_NAME, PatternType.LITERAL)
    is_known = acl.resource_type in _RESOURCES and acl.pattern_type in _PATTERN_NAMES
    is_rule = acl.operation >= AclOperation.ALL and acl.permission_type >= AclPermissionType.DENY
    return is_named and is_known and is_rule


def _operation(number: int) -> str:
    return "".join(word.capitalize() for word in AclOperation(number).name.split("_"))
