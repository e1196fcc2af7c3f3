"""The differences between two images, by part, entry and field."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Set
from itertools import chain, compress, starmap
from operator import attrgetter, is_not
from typing import Any, Final, Generic, Literal, TypeVar

import attrs

from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotaImage
from kraftlake.image.configurations_image import ConfigResource, ConfigurationImage
from kraftlake.image.controller_registration import ControllerRegistration
from kraftlake.image.delegation_token_image import DelegationTokenData
from kraftlake.image.features_image import METADATA_VERSION
from kraftlake.image.json_form import (
    Json,
    JsonForm,
    acl_json,
    broker_json,
    controller_json,
    delegation_token_json,
    metadata_version_json,
    partition_json,
    scram_json,
)
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.scram_image import ScramCredentialData, mechanism_name
from kraftlake.image.short_repr import counted
from kraftlake.image.topics.packed_partitions import ids_that_may_differ
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.fast_construct import mutable_class
from kraftlake.records.metadata_records import DelegationTokenRecord, UserScramCredentialRecord
from kraftlake.records.metadata_version import MetadataVersion
from kraftlake.records.redaction import REDACTED, is_public, is_sensitive_config
from kraftlake.records.uuid import Uuid

Kind = Literal["added", "removed", "changed"]
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@attrs.frozen(weakref_slot=False)
class FieldChange:
    """The values of one field before and after, in the form of the image's JSON; None also means absent."""

    field: str
    before: Any = attrs.field(repr=False)
    after: Any = attrs.field(repr=False)


@attrs.frozen(kw_only=True, weakref_slot=False)
class EntryChange:
    """One broker, topic, partition, … that was added, removed or changed.

    `part` is one of PARTS; `key` is the entry's name in it (`foo-3` for a partition, `TOPIC:foo` for configs), `path`
    the elements of that name. An added entry has all fields, with None before; a removed one has all, with None after;
    a changed one has the fields that differ. Fields are in the order of the image's JSON. `secret` names the fields
    that are shown only with `show_secrets`.
    """

    part: str
    kind: Kind
    path: tuple[str, ...]
    key: str
    fields: tuple[FieldChange, ...]
    secret: frozenset[str] = frozenset()

    def redacted(self) -> EntryChange:
        """The same entry, with `(redacted)` in place of the values of its secret fields."""
        if not self.secret:
            return self
        fields = tuple(_redacted(change) if change.field in self.secret else change for change in self.fields)
        return attrs.evolve(self, fields=fields, secret=frozenset())

    def fields_json(self) -> Json:
        """The values of the fields; of a changed entry each as `[before, after]`."""
        if self.kind == "changed":
            return {change.field: [change.before, change.after] for change in self.fields}
        return {change.field: _only(self.kind, change) for change in self.fields}

    def describe(self, show_secrets: bool = False) -> str:
        """One line: `foo-3 leader 1 → 2, isr [1, 2, 3] → [2, 3]`."""
        entry = self if show_secrets else self.redacted()
        if self.kind == "changed":
            changes = (f"{change.field} {_text(change.before)} → {_text(change.after)}" for change in entry.fields)
            return f"{self.key} {', '.join(changes)}"
        values = (c.after if self.kind == "added" else c.before for c in entry.fields)
        shown = (f"{change.field} {_text(value)}" for change, value in zip(entry.fields, values, strict=True))
        return f"{self.key} {self.kind}: {', '.join(shown)}"


_MutableField: Any = mutable_class(FieldChange)
_MutableEntry: Any = mutable_class(EntryChange)
_new: Any = object.__new__


def _field_change(field: str, before: Any, after: Any) -> FieldChange:
    """A FieldChange, built fast: a diff makes many."""
    made = _new(_MutableField)
    made.field, made.before, made.after = field, before, after
    made.__class__ = FieldChange
    return made  # type: ignore[no-any-return]


@attrs.frozen(kw_only=True)
class ImageDiff:
    """All changes from the image at `from_offset` to the one at `to_offset`, in the order of PARTS and of keys.

    A topic that was deleted and created again under the same name is both removed and added, with its partitions.
    """

    from_offset: int
    to_offset: int
    changes: tuple[EntryChange, ...]

    def __repr__(self) -> str:
        return f"<ImageDiff of offsets {self.from_offset} to {self.to_offset}: {counted(changes=len(self.changes))}>"

    def is_empty(self) -> bool:
        """Whether the images are equal except for their provenance."""
        return not self.changes

    def to_json(self, show_secrets: bool = False) -> Json:
        """`{from, to, PART: {added: {key: entry}, removed: {key: entry}, changed: {key: {field: [before, after]}}}}`.

        Empty parts, and empty kinds within a part, are left out.
        """
        form: Json = {"from": self.from_offset, "to": self.to_offset}
        for change in self.changes:
            entry = change if show_secrets else change.redacted()
            kinds = form.setdefault(change.part, {})
            kinds.setdefault(change.kind, {})[change.key] = entry.fields_json()
        return form


