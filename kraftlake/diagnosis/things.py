"""The things of a cluster that have a value at an offset, and the paths that name them: `broker/2/fenced`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

import attrs

from kraftlake.image.client_quotas_image import ClientQuotaEntity
from kraftlake.image.configurations_image import ConfigResource
from kraftlake.image.features_image import METADATA_VERSION
from kraftlake.image.json_form import JsonForm, acl_json, broker_json, partition_json, scram_json
from kraftlake.image.kafka_names import CONFIG_RESOURCES, SCRAM_MECHANISMS
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.nodes.node import Subject
from kraftlake.image.scram_image import mechanism_name
from kraftlake.records.redaction import REDACTED, is_sensitive_config
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.words import did_you_mean

DEFAULT: Final = "<default>"
"""The name of a default in a path: of a config's resource, or of a quota's user, client id or IP."""

_QUOTA_TYPES: Final = ("user", "client-id", "ip")
_RESOURCE_TYPES: Final = {name: number for number, name in CONFIG_RESOURCES.items()}
_MECHANISMS: Final = {name: number for number, name in SCRAM_MECHANISMS.items()}


@attrs.frozen(kw_only=True)
class _Kind:
    """A kind of thing: the form of its paths, its keys and states in an image, and the JSON form of a state."""

    form: str
    keys: Callable[[MetadataImage], Iterable[Any]]
    """The keys in an image; for partitions the names of their topics."""
    look: Callable[[MetadataImage, Any], Any]
    """The state of a key in an image; None where the image does not have the key."""
    json: Callable[[Any], Any] = lambda state: state
    compared: Callable[[Any], Any] = lambda state: state
    """A value that differs between two states where their JSON forms differ, and is quickly made."""
    fields: JsonForm | None = None
    """The fields of a state that are things of their own."""


@attrs.frozen(cache_hash=True)
class Thing:
    """A topic, a partition, a broker, a config, a feature, an ACL, a quota or a SCRAM credential, or one field of some.

    `kind` is a key of FORMS; `key` identifies the thing among those of its kind: a topic's name, (topic, number) of a
    partition, a broker's id, (ConfigResource, name) of a config, a feature's name, an ACL's id, (ClientQuotaEntity,
    quota) of a quota, (user, number of the mechanism) of a credential. `field` is a key of the image's JSON form; None
    is the whole thing. `given` is the path that named it, if any.
    """

    kind: str
    key: Any
    field: str | None = None
    given: str | None = attrs.field(default=None, eq=False, repr=False, kw_only=True)

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """The thing's path."""
        return self.given or _path_to(self.kind, self.key) + ("" if self.field is None else f"/{self.field}")

    @classmethod
    def parse(cls, path: str) -> Thing:
        """The thing that a path names; FORMS has the forms. `%2F` stands for a slash in a name, `%25` for a percent.

        Raises UsageError for any other text.
        """
        kind, *names = path.split("/")
        if kind not in _KINDS:
            raise UsageError(
                f"{path!r} names nothing: {did_you_mean(kind, _KINDS, most=1) or f'a path is one of {_forms()}.'}"
            )
        plain = ["" if name == DEFAULT else unquote(name) for name in names]
        return attrs.evolve(_PARSERS[kind](path, plain), given=path)

    @classmethod
    def of_subject(cls, subject: Subject | None, field: str | None = None) -> Thing | None:
        """The thing that a node of an image shows, or one field of it; None where a node shows no thing.

        Raises UsageError for a field that it does not have.
        """
        if subject is None or subject.kind not in _KINDS or subject.key is None:
            return None
        whole = cls(*subject)
        if field is None:
            return whole
        if not fields_of(subject.kind):
            raise UsageError(f"{whole.text} has no fields: leave {field} out.")
        return cls(*subject, _field(whole.text, subject.kind, [field]))

    @classmethod
    def topic(cls, name: str) -> Thing:
        """A topic by its name; its value is whether it exists."""
        return cls("topic", name)

    @classmethod
    def partition(cls, topic: str, number: int, field: str | None = None) -> Thing:
        """A partition, or one field of it."""
        return cls("partition", (topic, number), field)

    @classmethod
    def broker(cls, broker: int, field: str | None = None) -> Thing:
        """A broker's registration, or one field of it."""
        return cls("broker", broker, field)

    @classmethod
    def config(cls, resource_type: str, resource: str, name: str) -> Thing:
        """A config of a resource, of the type that the image's JSON names; `""` is the default of its type."""
        number = _resource_type(resource_type)
        assert number is not None, f"{resource_type} is no type of resource"
        return cls("config", (ConfigResource(number, resource), name))

    @classmethod
    def credential(cls, user: str, mechanism: str) -> Thing:
        """A SCRAM credential by its user and the name of its mechanism."""
        return cls("scram", (user, _MECHANISMS[mechanism]))

    def state(self, image: MetadataImage) -> Any:
        """The object in an image from which the value is made; None where the image does not have the thing."""
        return _KINDS[self.kind].look(image, self.key)

    def value(self, image: MetadataImage) -> Any:
        """The value in an image, in the form of its JSON; true for a topic. None where the image lacks the thing."""
        return self.value_of(self.state(image))

    def value_of(self, state: Any) -> Any:
        """The value made from a state."""
        kind = _KINDS[self.kind]
        if state is None:
            return None
        return kind.json(state) if self.field is None or kind.fields is None else kind.fields.value(state, self.field)

    def compared(self, state: Any) -> Any:
        """A value that differs between two states where their values differ; None for no state."""
        kind = _KINDS[self.kind]
        if state is None:
            return None
        return kind.compared(state) if self.field is None or kind.fields is None else kind.fields.raw(state, self.field)

    def shown(self, value: Any) -> Any:
        """A value of this thing for display: `(redacted)` where it may be a secret."""
        if self.kind == "scram":
            return None if value is None else value | dict.fromkeys(value.keys() - {"iterations"}, REDACTED)
        is_secret = self.kind == "config" and is_sensitive_config(self.key[0].type, self.key[1])
        return REDACTED if is_secret and value is not None else value

    @property
    def is_entity(self) -> bool:
        """Whether the thing is a whole topic, partition, broker, ACL or credential, which exists or does not."""
        return self.field is None and self.kind in ("topic", "partition", "broker", "acl", "scram")

    @property
    def topic_name(self) -> str | None:
        """The topic that the thing belongs to, and is removed with; None for all other things."""
        if self.kind == "config":
            resource: ConfigResource = self.key[0]
            return resource.name if resource.type_name == "TOPIC" else None
        if self.kind == "partition":
            return str(self.key[0])
        return str(self.key) if self.kind == "topic" else None


