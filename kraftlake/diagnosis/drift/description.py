"""A cluster by meaning: what an administrator sets, by name and content, without ids, epochs, leaders and ISRs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import attrs

from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotaImage
from kraftlake.image.configurations_image import TOPIC_RESOURCE, ConfigResource, ConfigurationImage
from kraftlake.image.features_image import METADATA_VERSION
from kraftlake.image.json_form import Json
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.scram_image import ScramCredentialData, mechanism_name
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.image.topics.topic_names import INTERNAL_TOPICS

PARTS: Final = ("features", "brokers", "topics", "configs", "clientQuotas", "acls", "scram")
"""The parts of a description in their order."""

Covers = Callable[[str, Any], bool]
"""Whether a description says something of an entry of a part, by its key."""


def covers_all(_part: str, _key: Any) -> bool:
    """The coverage of a whole cluster."""
    return True


@attrs.frozen(kw_only=True)
class TopicDescription:
    """A topic by meaning; None is a field that is not stated, and not compared.

    `replicas` are those of each partition in the order of their numbers, after all reassignments under way. `facts` are
    further fields that were asked for.
    """

    partitions: int | None = None
    replication_factor: int | None = None
    replicas: tuple[tuple[int, ...], ...] | None = None
    facts: Mapping[str, Any] = attrs.field(factory=dict)

    def to_json(self) -> Json:
        """The fields that are stated."""
        form: Json = {"partitions": self.partitions, "replicationFactor": self.replication_factor}
        if self.replicas is not None:
            form["replicas"] = [list(one) for one in self.replicas]
        return {name: value for name, value in form.items() if value is not None} | dict(self.facts)


@attrs.frozen(kw_only=True)
class ScramDescription:
    """A SCRAM credential by meaning: `fingerprint` is a digest of its salt and keys. None is a field not stated."""

    iterations: int | None = None
    fingerprint: str | None = attrs.field(default=None, repr=False)

    @classmethod
    def of(cls, credential: ScramCredentialData) -> ScramDescription:
        """The description of a credential of an image."""
        digest = hashlib.sha256()
        for part in (credential.salt, credential.stored_key, credential.server_key):
            digest.update(len(part).to_bytes(4, "big") + part)
        return cls(iterations=credential.iterations, fingerprint=digest.hexdigest())

    def to_json(self) -> Json:
        """The fields that are stated."""
        form: Json = {"iterations": self.iterations, "keys": self.fingerprint}
        return {name: value for name, value in form.items() if value is not None}


@attrs.frozen(kw_only=True, eq=False)
class ClusterDescription:
    """A cluster by meaning. `covers` says of which entries the description states whether they exist."""

    features: Mapping[str, int] = attrs.field(factory=dict)
    brokers: Mapping[int, Json] = attrs.field(factory=dict)
    topics: Mapping[str, TopicDescription] = attrs.field(factory=dict)
    configs: Mapping[ConfigResource, ConfigurationImage] = attrs.field(factory=dict)
    client_quotas: Mapping[ClientQuotaEntity, ClientQuotaImage] = attrs.field(factory=dict)
    acls: Mapping[StandardAcl, StandardAcl] = attrs.field(factory=dict)
    scram: Mapping[tuple[str, str], ScramDescription] = attrs.field(factory=dict)
    """Credentials by user and name of the mechanism."""
    covers: Covers = covers_all

    def part(self, name: str) -> Mapping[Any, Any]:
        """The entries of one of PARTS."""
        entries: Mapping[Any, Any] = getattr(self, "client_quotas" if name == "clientQuotas" else name)
        return entries


def describe(image: MetadataImage, *, also: Collection[str] = ()) -> ClusterDescription:
    """The description of the cluster in an image. `also` are names of FACTS to include."""
    features = dict(image.features.finalized_versions.items())
    version = image.features.metadata_version
    if version is not None:
        features[METADATA_VERSION] = version.level
    named = image.topics.topics_by_name()
    return ClusterDescription(
        features=features,
        brokers=_brokers(image, also),
        topics={name: describe_topic(topic, also) for name, topic in named.items()},
        configs=image.configs.resource_data,
        client_quotas=image.client_quotas.entities,
        acls={acl: acl for acl in image.acls.acls.values()},
        scram={
            (user, mechanism_name(mechanism)): ScramDescription.of(credential)
            for mechanism, users in image.scram.mechanisms.items()
            for user, credential in users.items()
        },
    )


def target_replicas(partition: PartitionRegistration) -> tuple[int, ...]:
    """The replicas of a partition once the reassignment under way, if any, is complete."""
    removed = partition.removing_replicas
    return tuple(one for one in partition.replicas if one not in removed) if removed else partition.replicas


def describe_topic(topic: TopicImage, also: Collection[str] = ()) -> TopicDescription:
    """The description of a topic of an image. `also` as for `describe`."""
    partitions = [topic.partitions[number] for number in sorted(topic.partitions)]
    replicas = tuple(map(target_replicas, partitions))
    facts: Json = {"id": str(topic.id)} if "id" in also else {}
    facts |= {name: [make(one) for one in partitions] for name, make in _OF_PARTITIONS.items() if name in also}
    return TopicDescription(
        partitions=len(partitions),
        replication_factor=max(map(len, replicas), default=None),
        replicas=replicas if "placement" in also else None,
        facts=facts,
    )


_OF_PARTITIONS: Final[Mapping[str, Callable[[PartitionRegistration], Any]]] = {
    "leaders": lambda one: one.leader,
    "isr": lambda one: list(one.isr),
    "epochs": lambda one: [one.leader_epoch, one.partition_epoch],
}
_OF_BROKERS: Final[Mapping[str, Callable[[BrokerRegistration], Json]]] = {
    "incarnations": lambda broker: {"incarnationId": str(broker.incarnation_id), "epoch": broker.epoch},
}
FACTS: Final = ("placement", "id", *_OF_PARTITIONS, *_OF_BROKERS)
"""The fields that a description has only where they are asked for."""


def _brokers(image: MetadataImage, also: Collection[str]) -> Mapping[int, Json]:
    """The brokers, where a fact of theirs is asked for; their configs are with those of other resources."""
    makers = [make for name, make in _OF_BROKERS.items() if name in also]
    if not makers:
        return {}
    return {
        id_: {key: value for make in makers for key, value in make(broker).items()}
        for id_, broker in image.cluster.brokers.items()
    }


def is_internal(part: str, key: Any) -> bool:
    """Whether an entry is an internal topic, or has the configs of one."""
    if part == "topics":
        return key in INTERNAL_TOPICS
    return part == "configs" and key.type == TOPIC_RESOURCE and key.name in INTERNAL_TOPICS