_NO_SECRETS: Final = frozenset[str]()


@attrs.frozen(kw_only=True)
class Entries(Generic[K, V]):
    """Describes a part: its entries in an image, their names, JSON form and redaction; its changes between two maps."""

    part: str
    of: Callable[[MetadataImage], Any] | None = None
    """The entries of an image by key."""
    path: Callable[[K], tuple[str, ...]] = lambda key: (str(key),)
    form: Callable[[V], Json]
    separator: str = ""
    is_secret: Callable[[K, str], bool] | None = None

    def diff(
        self, before: MetadataImage, after: MetadataImage, keys: Iterable[K] | None = None
    ) -> Iterable[EntryChange]:
        """The changes between two images; `keys` as in `changes`."""
        assert self.of is not None, "the part has one map of entries"
        olds, news = self.of(before), self.of(after)
        return () if olds is news else self.changes(olds, news, keys=keys)

    def changes(
        self,
        olds: Mapping[K, V | None],
        news: Mapping[K, V | None],
        *,
        within: tuple[str, ...] = (),
        keys: Iterable[K] | None = None,
    ) -> Iterator[EntryChange]:
        """The changes between two maps, with paths that begin with `within`; `keys`: all keys that may differ.

        Identical objects are skipped, other values are compared by field.
        """
        for key in sorted({*olds, *news} if keys is None else keys, key=_ordered):
            old, new = olds.get(key), news.get(key)
            if old is new:
                continue
            kind: Kind = "added" if old is None else "removed" if new is None else "changed"
            fields = self._fields(old, new)
            if kind == "changed" and not fields:
                continue
            path = (*within, *self.path(key))
            secret: frozenset[str] = _NO_SECRETS
            if self.is_secret is not None:
                secret = frozenset(change.field for change in fields if self.is_secret(key, change.field))
            made = _new(_MutableEntry)  # built fast, as fields are
            made.part, made.kind, made.path, made.key = self.part, kind, path, self.separator.join(path)
            made.fields, made.secret = fields, secret
            made.__class__ = EntryChange
            yield made

    def _fields(self, old: V | None, new: V | None) -> tuple[FieldChange, ...]:
        """The fields that differ, or all of an entry that was added or removed."""
        if old is None or new is None:
            before, after = ({} if value is None else self.form(value) for value in (old, new))
            return tuple([_field_change(name, before.get(name), after.get(name)) for name in before | after])
        if isinstance(self.form, JsonForm):  # makes no JSON of equal fields
            return tuple(starmap(_field_change, self.form.changes(old, new)))
        before, after = self.form(old), self.form(new)
        names = before if before.keys() == after.keys() else before | after
        return tuple([_field_change(n, before.get(n), after.get(n)) for n in names if before.get(n) != after.get(n)])


def diff_images(before: MetadataImage, after: MetadataImage) -> ImageDiff:
    """The changes between two images. Objects that both images share are not compared."""
    diffs = compress(_DIFFS.values(), map(is_not, _PARTS_OF(before), _PARTS_OF(after)))
    changes = chain.from_iterable([diff(before, after) for _, diff in diffs])
    return ImageDiff(from_offset=before.offset, to_offset=after.offset, changes=tuple(changes))


def diff_entries(before: MetadataImage, after: MetadataImage, keys: Mapping[str, Set[Any]]) -> Iterator[EntryChange]:
    """The changes of features and of the entries that may differ, in the order of a diff.

    `keys` has by part of the diff the keys of these entries, for credentials the users.
    """
    for part, (of_image, diff) in _DIFFS.items():
        if getattr(before, of_image) is getattr(after, of_image):
            continue
        if part == "features":
            yield from diff(before, after)
        elif part in keys:
            yield from diff(before, after, keys[part])


_METADATA_VERSION = Entries[str, MetadataVersion](
    part="features",
    of=lambda image: {METADATA_VERSION: image.features.metadata_version},
    form=metadata_version_json,
)
FEATURES = Entries[str, int](
    part="features", of=attrgetter("features.finalized_versions"), form=lambda level: {"level": level}
)


def _features(before: MetadataImage, after: MetadataImage, _: object = None) -> Iterable[EntryChange]:
    """The change of metadata.version, then those of other features."""
    return chain(_METADATA_VERSION.diff(before, after), FEATURES.diff(before, after))


_BROKERS = Entries[int, BrokerRegistration](part="brokers", of=attrgetter("cluster.brokers"), form=broker_json)
_CONTROLLERS = Entries[int, ControllerRegistration](
    part="controllers", of=attrgetter("cluster.controllers"), form=controller_json
)
_TOPICS = Entries[str, TopicImage](part="topics", form=lambda topic: {"id": str(topic.id)})
_PARTITIONS = Entries[int, PartitionRegistration](part="partitions", form=partition_json, separator="-")