def _partition(image: MetadataImage, key: Any) -> Any:
    topic = image.topics.get_topic(key[0])
    return None if topic is None else topic.partitions.get(key[1])


def _feature(image: MetadataImage, name: str) -> int | None:
    if name == METADATA_VERSION:
        version = image.features.metadata_version
        return None if version is None else version.level
    return image.features.finalized_versions.get(name)


def _quota(image: MetadataImage, key: Any) -> float | None:
    quotas = image.client_quotas.entities.get(key[0])
    return None if quotas is None else quotas.quotas.get(key[1])


def _config_keys(image: MetadataImage) -> list[Any]:
    resources = sorted(image.configs.resource_data.items(), key=lambda item: item[0])
    return [(resource, name) for resource, configs in resources for name in configs.data]


_KINDS: Final[Mapping[str, _Kind]] = {
    "topic": _Kind(
        form="topic/NAME",
        keys=lambda image: image.topics.topics_by_name(),
        look=lambda image, name: image.topics.get_topic(name),
        json=lambda _: True,
        compared=lambda _: True,
    ),
    "partition": _Kind(
        form="topic/NAME/partition/N[/FIELD]",
        keys=lambda image: image.topics.topics_by_name(),
        look=_partition,
        json=partition_json,
        fields=partition_json,
    ),
    "broker": _Kind(
        form="broker/ID[/FIELD]",
        keys=lambda image: sorted(image.cluster.brokers),
        look=lambda image, id_: image.cluster.brokers.get(id_),
        json=broker_json,
        compared=broker_json,
        fields=broker_json,
    ),
    "config": _Kind(
        form="config/TYPE/RESOURCE/NAME",
        keys=_config_keys,
        look=lambda image, key: image.configs.config_map(key[0]).get(key[1]),
    ),
    "feature": _Kind(
        form="feature/NAME",
        keys=lambda image: (METADATA_VERSION, *sorted(image.features.finalized_versions)),
        look=_feature,
    ),
    "acl": _Kind(
        form="acl/ID",
        keys=lambda image: image.acls.acls,
        look=lambda image, id_: image.acls.acls.get(id_),
        json=acl_json,
    ),
    "quota": _Kind(
        form="quota/user|client-id|ip/NAME[/…]/QUOTA",
        keys=lambda image: [(entity, key) for entity, one in image.client_quotas.in_order() for key in one.quotas],
        look=_quota,
    ),
    "scram": _Kind(
        form="scram/USER/MECHANISM",
        keys=lambda image: [(user, number) for number, users in image.scram.mechanisms.items() for user in users],
        look=lambda image, key: image.scram.mechanisms.get(key[1], {}).get(key[0]),
        json=scram_json,
    ),
}

FORMS: Final[Mapping[str, str]] = {name: kind.form for name, kind in _KINDS.items()}
"""The form of the paths of each kind of thing."""


def fields_of(kind: str) -> tuple[str, ...]:
    """The fields of a kind of thing, as the image's JSON names them; empty for kinds that are a single value."""
    fields = _KINDS[kind].fields
    return () if fields is None else fields.keys


def paths_like(thing: Thing, image: MetadataImage) -> list[str]:
    """The paths in an image that resemble the path of a thing that it does not have."""
    keys = _KINDS[thing.kind].keys(image)
    if thing.kind == "partition":
        name, number = thing.key
        topic = image.topics.get_topic(name)
        keys = [(one, number) for one in keys] if topic is None else [(name, one) for one in sorted(topic.partitions)]
    # a thing may be there and without a value, as metadata.version is in an image that has none yet
    return [Thing(thing.kind, key, thing.field).text for key in keys if key != thing.key]


