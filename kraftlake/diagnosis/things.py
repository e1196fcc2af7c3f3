"""The things of a cluster that have a value at an offset, and the paths that name them: `broker/2/fenced`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

import attrs

from kraftlake.diagnosis.thing_kinds import FORMS, KINDS, fields_of
from kraftlake.image.client_quotas_image import ClientQuotaEntity
from kraftlake.image.configurations_image import ConfigResource
from kraftlake.image.kafka_names import CONFIG_RESOURCES, SCRAM_MECHANISMS
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.nodes.node import Subject
from kraftlake.image.scram_image import mechanism_name
from kraftlake.records.metadata_records import DelegationTokenRecord, UserScramCredentialRecord
from kraftlake.records.redaction import REDACTED, is_public, is_sensitive_config
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.words import did_you_mean

DEFAULT: Final = "<default>"
"""The name of a default in a path: of a config's resource, or of a quota's user, client id or IP."""

_QUOTA_TYPES: Final = ("user", "client-id", "ip")
_RESOURCE_TYPES: Final = {name: number for number, name in CONFIG_RESOURCES.items()}
_MECHANISMS: Final = {name: number for number, name in SCRAM_MECHANISMS.items()}
_ENTITIES: Final = ("topic", "partition", "broker", "acl", "scram", "token", "voter")
_RECORD_OF: Final = {"scram": UserScramCredentialRecord, "token": DelegationTokenRecord}
"""The record types that say which fields of a kind of thing are secret."""


@attrs.frozen(cache_hash=True)
class Thing:
    """A topic, a partition, a broker, a config, … (FORMS has all kinds), or one field of some.

    `kind` is a key of FORMS; `key` identifies the thing among those of its kind: a topic's name, (topic, number) of a
    partition, a broker's id, (ConfigResource, name) of a config, a feature's name, an ACL's id, (ClientQuotaEntity,
    quota) of a quota, (user, number of the mechanism) of a credential, a token's id, a voter's id. `field` is a key of
    the image's JSON form; None is the whole thing. `given` is the path that named it, if any.
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
        if kind not in KINDS:
            raise UsageError(
                f"{path!r} names nothing: {did_you_mean(kind, KINDS, most=1) or f'a path is one of {_forms()}.'}"
            )
        plain = ["" if name == DEFAULT else unquote(name) for name in names]
        return attrs.evolve(_PARSERS[kind](path, plain), given=path)

    @classmethod
    def of_subject(cls, subject: Subject | None, field: str | None = None) -> Thing | None:
        """The thing that a node of an image shows, or one field of it; None where a node shows no thing.

        Raises UsageError for a field that it does not have.
        """
        if subject is None or subject.kind not in KINDS or subject.key is None:
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

    def state(self, image: MetadataImage, quorum: QuorumState | None = None) -> Any:
        """The object from which the value is made, in an image or in the quorum; None where there is no such thing."""
        kind = KINDS[self.kind]
        if kind.in_quorum is not None:
            return None if quorum is None else kind.in_quorum(quorum, self.key)
        return kind.look(image, self.key)

    def value(self, image: MetadataImage) -> Any:
        """The value in an image, in the form of its JSON; true for a topic. None where the image lacks the thing."""
        return self.value_of(self.state(image))

    def value_of(self, state: Any) -> Any:
        """The value made from a state."""
        kind = KINDS[self.kind]
        if state is None:
            return None
        return kind.json(state) if self.field is None or kind.fields is None else kind.fields.value(state, self.field)

    def compared(self, state: Any) -> Any:
        """A value that differs between two states where their values differ; None for no state."""
        kind = KINDS[self.kind]
        if state is None:
            return None
        return kind.compared(state) if self.field is None or kind.fields is None else kind.fields.raw(state, self.field)

    def shown(self, value: Any) -> Any:
        """A value of this thing for display: `(redacted)` where it may be a secret."""
        if self.kind in _RECORD_OF:
            hidden = [name for name in value or () if not is_public(_RECORD_OF[self.kind], name)]
            return None if value is None else value | dict.fromkeys(hidden, REDACTED)
        is_secret = self.kind == "config" and is_sensitive_config(self.key[0].type, self.key[1])
        return REDACTED if is_secret and value is not None else value

    @property
    def is_entity(self) -> bool:
        """Whether the thing is a whole topic, partition, broker, …, which exists or does not."""
        return self.field is None and self.kind in _ENTITIES

    @property
    def topic_name(self) -> str | None:
        """The topic that the thing belongs to, and is removed with; None for all other things."""
        if self.kind == "config":
            resource: ConfigResource = self.key[0]
            return resource.name if resource.type_name == "TOPIC" else None
        if self.kind == "partition":
            return str(self.key[0])
        return str(self.key) if self.kind == "topic" else None


def paths_like(thing: Thing, image: MetadataImage) -> list[str]:
    """The paths in an image that resemble the path of a thing that it does not have."""
    keys = KINDS[thing.kind].keys(image)
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


def _parse_token(path: str, names: list[str]) -> Thing:
    if len(names) != 1 or not names[0]:
        raise _malformed(path, "token")
    return Thing("token", names[0])


def _parse_voter(path: str, names: list[str]) -> Thing:
    if len(names) != 1:
        raise _malformed(path, "voter")
    return Thing("voter", _number(path, names[0], "a voter's id"))


_PARSERS: Final[Mapping[str, Callable[[str, list[str]], Thing]]] = {
    "topic": _parse_topic,
    "broker": _parse_broker,
    "config": _parse_config,
    "feature": _parse_feature,
    "acl": _parse_acl,
    "quota": _parse_quota,
    "scram": _parse_scram,
    "token": _parse_token,
    "voter": _parse_voter,
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
