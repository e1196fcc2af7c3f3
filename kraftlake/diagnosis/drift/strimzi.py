"""Resources of Strimzi's operators as a description: KafkaTopic and KafkaUser, read and written.

Source: Strimzi's custom resource definitions, apiVersion kafka.strimzi.io/v1beta2 and kafka.strimzi.io/v1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rpds import HashTrieMap

from kraftlake.diagnosis.drift.description import ClusterDescription, ScramDescription, TopicDescription
from kraftlake.diagnosis.drift.fields import Fields, config_text, number
from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotaImage
from kraftlake.image.configurations_image import TOPIC_RESOURCE, ConfigResource, ConfigurationImage
from kraftlake.image.kafka_names import CLUSTER_NAME, OPERATIONS, RESOURCE_TYPES, AclPermissionType, PatternType
from kraftlake.image.kafka_names import ResourceType as Resource
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.runtime.words import shown

TOPIC, USER = STRIMZI = ("KafkaTopic", "KafkaUser")
API_VERSIONS: Final = ("kafka.strimzi.io/v1beta2", "kafka.strimzi.io/v1")
_GROUP: Final = "kafka.strimzi.io/"
_MANAGED: Final = "strimzi.io/managed"
SCRAM: Final = "SCRAM-SHA-512"
"""The mechanism of the user operator."""
QUOTAS: Final[Mapping[str, str]] = {
    "producerByteRate": "producer_byte_rate",
    "consumerByteRate": "consumer_byte_rate",
    "requestPercentage": "request_percentage",
    "controllerMutationRate": "controller_mutation_rate",
}
PATTERNS: Final = {"literal": PatternType.LITERAL, "prefix": PatternType.PREFIXED}
_PERMISSIONS: Final = {"allow": AclPermissionType.ALLOW, "deny": AclPermissionType.DENY}


class StrimziReader:
    """Collects the topics and users in documents; other kinds of documents are passed over."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        """The kinds of resources so far."""
        self._topics: dict[str, TopicDescription] = {}
        self._configs: dict[ConfigResource, ConfigurationImage] = {}
        self._quotas: dict[ClientQuotaEntity, ClientQuotaImage] = {}
        self._acls: dict[StandardAcl, StandardAcl] = {}
        self._scram: dict[tuple[str, str], ScramDescription] = {}
        self._users: set[str] = set()

    def add(self, document: Fields) -> None:
        """Take up one document, or each item of a list. Raises CorruptDataError with the place at fault."""
        kind = document.values.get("kind")
        if isinstance(kind, str) and kind in ("List", *(f"{one}List" for one in STRIMZI)):
            for item in document.each("items"):
                self.add(item)
            return
        if kind not in STRIMZI:
            return
        version = document.values.get("apiVersion")
        if version not in API_VERSIONS:
            known = " and ".join(API_VERSIONS)
            held = shown(repr(version), 60)
            raise CorruptDataError(f"{document.at('apiVersion')} is {held}: a {kind} is read in {known}.")
        if document.fields("metadata").fields("annotations").values.get(_MANAGED) in ("false", False):
            return
        self.found.add(str(kind))
        self._add_topic(document) if kind == TOPIC else self._add_user(document)

    def description(self) -> ClusterDescription:
        """All resources so far. It covers all topics, or all users, as the kinds that were found."""
        kinds, users = frozenset(self.found), frozenset(self._users)

        def covers(part: str, key: Any) -> bool:
            match part:
                case "topics":
                    return TOPIC in kinds
                case "configs":
                    return TOPIC in kinds and key.type == TOPIC_RESOURCE
                case "acls":
                    return USER in kinds
                case "scram":
                    return USER in kinds and key[1] == SCRAM
                case "clientQuotas":
                    return len(key.entries) == 1 and key.entries[0][1] in users
                case _:
                    return False

        return ClusterDescription(
            topics=self._topics, configs=self._configs, client_quotas=self._quotas, acls=self._acls, scram=self._scram,
            covers=covers,
        )  # fmt: skip

    def _add_topic(self, document: Fields) -> None:
        spec = document.fields("spec")
        name = spec.optional_text("topicName") or document.fields("metadata").text("name")
        if name in self._topics:
            raise CorruptDataError(f"{document.place} declares the topic {shown(name, 60)} a second time.")
        self._topics[name] = TopicDescription(
            partitions=spec.whole("partitions"), replication_factor=spec.whole("replicas")
        )
        config = spec.fields("config")
        values = {key: config_text(config.at(key), value) for key, value in config.values.items()}
        if values:
            resource = ConfigResource(TOPIC_RESOURCE, name)
            self._configs[resource] = ConfigurationImage(resource=resource, data=HashTrieMap(values))

    def _add_user(self, document: Fields) -> None:
        spec = document.fields("spec")
        name, login = document.fields("metadata").text("name"), spec.fields("authentication").values.get("type")
        user = f"CN={name}" if login in ("tls", "tls-external") else name
        if user in self._users:
            raise CorruptDataError(f"{document.place} declares the user {shown(user, 60)} a second time.")
        self._users.add(user)
        if login == "scram-sha-512":
            self._scram[user, SCRAM] = ScramDescription()
        quotas = spec.fields("quotas")
        values = {
            own: number(quotas.at(theirs), quotas.values[theirs])
            for theirs, own in QUOTAS.items()
            if quotas.values.get(theirs) is not None
        }
        if values:
            self._quotas[ClientQuotaEntity((("user", user),))] = ClientQuotaImage(HashTrieMap(values))
        for rule in spec.fields("authorization").each("acls"):
            for acl in _acls(rule, f"User:{user}"):
                self._acls[acl] = acl


def _acls(rule: Fields, principal: str) -> list[StandardAcl]:
    """The ACLs of one rule of a user: one for each operation."""
    resource = rule.fields("resource")
    kind = resource.one_of("type", {one: name for one, name in RESOURCE_TYPES.items() if one > Resource.ANY})
    name = CLUSTER_NAME if kind == Resource.CLUSTER else resource.text("name")
    pattern = _choice(resource, "patternType", PATTERNS, "literal")
    permission = _choice(rule, "type", _PERMISSIONS, "allow")
    operations = rule.values.get("operations") or [rule.values.get("operation")]
    wanted = [Fields(rule.place, {"operations": one}) for one in operations]
    return [
        StandardAcl(
            resource_type=kind, resource_name=name, pattern_type=pattern, principal=principal,
            host=rule.text("host", "*"), operation=one.one_of("operations", OPERATIONS), permission_type=permission,
        )
        for one in wanted
    ]  # fmt: skip


def _choice(fields: Fields, name: str, choices: Mapping[str, int], default: str) -> int:
    text = fields.text(name, default)
    if text not in choices:
        raise CorruptDataError(f"{fields.at(name)} is {shown(text, 60)!r}, and has to be {' or '.join(choices)}.")
    return int(choices[text])
