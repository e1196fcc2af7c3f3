"""The declared form of a description: the mapping that `recreate` writes as YAML or JSON, and that is read back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs
from rpds import HashTrieMap

from kraftlake.diagnosis.drift.description import ClusterDescription, ScramDescription, TopicDescription
from kraftlake.diagnosis.drift.fields import Fields, config_text, number, refuse, whole_number
from kraftlake.diagnosis.drift.strimzi import STRIMZI, StrimziReader
from kraftlake.diagnosis.drift.yaml_documents import read_yaml
from kraftlake.image.acls_image import CODES, StandardAcl
from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotaImage
from kraftlake.image.configurations_image import ConfigResource, ConfigurationImage
from kraftlake.image.json_form import Json, acl_json, client_quota_json, configs_json
from kraftlake.image.kafka_names import CONFIG_RESOURCES, SCRAM_MECHANISMS, name_of
from kraftlake.records.schema import json_name
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.runtime.words import shown

API_VERSION: Final = "kraftlake/v1"
KIND: Final = "Cluster"
SUFFIXES: Final = (".yaml", ".yml", ".json")
"""The suffixes of declared files: no source of a log has one of them."""
_PARTS: Final = ("features", "topics", "configs", "clientQuotas", "acls", "scram")
_KEYS: Final = ("apiVersion", "kind", "clusterId", "offset", "timestamp", *_PARTS)
_ACL_KEYS: Final = {json_name(field): field for field in attrs.fields_dict(StandardAcl)}


def is_declared(path: str) -> bool:
    """Whether a path names a declared file, not a source of a log."""
    return path.lower().endswith(SUFFIXES) and "://" not in path and Path(path).is_file()


def read_declared(path: str) -> ClusterDescription:
    """The description in a file: the YAML or JSON that `recreate` writes, or resources of Strimzi.

    A part that the file lacks is not compared. Raises CorruptDataError with the place at fault.
    """
    documents = [Fields.of(path, one) for one in read_yaml(Path(path))]
    if not documents:
        raise CorruptDataError(f"{path} declares nothing: it is empty.")
    if len(documents) == 1 and documents[0].values.get("apiVersion") == API_VERSION:
        return from_form(documents[0])
    reader = StrimziReader()
    for document in documents:
        reader.add(document)
    if not reader.found:
        kinds = ", ".join(STRIMZI)
        raise CorruptDataError(
            f"{path} declares nothing that is known: its apiVersion has to be {API_VERSION}, as `kraftlake recreate "
            f"--as yaml` writes it, or it has resources of Strimzi ({kinds})."
        )
    return reader.description()


def to_form(description: ClusterDescription, *, show_secrets: bool = False) -> Json:
    """The declared form of a description; secrets are `(redacted)`, and keys of credentials left out, unless shown."""
    return {
        "features": dict(sorted(description.features.items())),
        "topics": {name: topic.to_json() for name, topic in sorted(description.topics.items())},
        "configs": configs_json(description.configs, show_secrets),
        "clientQuotas": [
            client_quota_json(entity, image)
            for entity, image in sorted(description.client_quotas.items(), key=lambda item: item[0].text)
        ],
        "acls": sorted(map(_acl_form, description.acls), key=lambda form: [*map(str, form.values())]),
        "scram": [
            {"user": user, "mechanism": mechanism}
            | {key: value for key, value in one.to_json().items() if show_secrets or key != "keys"}
            for (user, mechanism), one in sorted(description.scram.items())
        ],
    }


def _acl_form(acl: StandardAcl) -> Json:
    return {
        key: name_of(CODES[_ACL_KEYS[key]], value) if _ACL_KEYS[key] in CODES else value
        for key, value in acl_json(acl).items()
    }


def from_form(form: Fields) -> ClusterDescription:
    """The description in a declared form."""
    form.check_known(_KEYS)
    if form.values.get("kind", KIND) != KIND:
        raise CorruptDataError(f"{form.at('kind')} is {shown(str(form.values['kind']), 60)!r}, and has to be {KIND}.")
    stated = {name for name in _PARTS if name in form.values}
    levels = form.fields("features")
    topics = form.fields("topics")
    return ClusterDescription(
        features={name: whole_number(levels.at(name), value) for name, value in levels.values.items()},
        topics={name: _topic(topics.fields(name)) for name in topics.values},
        configs=_configs(form.fields("configs")),
        client_quotas={entity: one for entity, one in map(_quota, form.each("clientQuotas")) if one.quotas},
        acls={acl: acl for acl in map(_acl, form.each("acls"))},
        scram=dict(map(_scram, form.each("scram"))),
        covers=lambda part, _key: part in stated,
    )


def _topic(fields: Fields) -> TopicDescription:
    fields.check_known(("partitions", "replicationFactor", "replicas"))
    replicas = None
    if fields.values.get("replicas") is not None:
        place = fields.at("replicas")
        lists = fields.list_of("replicas")
        if not all(isinstance(one, list) for one in lists):
            refuse(place, lists, "a list of lists of brokers")
        replicas = tuple(tuple(whole_number(place, id_) for id_ in one) for one in lists)
    return TopicDescription(
        partitions=fields.whole("partitions"), replication_factor=fields.whole("replicationFactor"), replicas=replicas
    )


def _configs(fields: Fields) -> dict[ConfigResource, ConfigurationImage]:
    found = {}
    for type_name in fields.values:
        number_ = next((one for one, name in CONFIG_RESOURCES.items() if name == type_name), None)
        unknown = re.fullmatch(r"UNKNOWN\((-?[0-9]{1,3})\)", type_name)
        if number_ is None and unknown is None:
            known = ", ".join(CONFIG_RESOURCES.values())
            raise CorruptDataError(f"{fields.at(type_name)} is no type of resource with configs: these are {known}.")
        resources = fields.fields(type_name)
        for name in resources.values:
            resource = ConfigResource(int(unknown[1]) if unknown else number_ or 0, name)
            if resources.values[name]:
                found[resource] = configs_of(resource, resources.fields(name))
    return found


def configs_of(resource: ConfigResource, fields: Fields) -> ConfigurationImage:
    """The configs of a resource in a mapping."""
    values = {name: config_text(fields.at(name), value) for name, value in fields.values.items()}
    return ConfigurationImage(resource=resource, data=HashTrieMap(values))


def _quota(fields: Fields) -> tuple[ClientQuotaEntity, ClientQuotaImage]:
    fields.check_known(("entity", "quotas"))
    entity, quotas = fields.fields("entity"), fields.fields("quotas")
    names = tuple(sorted((type_, entity.optional_text(type_)) for type_ in entity.values))
    values = {name: number(quotas.at(name), value) for name, value in quotas.values.items()}
    return ClientQuotaEntity(names), ClientQuotaImage(HashTrieMap(values))


def _acl(fields: Fields) -> StandardAcl:
    fields.check_known(_ACL_KEYS)
    values: Mapping[str, Any] = {
        field: fields.one_of(key, CODES[field]) if field in CODES else fields.text(key)
        for key, field in _ACL_KEYS.items()
    }
    return StandardAcl(**values)


def _scram(fields: Fields) -> tuple[tuple[str, str], ScramDescription]:
    fields.check_known(("user", "mechanism", "iterations", "keys"))
    mechanism = fields.text("mechanism")
    if mechanism not in SCRAM_MECHANISMS.values():
        known = ", ".join(SCRAM_MECHANISMS.values())
        raise CorruptDataError(f"{fields.at('mechanism')}: {shown(mechanism, 60)!r} is not known; these are {known}.")
    described = ScramDescription(iterations=fields.whole("iterations"), fingerprint=fields.optional_text("keys"))
    return (fields.text("user"), mechanism), described