def _topics(before: MetadataImage, after: MetadataImage, _: object = None) -> Iterator[EntryChange]:
    """The topics added and removed, then the changes of partitions."""
    changed = _changed_topics(before.topics, after.topics)
    for name, old, new in changed:
        if old is None or new is None:
            yield from _TOPICS.changes({name: old}, {name: new})
    for name, old, new in changed:
        olds: Mapping[int, PartitionRegistration] = {} if old is None else old.partitions
        news: Mapping[int, PartitionRegistration] = {} if new is None else new.partitions
        yield from _PARTITIONS.changes(olds, news, within=(name,), keys=ids_that_may_differ(olds, news))


def _changed_topics(before: TopicsImage, after: TopicsImage) -> list[tuple[str, TopicImage | None, TopicImage | None]]:
    """Name, old and new image of every topic that may differ; a recreated topic comes twice: removed, then added."""
    changed: list[tuple[str, TopicImage | None, TopicImage | None]] = []
    for name in sorted(before.may_differ(after)):
        old, new = before.get_topic(name), after.get_topic(name)
        if old is new:
            continue
        if old is not None and new is not None and old.id != new.id:
            changed += [(name, old, None), (name, None, new)]
        else:
            changed.append((name, old, new))
    return changed


CONFIGS = Entries[ConfigResource, ConfigurationImage](
    part="configs",
    of=attrgetter("configs.resource_data"),
    path=lambda resource: (resource.type_name, resource.name),
    form=lambda image: dict(sorted(image.data.items())),
    separator=":",
    is_secret=lambda resource, name: is_sensitive_config(resource.type, name),
)
CLIENT_QUOTAS = Entries[ClientQuotaEntity, ClientQuotaImage](
    part="clientQuotas",
    of=attrgetter("client_quotas.entities"),
    path=lambda entity: (entity.text,),
    form=lambda image: dict(sorted(image.quotas.items())),
)
_PRODUCER_IDS = Entries[str, int](
    part="producerIds",
    of=lambda image: {"nextProducerId": image.producer_ids.next_producer_id},
    form=lambda id_: {"nextProducerId": id_},
)
_ACLS = Entries[Uuid, StandardAcl](part="acls", of=attrgetter("acls.acls"), form=acl_json)
_SCRAM = Entries[str, ScramCredentialData](
    part="scram",
    form=scram_json,
    separator=":",
    is_secret=lambda _, name: not is_public(UserScramCredentialRecord, name),
)


def _scram(before: MetadataImage, after: MetadataImage, users: Iterable[str] | None = None) -> Iterator[EntryChange]:
    olds, news = before.scram.mechanisms, after.scram.mechanisms
    for mechanism in sorted({*olds, *news}):
        name = mechanism_name(mechanism)
        yield from _SCRAM.changes(olds.get(mechanism) or {}, news.get(mechanism) or {}, within=(name,), keys=users)


_DELEGATION_TOKENS = Entries[str, DelegationTokenData](
    part="delegationTokens",
    of=attrgetter("delegation_tokens.tokens"),
    form=delegation_token_json,
    is_secret=lambda _, name: not is_public(DelegationTokenRecord, name),
)

PARTS: Final = (
    "features", "brokers", "controllers", "topics", "partitions", "configs", "clientQuotas", "producerIds", "acls",
    "scram", "delegationTokens",
)  # fmt: skip
"""The parts of a diff in their order."""


_DIFFS: Final[Mapping[str, tuple[str, Callable[..., Iterable[EntryChange]]]]] = {
    "features": ("features", _features),
    "brokers": ("cluster", _BROKERS.diff),
    "controllers": ("cluster", _CONTROLLERS.diff),
    "topics": ("topics", _topics),
    "configs": ("configs", CONFIGS.diff),
    "clientQuotas": ("client_quotas", CLIENT_QUOTAS.diff),
    "producerIds": ("producer_ids", _PRODUCER_IDS.diff),
    "acls": ("acls", _ACLS.diff),
    "scram": ("scram", _scram),
    "delegationTokens": ("delegation_tokens", _DELEGATION_TOKENS.diff),
}
"""By part of a diff, the part of an image that has its entries and the function that finds their changes.

A function finds the changes of two images, of some keys if not of all; partitions are found with topics.
"""


_PARTS_OF: Final[Callable[[MetadataImage], tuple[Any, ...]]] = attrgetter(*[part for part, _ in _DIFFS.values()])
"""The parts of an image, one for each of these functions."""

_WITH_AN_ORDER: Final = (int, str, ConfigResource)


def _ordered(key: Any) -> Any:
    """The sort key of an entry's key: the key if it has an order, else its text."""
    return key if isinstance(key, _WITH_AN_ORDER) else getattr(key, "text", str(key))


def _redacted(change: FieldChange) -> FieldChange:
    before = None if change.before is None else REDACTED
    return FieldChange(change.field, before, None if change.after is None else REDACTED)


def _only(kind: Kind, change: FieldChange) -> Any:
    return change.after if kind == "added" else change.before


def _text(value: Any) -> str:
    return "none" if value is None else str(value)
