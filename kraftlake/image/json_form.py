"""An image as one JSON object, in the form that `kraftlake image --json` prints."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import compress
from operator import attrgetter, is_not
from typing import Any, Final

import attrs

from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotaImage
from kraftlake.image.configurations_image import ConfigResource, ConfigurationImage
from kraftlake.image.controller_registration import ControllerRegistration
from kraftlake.image.delegation_token_image import DelegationTokenData
from kraftlake.image.endpoint import Endpoint, VersionRange
from kraftlake.image.scram_image import ScramCredentialData
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.records.metadata_records import DelegationTokenRecord, UserScramCredentialRecord
from kraftlake.records.metadata_version import MetadataVersion
from kraftlake.records.redaction import REDACTED, is_public, redact_config
from kraftlake.records.schema import Message, json_name
from kraftlake.records.uuid import Uuid

Json = dict[str, Any]


class JsonForm:
    """Converts objects of an attrs class to JSON objects: attributes in order, names in camel case.

    `names` are the attributes, None for all; those in `without` are left out. In an object made from a record of the
    type `secrets_of`, the fields that the record hides are `(redacted)`.
    """

    def __init__(
        self,
        cls: type,
        names: Collection[str] | None = None,
        *,
        without: Collection[str] = (),
        secrets_of: type[Message] | None = None,
    ) -> None:
        types = {field.name: str(field.type) for field in attrs.fields(cls) if field.name not in without}
        names = tuple(types if names is None else names)
        keys = [_KEYS.get(name) or json_name(name) for name in names]
        makers = [
            _MAKERS[types[name]] if secrets_of is None or is_public(secrets_of, key) else _redacted
            for name, key in zip(names, keys, strict=True)
        ]
        self._fields = tuple(zip(keys, makers, strict=True))
        self._values = attrgetter(*names)
        self._by_key = {key: (attrgetter(name), make) for name, (key, make) in zip(names, self._fields, strict=True)}
        # One expression of all keys: a loop over them takes twice the time, a twentieth of a large image's answer.
        made = (
            f"{key!r}: shown.{name}" if make is None else f"{key!r}: {name}(shown.{name})"
            for name, (key, make) in zip(names, self._fields, strict=True)
        )
        self._form: Callable[[Any], Json] = eval(  # noqa: S307 - the source is ours: made from declarations
            f"lambda shown: {{{', '.join(made)}}}", dict(zip(names, makers, strict=True))
        )

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the JSON object."""
        return tuple(self._by_key)

    def __call__(self, shown: Any) -> Json:
        """The JSON object of an object."""
        return self._form(shown)

    def value(self, shown: Any, key: str) -> Any:
        """The value of one key of the JSON object."""
        get, make = self._by_key[key]
        return get(shown) if make is None else make(get(shown))

    def raw(self, shown: Any, key: str) -> Any:
        """The attribute behind a key of the JSON object."""
        return self._by_key[key][0](shown)

    def changes(self, old: Any, new: Any) -> list[tuple[str, Any, Any]]:
        """Key, old and new JSON value of each attribute in which two objects differ."""
        mine, theirs = self._values(old), self._values(new)
        values = compress(zip(self._fields, mine, theirs, strict=True), map(is_not, mine, theirs))
        return [
            (key, one, two) if make is None else (key, make(one), make(two))
            for (key, make), one, two in values
            if not one == two  # noqa: SIM201 - rpds' != says that maps are equal where one value is
        ]


_KEYS: Final = {"supported_features": "features"}
"""JSON keys that are not the attribute's name in camel case."""


def _redacted(_: Any) -> str:
    return REDACTED


def _ids_json(ids: Iterable[Uuid]) -> list[str]:
    return list(map(str, ids))


def _listeners_json(listeners: Mapping[str, Endpoint]) -> Json:
    return {name: _endpoint_json(endpoint) for name, endpoint in sorted(listeners.items())}


def _features_json(features: Mapping[str, VersionRange]) -> Json:
    return {name: [levels.min, levels.max] for name, levels in sorted(features.items())}


_MAKERS: Final[Mapping[str, Callable[[Any], Any] | None]] = {
    **dict.fromkeys(("int", "str", "bool", "str | None"), None),
    "bytes": bytes.hex,
    "Uuid": str,
    "LeaderRecoveryState": int,
    "tuple[int, ...]": list,
    "tuple[str, ...]": list,
    "tuple[Uuid, ...]": _ids_json,
    "tuple[Uuid, ...] | None": lambda ids: None if ids is None else _ids_json(ids),
    "HashTrieMap[str, Endpoint]": _listeners_json,
    "HashTrieMap[str, VersionRange]": _features_json,
}
"""The function that converts an attribute to JSON, by the attribute's type; None if its value is JSON already."""

_endpoint_json: Final = JsonForm(Endpoint)
metadata_version_json: Final = JsonForm(MetadataVersion)
broker_json: Final = JsonForm(BrokerRegistration, without=("id", "is_migrating_zk_broker"))
controller_json: Final = JsonForm(ControllerRegistration, without=("id",))
partition_json: Final = JsonForm(PartitionRegistration, (
    "replicas", "isr", "elr", "last_known_elr", "removing_replicas", "adding_replicas", "leader", "leader_epoch",
    "partition_epoch", "leader_recovery_state", "directories",
))  # fmt: skip
acl_json: Final = JsonForm(StandardAcl)
scram_json: Final = JsonForm(ScramCredentialData)
delegation_token_json: Final = JsonForm(DelegationTokenData)
redacted_scram_json: Final = JsonForm(ScramCredentialData, secrets_of=UserScramCredentialRecord)
redacted_token_json: Final = JsonForm(DelegationTokenData, secrets_of=DelegationTokenRecord)
"""One entry of each part; enums are Kafka's numbers."""


def client_quota_json(entity: ClientQuotaEntity, image: ClientQuotaImage) -> Json:
    """The quotas of one entity."""
    return {"entity": dict(entity.entries), "quotas": dict(sorted(image.quotas.items()))}


def configs_json(resource_data: Mapping[ConfigResource, ConfigurationImage], show_secrets: bool) -> Json:
    """The configs by type and name of their resource."""
    by_type: dict[str, Json] = {}
    for resource, image in sorted(resource_data.items(), key=lambda item: item[0]):
        by_type.setdefault(resource.type_name, {})[resource.name] = {
            name: value if show_secrets else redact_config(resource.type, name, value)
            for name, value in sorted(image.data.items())
        }
    return by_type