def _path_to(kind: str, key: Any) -> str:
    match kind:
        case "partition":
            return path_of("topic", key[0], "partition", str(key[1]))
        case "config":
            return path_of("config", key[0].type_name, key[0].name, key[1])
        case "quota":
            return path_of("quota", *(part for entry in key[0].entries for part in entry), key[1])
        case "scram":
            return path_of("scram", key[0], mechanism_name(key[1]))
        case _:
            return path_of(kind, str(key))


def _parse_topic(path: str, names: list[str]) -> Thing:
    if len(names) == 1 and names[0]:
        return Thing("topic", names[0])
    if len(names) not in (3, 4) or not names[0] or names[1] not in ("partition", "partitions"):
        raise _malformed(path, "topic", "partition")
    return Thing(
        "partition", (names[0], _number(path, names[2], "a partition's number")), _field(path, "partition", names[3:])
    )


def _parse_broker(path: str, names: list[str]) -> Thing:
    if len(names) not in (1, 2):
        raise _malformed(path, "broker")
    return Thing("broker", _number(path, names[0], "a broker's id"), _field(path, "broker", names[1:]))


def _parse_config(path: str, names: list[str]) -> Thing:
    if len(names) != 3 or not names[2]:
        raise _malformed(path, "config")
    type_name = names[0].upper().replace("-", "_")
    number = _resource_type(type_name)
    if number is None:
        hint = did_you_mean(type_name, _RESOURCE_TYPES, most=1) or f"the types are {', '.join(_RESOURCE_TYPES)}."
        raise UsageError(f"{path!r}: {names[0]!r} is no type of resource with configs; {hint}")
    return Thing("config", (ConfigResource(number, names[1]), names[2]))


def _resource_type(name: str) -> int | None:
    """The number of a type of resource by its name in ConfigResource; None for another name."""
    unknown = re.fullmatch(r"UNKNOWN\((-?[0-9]{1,3})\)", name)
    return _RESOURCE_TYPES.get(name) if unknown is None else int(unknown[1])


def _parse_feature(path: str, names: list[str]) -> Thing:
    if len(names) != 1 or not names[0]:
        raise _malformed(path, "feature")
    return Thing("feature", names[0])


def _parse_acl(path: str, names: list[str]) -> Thing:
    if len(names) != 1:
        raise _malformed(path, "acl")
    try:
        return Thing("acl", Uuid.from_string(names[0]))
    except ValueError:
        raise UsageError(
            f"{path!r}: {names[0]!r} is not an ACL's id: it has 22 letters, digits, '-' and '_'."
        ) from None


def _parse_quota(path: str, names: list[str]) -> Thing:
    types = names[:-1:2]
    if len(names) not in (3, 5) or not names[-1] or len({*types}) < len(types):
        raise _malformed(path, "quota")
    for type_ in types:
        if type_ not in _QUOTA_TYPES:
            raise UsageError(f"{path!r}: {type_!r} is no type of entity with quotas: these are user, client-id and ip.")
    entries = zip(types, (name or None for name in names[1::2]), strict=True)
    return Thing("quota", (ClientQuotaEntity(tuple(sorted(entries))), names[-1]))


def _parse_scram(path: str, names: list[str]) -> Thing:
    if len(names) != 2:
        raise _malformed(path, "scram")
    if names[1] not in _MECHANISMS:
        known = ", ".join(name for name, number in _MECHANISMS.items() if number)
        raise UsageError(f"{path!r}: {names[1]!r} is no mechanism: these are {known}.")
    return Thing("scram", (names[0], _MECHANISMS[names[1]]))


_PARSERS: Final[Mapping[str, Callable[[str, list[str]], Thing]]] = {
    "topic": _parse_topic,
    "broker": _parse_broker,
    "config": _parse_config,
    "feature": _parse_feature,
    "acl": _parse_acl,
    "quota": _parse_quota,
    "scram": _parse_scram,
}


def _number(path: str, text: str, what: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 10) or int(text) >= 1 << 31:
        raise UsageError(f"{path!r}: {text!r} is not {what}: give a whole number.")
    return int(text)


def _field(path: str, kind: str, given: Sequence[str]) -> str | None:
    if not given:
        return None
    (field,) = given
    fields = fields_of(kind)
    if field not in fields:
        hint = did_you_mean(field, fields, most=1) or f"the fields are {', '.join(fields)}."
        raise UsageError(f"{path!r}: {field!r} is no field of a {kind}; {hint}")
    return field


def _malformed(path: str, *kinds: str) -> UsageError:
    return UsageError(f"{path!r} names nothing: it reads {' or '.join(FORMS[kind] for kind in kinds)}.")


def _forms() -> str:
    return ", ".join(FORMS.values())


def path_of(*names: str | None) -> str:
    """The path of names, with slashes and percent signs in them escaped; None is a default."""
    return "/".join(DEFAULT if name is None else name.replace("%", "%25").replace("/", "%2F") for name in names)
