"""A cluster that is read by describing requests to its brokers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rpds import HashTrieMap

from kraftlake.diagnosis.drift.description import ClusterDescription, ScramDescription, TopicDescription
from kraftlake.diagnosis.undo.requests import request_timeout
from kraftlake.diagnosis.undo.step import Action, Step
from kraftlake.diagnosis.undo.subjects import resource_of
from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotaImage
from kraftlake.image.configurations_image import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    ConfigResource,
    ConfigurationImage,
)
from kraftlake.image.features_image import KRAFT_VERSION
from kraftlake.image.scram_image import mechanism_name
from kraftlake.protocol.address import Address
from kraftlake.protocol.admin_client import AdminClient, Answer, MissingRightError
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_error import NodeError
from kraftlake.records.redaction import REDACTED
from kraftlake.settings.tables import CLIENT_METRICS, GROUP

_ANY: Final = 1
_RESOURCES_AT_ONCE: Final = 200
_MISSING: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION})
_DYNAMIC_TOPIC, _DYNAMIC_BROKER, _DYNAMIC_DEFAULT_BROKER, _METRICS, _OF_GROUP = 1, 2, 3, 7, 8
"""The sources of a config's value, as DescribeConfigs numbers them."""


_LISTED: Final = ("list_config_resources", range(1, 2))
_OTHER_PARTS: Final[Mapping[str, tuple[str, range]]] = {
    "clientQuotas": ("describe_client_quotas", range(2)),
    "acls": ("describe_acls", range(1, 4)),
    "scram": ("describe_user_scram_credentials", range(1)),
}
"""The requests by which brokers describe parts that not every broker keeps."""


