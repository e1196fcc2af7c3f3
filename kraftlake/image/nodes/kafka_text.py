"""The parts of an image as Kafka's metadata shell prints them: the `toString` of its classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.controller_registration import ControllerRegistration
from kraftlake.image.endpoint import Endpoint, VersionRange
from kraftlake.image.kafka_names import (
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    SECURITY_PROTOCOLS,
    name_of,
)
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.topics.partition_registration import PartitionRegistration

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ANY_ABOVE: Final = 0x7FFF


def partition_text(partition: PartitionRegistration) -> str:
    """Source: org.apache.kafka.metadata.PartitionRegistration.toString."""
    fields = {
        "replicas": _listed(partition.replicas),
        "directories": _listed(partition.directories),
        "isr": _listed(partition.isr),
        "removingReplicas": _listed(partition.removing_replicas),
        "addingReplicas": _listed(partition.adding_replicas),
        "elr": _listed(partition.elr),
        "lastKnownElr": _listed(partition.last_known_elr),
        "leader": partition.leader,
        "leaderRecoveryState": partition.leader_recovery_state.name,
        "leaderEpoch": partition.leader_epoch,
        "partitionEpoch": partition.partition_epoch,
    }
    return f"PartitionRegistration({_fields(fields)})"


def broker_text(broker: BrokerRegistration) -> str:
    """Source: org.apache.kafka.metadata.BrokerRegistration.toString."""
    cordoned = broker.cordoned_directories
    fields = {
        "id": broker.id,
        "epoch": broker.epoch,
        "incarnationId": broker.incarnation_id,
        "listeners": _listeners(broker.listeners),
        "supportedFeatures": _features(broker.supported_features),
        "rack": optional_text(broker.rack),
        "fenced": _boolean(broker.fenced),
        "inControlledShutdown": _boolean(broker.in_controlled_shutdown),
        "isMigratingZkBroker": _boolean(broker.is_migrating_zk_broker),
        "directories": _listed(broker.directories),
        "cordonedDirectories": "null" if cordoned is None else _listed(cordoned),
    }
    return f"BrokerRegistration({_fields(fields)})"


def controller_text(controller: ControllerRegistration) -> str:
    """Source: org.apache.kafka.metadata.ControllerRegistration.toString."""
    fields = {
        "id": controller.id,
        "incarnationId": controller.incarnation_id,
        "zkMigrationReady": _boolean(controller.zk_migration_ready),
        "listeners": _listeners(controller.listeners),
        "supportedFeatures": _features(controller.supported_features),
    }
    return f"ControllerRegistration({_fields(fields)})"


def acl_text(acl: StandardAcl) -> str:
    """Source: org.apache.kafka.metadata.authorizer.StandardAcl, a record."""
    fields = {
        "resourceType": name_of(RESOURCE_TYPES, acl.resource_type),
        "resourceName": acl.resource_name,
        "patternType": name_of(PATTERN_TYPES, acl.pattern_type),
        "principal": acl.principal,
        "host": acl.host,
        "operation": name_of(OPERATIONS, acl.operation),
        "permissionType": name_of(PERMISSIONS, acl.permission_type),
    }
    return f"StandardAcl[{_fields(fields)}]"


def scram_text(credential: Mapping[str, Any]) -> str:
    """A credential in JSON form. Source: ScramCredentialDataNode."""
    names = ("salt", "storedKey", "serverKey", "iterations")
    return f"ScramCredentialData({_fields({name: credential[name] for name in names})})"


def delegation_token_text(token: Mapping[str, Any]) -> str:
    """A token in JSON form. Source: DelegationTokenDataNode, whose parentheses do not match."""
    renewers = token["renewers"]
    return (
        f"DelegationTokenDatatokenId={token['tokenId']}(owner={token['owner']}(tokenRequester={token['requester']}"
        f"(renewers={renewers if isinstance(renewers, str) else ' '.join(renewers)}"
        f", issueTimestamp={token['issueTimestamp']}, maxTimestamp={token['maxTimestamp']})"
        f", expiryTimestamp={token['expiryTimestamp']}"
    )


def provenance_text(provenance: MetadataProvenance) -> str:
    """The provenance as text; an unknown time reads so, where Kafka prints the end of 1969. Source: ProvenanceNode."""
    return f"offset {provenance.offset}, epoch {provenance.epoch}, time {_time(provenance.timestamp)}"


def optional_text(value: object) -> str:
    """Source: java.util.Optional.toString."""
    return "Optional.empty" if value is None else f"Optional[{value}]"


def double_text(value: float) -> str:
    """Source: java.lang.Double.toString: scientific notation below 0.001 and from ten million on."""
    text = repr(value)
    if text in ("nan", "inf", "-inf"):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[text]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return text
    shortest = Decimal(text)
    if len(shortest.normalize().as_tuple().digits) == 1:  # Java takes two digits for one, the nearest to the value
        nearest = f"{value:.1e}"
        shortest = Decimal(nearest) if float(nearest) == value else shortest
    mantissa, _, power = f"{shortest.normalize():e}".partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}E{int(power)}"


def _time(milliseconds: int) -> str:
    if milliseconds < 0:
        return "unknown"
    try:
        time = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    fraction = f".{milliseconds % 1000:03}".rstrip("0").rstrip(".")
    return f"{time:%Y-%m-%dT%H:%M:%S}{fraction}Z[UTC]"


def _listeners(listeners: Mapping[str, Endpoint]) -> str:
    return _listed(
        f"Endpoint(listenerName='{name}', securityProtocol={name_of(SECURITY_PROTOCOLS, one.security_protocol)}, "
        f"host='{one.host}', port={one.port})"
        for name, one in sorted(listeners.items())
    )


def _features(features: Mapping[str, VersionRange]) -> str:
    return f"{{{', '.join(f'{name}: {_levels(levels)}' for name, levels in sorted(features.items()))}}}"


def _levels(levels: VersionRange) -> str:
    if levels.min == levels.max:
        return str(levels.min)
    return f"{levels.min}+" if levels.max == _ANY_ABOVE else f"{levels.min}-{levels.max}"


def _fields(fields: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in fields.items())


def _listed(values: Iterable[object]) -> str:
    return f"[{', '.join(map(str, values))}]"


def _boolean(value: bool) -> str:
    return "true" if value else "false"
