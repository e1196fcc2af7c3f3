"""The class of a change of a config, a quota or an ACL: whether it deletes records or widens access."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from kraftlake.diagnosis.undo.step import StepClass
from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotaImage
from kraftlake.image.configurations_image import BROKER_RESOURCE, TOPIC_RESOURCE, ConfigResource, ConfigurationImage
from kraftlake.image.kafka_names import AclPermissionType
from kraftlake.runtime.java_values import parse_boolean, parse_integer, split_list
from kraftlake.settings.security_settings import AUTHORIZER_SETTINGS, SECURITY_SETTINGS
from kraftlake.settings.tables import base_of
from kraftlake.settings.topic_configs import TOPIC_CONFIGS, unit_ms

Configs = Mapping[ConfigResource, ConfigurationImage]
Quotas = Mapping[ClientQuotaEntity, ClientQuotaImage]

_ALL_BROKERS: Final = ConfigResource(BROKER_RESOURCE, "")
_RETENTION: Final = ("retention.ms", "retention.bytes")
_POLICY: Final = "cleanup.policy"
_UNCLEAN: Final = "unclean.leader.election.enable"
_REMOTE: Final = "remote.storage.enable"
_DESTROYING: Final = (*_RETENTION, _POLICY, _UNCLEAN, _REMOTE)
_BY_SYNONYM: Final = {
    synonym: name for name in _DESTROYING for synonym in (name, *TOPIC_CONFIGS[name].synonyms) if synonym != name
} | {_UNCLEAN: _UNCLEAN}
"""The topic config that a broker's config stands in for."""


def config_class(resource: ConfigResource, name: str, now: Configs, then: Configs) -> StepClass:
    """The class of a change of a config to its value in `then`.

    Where a value is not set, that of the cluster's default counts, then Kafka's: property files of brokers are not in
    the log.
    """
    if resource.type == TOPIC_RESOURCE:
        watched = name if name in _DESTROYING else None
    elif resource.type == BROKER_RESOURCE:
        watched = _BY_SYNONYM.get(name)
        if base_of(name) in SECURITY_SETTINGS or name in AUTHORIZER_SETTINGS:
            return StepClass.ACCESS
    else:
        watched = None
    if watched is None:
        return StepClass.SAFE
    values = [_effective(configs, resource, watched) for configs in (now, then)]
    return StepClass.DESTRUCTIVE if _destroys(watched, *values) else StepClass.SAFE


def _effective(configs: Configs, resource: ConfigResource, name: str) -> str:
    """The value of a topic's config on a topic or a broker."""
    key = TOPIC_CONFIGS[name]
    if resource.type == TOPIC_RESOURCE:
        own = configs.get(resource)
        if own is not None and name in own.data:
            return own.data[name]
        owners = [_ALL_BROKERS]
    else:
        owners = [resource, _ALL_BROKERS]
    for owner in owners:
        image = configs.get(owner)
        for synonym in key.synonyms if image is not None else ():
            assert image is not None
            if synonym in image.data:
                value = image.data[synonym]
                factor = unit_ms(synonym)
                return value if factor == 1 else str(_number(value) * factor)
    return key.default or ""


def _destroys(name: str, now: str, then: str) -> bool:
    """Whether records may be deleted, or lost in an election, after a config gets another effective value."""
    try:
        if name in _RETENTION:
            before, after = (_number(value) for value in (now, then))
            return after >= 0 and (before < 0 or after < before)
        if name == _POLICY:
            return bool({*split_list(then)} - {*split_list(now)})
        on, off = (now, then) if name == _REMOTE else (then, now)
        return parse_boolean(on) and not parse_boolean(off)
    except ValueError:
        return True  # a value that Kafka does not take is nothing to be sure of


def _number(text: str) -> int:
    return parse_integer(text, 64)


def quota_class(entity: ClientQuotaEntity, name: str, now: Quotas, then: Quotas) -> StepClass:
    """The class of a change of a quota to its value in `then`: a higher or no limit is wider."""
    before, after = (_quota(quotas, entity, name) for quotas in (now, then))
    if after is None or (before is not None and after > before):
        return StepClass.ACCESS
    if before is not None:
        return StepClass.SAFE
    types = {type_ for type_, _ in entity.entries}
    defaults = (
        _quota(now, other, name)
        for other in now
        if all(value is None for _, value in other.entries) and {type_ for type_, _ in other.entries} <= types
    )
    return StepClass.ACCESS if any(one is not None and after > one for one in defaults) else StepClass.SAFE


def _quota(quotas: Quotas, entity: ClientQuotaEntity, name: str) -> float | None:
    image = quotas.get(entity)
    return None if image is None else image.quotas.get(name)


def acl_class(acl: StandardAcl, *, is_added: bool, then: Collection[StandardAcl]) -> StepClass:
    """The class of an ACL that is added or removed: an ALLOW that comes, a DENY that goes, are wider.

    So is the last ACL of a resource, which may be open to everybody without one (allow.everyone.if.no.acl.found).
    """
    if is_added:
        return StepClass.SAFE if acl.permission_type == AclPermissionType.DENY else StepClass.ACCESS
    if acl.permission_type == AclPermissionType.DENY:
        return StepClass.ACCESS
    resource = (acl.resource_type, acl.resource_name, acl.pattern_type)
    is_last = all((one.resource_type, one.resource_name, one.pattern_type) != resource for one in then)
    return StepClass.ACCESS if is_last else StepClass.SAFE