class AskedCluster:
    """Describes a cluster by requests to its brokers, for one thread; nothing is kept."""

    def __init__(self, client: AdminClient) -> None:
        self._client = client

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def read(self, step: Step) -> ClusterDescription:
        """A description that covers the subject of a step. Raises NodeError."""
        match step.action:
            case Action.ALTER_CONFIGS:
                return ClusterDescription(configs=self._configs([resource_of(step)]))
            case Action.ALTER_QUOTAS:
                return ClusterDescription(client_quotas=self._quotas())
            case Action.CREATE_ACL | Action.DELETE_ACL:
                return ClusterDescription(acls=self._acls())
            case Action.DELETE_SCRAM:
                return ClusterDescription(scram=self._scram())
            case Action.UPDATE_FEATURE:
                return ClusterDescription(features=self._features())
            case _:
                return ClusterDescription(topics=self._topics([step.subject["topic"]]))

    def whole(self) -> ClusterDescription:
        """The whole cluster, but for keys of credentials, and for values of sensitive configs.

        What its brokers do not describe is not covered. Raises NodeError.
        """
        topics = self._topics(None)
        resources = [ConfigResource(TOPIC_RESOURCE, name) for name in topics]
        brokers = [ConfigResource(BROKER_RESOURCE, name) for name in ("", *map(str, sorted(self._addresses())))]
        offered = {part for part, (api, versions) in _OTHER_PARTS.items() if self._client.offers(api, versions)}
        listed = self._listed() if self._client.offers(*_LISTED) else []
        return ClusterDescription(
            features=self._features(),
            topics=topics,
            configs=self._configs([*resources, *brokers, *listed]),
            client_quotas=self._quotas() if "clientQuotas" in offered else {},
            acls=self._acls() if "acls" in offered else {},
            scram=self._scram() if "scram" in offered else {},
            covers=lambda part, _key: part in offered or part not in _OTHER_PARTS,
        )

    def node_of(self, step: Step) -> Address | None:
        """The broker whose configs a step changes, which alone takes the request; None for other steps.

        Raises NodeError where that broker does not run.
        """
        if step.action is not Action.ALTER_CONFIGS or step.subject["type"] != "BROKER" or not step.subject["name"]:
            return None
        name = step.subject["name"]
        address = _address_of(name, self._addresses())
        if address is None:
            raise NodeError(
                f"Broker {name} does not run, and it alone changes its configs: give controllers with --on."
            )
        return address

    def _metadata(self, names: Sequence[str] | None) -> Any:
        def request(module: Any) -> Any:
            topics = (
                None
                if names is None
                else tuple(
                    module.MetadataRequestTopic(topic_id=None, name=name)
                    if "topic_id" in module.MetadataRequestTopic.__dataclass_fields__
                    else module.MetadataRequestTopic(name=name)
                    for name in names
                )
            )
            return module.MetadataRequest(
                topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=False
            )

        return self._client.ask("metadata", range(11, 14), request)

    def _topics(self, names: Sequence[str] | None) -> dict[str, TopicDescription]:
        found, leaving = {}, self._leaving()
        for topic in self._metadata(names).topics:
            if topic.error_code in _MISSING:
                continue
            self._check(topic.error_code, f"topic {topic.name}", "Describe on the topic")
            partitions = sorted(topic.partitions, key=lambda one: int(one.partition_index))
            replicas = tuple(
                tuple(
                    int(id_)
                    for id_ in one.replica_nodes
                    if id_ not in leaving.get((str(topic.name), int(one.partition_index)), ())
                )
                for one in partitions
            )
            found[str(topic.name)] = TopicDescription(
                partitions=len(replicas), replication_factor=max(map(len, replicas), default=None), replicas=replicas
            )
        return found

    def moving(self) -> Mapping[str, Sequence[int]]:
        """The partitions that move, with the brokers that they wait for and that do not run. Raises NodeError."""
        response, running = self._reassignments(), self._addresses()
        self._check(response.error_code, "the reassignments under way", "Describe on the cluster")
        return {
            f"{topic.name}-{one.partition_index}": [int(id_) for id_ in one.adding_replicas if id_ not in running]
            for topic in response.topics
            for one in topic.partitions
        }

    def _leaving(self) -> Mapping[tuple[str, int], frozenset[int]]:
        """The replicas that reassignments under way take away, by topic and partition."""
        response = self._reassignments()
        if Answer.of(response.error_code).is_denied:
            return {}
        self._check(response.error_code, "the reassignments under way", "Describe on the cluster")
        return {
            (str(topic.name), int(one.partition_index)): frozenset(map(int, one.removing_replicas))
            for topic in response.topics
            for one in topic.partitions
        }

    def _reassignments(self) -> Any:
        def request(module: Any) -> Any:
            return module.ListPartitionReassignmentsRequest(timeout=request_timeout(), topics=None)

        return self._client.ask("list_partition_reassignments", range(1), request)

    def _addresses(self) -> Mapping[int, Address]:
        return {int(one.node_id): Address(one.host, int(one.port)) for one in self._metadata([]).brokers}

    def _listed(self) -> list[ConfigResource]:
        """The groups and client metrics that have configs."""

        def request(module: Any) -> Any:
            return module.ListConfigResourcesRequest(resource_types=(CLIENT_METRICS, GROUP))

        response = self._client.ask(*_LISTED, request)
        self._check(response.error_code, "the resources with configs", "DescribeConfigs on the cluster")
        return [ConfigResource(int(one.resource_type), one.resource_name) for one in response.config_resources]

    def _configs(self, resources: Sequence[ConfigResource]) -> dict[ConfigResource, ConfigurationImage]:
        """The dynamic configs of resources; a broker describes its own ones alone."""
        own = [one for one in resources if _is_of_one_broker(one)]
        others = [one for one in resources if not _is_of_one_broker(one)]
        found: dict[ConfigResource, ConfigurationImage] = {}
        for begin in range(0, len(others), _RESOURCES_AT_ONCE):
            wanted = others[begin : begin + _RESOURCES_AT_ONCE]
            found.update(self._described(self._client.ask("describe_configs", range(1, 5), _configs_request(wanted))))
        addresses = self._addresses() if own else {}
        for resource in own:
            address = _address_of(resource.name, addresses)
            if address is not None:
                request = _configs_request([resource])
                found.update(self._described(self._client.ask_node(address, "describe_configs", range(1, 5), request)))
        return found

    def _acls(self) -> dict[StandardAcl, StandardAcl]:
        def request(module: Any) -> Any:
            return module.DescribeAclsRequest(
                resource_type_filter=_ANY, resource_name_filter=None, pattern_type_filter=_ANY, principal_filter=None,
                host_filter=None, operation=_ANY, permission_type=_ANY,
            )  # fmt: skip

        response = self._client.ask(*_OTHER_PARTS["acls"], request)
        if response.error_code == ErrorCode.SECURITY_DISABLED:
            return {}
        self._check(response.error_code, "the ACLs", "Describe on the cluster")
        rules = (
            StandardAcl(
                resource_type=int(resource.resource_type), resource_name=resource.resource_name,
                pattern_type=int(resource.pattern_type), principal=acl.principal, host=acl.host,
                operation=int(acl.operation), permission_type=int(acl.permission_type),
            )
            for resource in response.resources
            for acl in resource.acls
        )  # fmt: skip
        return {rule: rule for rule in rules}

    def _quotas(self) -> dict[ClientQuotaEntity, ClientQuotaImage]:
        response = self._client.ask(
            *_OTHER_PARTS["clientQuotas"], lambda m: m.DescribeClientQuotasRequest(components=(), strict=False)
        )
        self._check(response.error_code, "the quotas", "DescribeConfigs on the cluster")
        return {
            ClientQuotaEntity(tuple(sorted((one.entity_type, one.entity_name) for one in entry.entity))):
            ClientQuotaImage(HashTrieMap({one.key: float(one.value) for one in entry.values}))
            for entry in response.entries or ()
        }  # fmt: skip

    def _scram(self) -> dict[tuple[str, str], ScramDescription]:
        response = self._client.ask(*_OTHER_PARTS["scram"], lambda m: m.DescribeUserScramCredentialsRequest(users=None))
        self._check(response.error_code, "the SCRAM users", "Describe on the cluster")
        return {
            (result.user, mechanism_name(int(one.mechanism))): ScramDescription(iterations=int(one.iterations))
            for result in response.results
            for one in result.credential_infos
        }

    def _features(self) -> dict[str, int]:
        def request(module: Any) -> Any:
            return module.ApiVersionsRequest(client_software_name="kraftlake", client_software_version="0")

        response = self._client.ask("api_versions", range(3, 5), request)
        levels = {str(one.name): int(one.max_version_level) for one in response.finalized_features}
        return {name: level for name, level in levels.items() if name != KRAFT_VERSION}

    def _described(self, response: Any) -> Iterator[tuple[ConfigResource, ConfigurationImage]]:
        for result in response.results:
            resource = ConfigResource(int(result.resource_type), result.resource_name)
            if result.error_code in _MISSING:
                continue
            named = f"{resource.type_name.lower().replace('_', ' ')} {resource.name}"
            self._check(result.error_code, f"the configs of {named}", f"DescribeConfigs on {named}")
            dynamic = {
                TOPIC_RESOURCE: _DYNAMIC_TOPIC,
                BROKER_RESOURCE: _DYNAMIC_BROKER if resource.name else _DYNAMIC_DEFAULT_BROKER,
                CLIENT_METRICS: _METRICS,
                GROUP: _OF_GROUP,
            }.get(resource.type)
            values = {
                config.name: REDACTED if config.is_sensitive or config.value is None else config.value
                for config in result.configs
                if int(config.config_source) == dynamic
            }
            if values:
                yield resource, ConfigurationImage(resource=resource, data=HashTrieMap(values))

    def _check(self, code: Any, what: str, right: str) -> None:
        answer = Answer.of(code)
        if answer.is_denied:
            raise MissingRightError(f"{self._client.principal} needs an ACL for {right}, to read {what}.")
        if answer.is_failure:
            raise NodeError(f"The cluster does not tell {what}: {answer.name}.")


def _is_of_one_broker(resource: ConfigResource) -> bool:
    return resource.type == BROKER_RESOURCE and bool(resource.name)


def _address_of(broker: str, addresses: Mapping[int, Address]) -> Address | None:
    """The address of the broker that a resource names; None where it does not run."""
    return addresses.get(int(broker)) if broker.isdecimal() else None


def _configs_request(resources: Iterable[ConfigResource]) -> Any:
    def request(module: Any) -> Any:
        wanted = tuple(
            module.DescribeConfigsResource(resource_type=one.type, resource_name=one.name, configuration_keys=None)
            for one in resources
        )
        return module.DescribeConfigsRequest(resources=wanted, include_synonyms=True)

    return request
