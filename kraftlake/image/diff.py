"""What differs between two images, part by part and field by field."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from typing import Any, Generic, Literal, TypeVar

import attrs

from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotaImage
from kraftlake.image.configurations_image import ConfigResource, ConfigurationImage
from kraftlake.image.controller_registration import ControllerRegistration
from kraftlake.image.delegation_token_image import DelegationTokenData
from kraftlake.image.json_form import (
    Json,
    acl_json,
    broker_json,
    controller_json,
    delegation_token_json,
    metadata_version_json,
    partition_json,
    scram_json,
)
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.partition_registration import PartitionRegistration
from kraftlake.image.scram_image import ScramCredentialData, mechanism_name
from kraftlake.image.topics_image import TopicImage
from kraftlake.records.redaction import REDACTED, SCRAM_SECRETS, is_sensitive_config
from kraftlake.records.uuid import Uuid

Kind = Literal["added", "removed", "changed"]
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@attrs.frozen
class FieldChange:
    """One field, before and after, in the form that the image's JSON has it; None also stands for "not there"."""

    field: str
    before: Any = attrs.field(repr=False)
    after: Any = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class EntryChange:
    """One broker, topic, partition, … that was added, removed or changed.

    `part` is one of PARTS, `key` the entry's name in it (`foo-3` for a partition, `TOPIC:foo` for configs), `path`
    the same in pieces. An added entry has all its fields with None before, a removed one with None after, a changed
    one those that differ, in the order of the image's JSON. `secret` names the fields that are shown on demand only.
    """

    part: str
    kind: Kind
    path: tuple[str, ...]
    key: str
    fields: tuple[FieldChange, ...]
    secret: frozenset[str] = frozenset()

    def redacted(self) -> EntryChange:
        """The same without its secrets: what was or is set reads `(redacted)`."""
        if not self.secret:
            return self
        fields = tuple(_redacted(change) if change.field in self.secret else change for change in self.fields)
        return attrs.evolve(self, fields=fields, secret=frozenset())

    def describe(self, show_secrets: bool = False) -> str:
        """One line: `foo-3 leader 1 → 2, isr [1, 2, 3] → [2, 3]`."""
        entry = self if show_secrets else self.redacted()
        if self.kind == "changed":
            changes = (f"{change.field} {_text(change.before)} → {_text(change.after)}" for change in entry.fields)
            return f"{self.key} {', '.join(changes)}"
        values = (c.after if self.kind == "added" else c.before for c in entry.fields)
        shown = (f"{change.field} {_text(value)}" for change, value in zip(entry.fields, values, strict=True))
        return f"{self.key} {self.kind}: {', '.join(shown)}"


@attrs.frozen(kw_only=True)
class ImageDiff:
    """All changes from the image at `from_offset` to the one at `to_offset`, in the order of PARTS and of keys.

    A topic that was deleted and created again under its name is removed and added, and so are its partitions.
    """

    from_offset: int
    to_offset: int
    changes: tuple[EntryChange, ...]

    def is_empty(self) -> bool:
        """Whether the images differ in nothing but where they come from."""
        return not self.changes

    def by_part(self) -> dict[str, tuple[EntryChange, ...]]:
        """The changes of every part that has some."""
        parts: dict[str, list[EntryChange]] = {}
        for change in self.changes:
            parts.setdefault(change.part, []).append(change)
        return {part: tuple(changes) for part, changes in parts.items()}

    def to_json(self, show_secrets: bool = False) -> Json:
        """`{from, to, PART: {added: {key: entry}, removed: {key: entry}, changed: {key: {field: [before, after]}}}}`.

        Parts, and kinds within a part, that have nothing are left out.
        """
        form: Json = {"from": self.from_offset, "to": self.to_offset}
        for change in self.changes:
            entry = change if show_secrets else change.redacted()
            kinds = form.setdefault(change.part, {})
            kinds.setdefault(change.kind, {})[change.key] = {
                c.field: [c.before, c.after] if change.kind == "changed" else _only(change.kind, c)
                for c in entry.fields
            }
        return form


def diff_images(before: MetadataImage, after: MetadataImage) -> ImageDiff:
    """What changed between two images; what they share as one object is not looked into."""
    changes = [change for diff in PARTS.values() for change in diff(before, after)]
    return ImageDiff(from_offset=before.offset, to_offset=after.offset, changes=tuple(changes))


def _features(before: MetadataImage, after: MetadataImage) -> Iterator[EntryChange]:
    if before.features is after.features:
        return
    old, new = metadata_version_json(before.features), metadata_version_json(after.features)
    yield from _entry("features", ("metadata.version",), old, new)
    entries = _Entries[str, int](part="features", path=lambda name: (name,), form=lambda level: {"level": level})
    yield from entries.changes(before.features.finalized_versions, after.features.finalized_versions)


def _brokers(before: MetadataImage, after: MetadataImage) -> Iterator[EntryChange]:
    entries = _Entries[int, BrokerRegistration](part="brokers", path=lambda id_: (str(id_),), form=broker_json)
    yield from entries.changes(before.cluster.brokers, after.cluster.brokers)


def _controllers(before: MetadataImage, after: MetadataImage) -> Iterator[EntryChange]:
    entries = _Entries[int, ControllerRegistration](
        part="controllers", path=lambda id_: (str(id_),), form=controller_json
    )
    yield from entries.changes(before.cluster.controllers, after.cluster.controllers)


def _topics(before: MetadataImage, after: MetadataImage) -> Iterator[EntryChange]:
    for name, old, new in _changed_topics(before, after):
        if old is None or new is None:
            forms = [None if topic is None else {"id": str(topic.id)} for topic in (old, new)]
            yield from _entry("topics", (name,), *forms)


def _partitions(before: MetadataImage, after: MetadataImage) -> Iterator[EntryChange]:
    for name, old, new in _changed_topics(before, after):
        path = partial(_partition_path, name)
        entries = _Entries[int, PartitionRegistration](part="partitions", path=path, form=partition_json, separator="-")
        yield from entries.changes({} if old is None else old.partitions, {} if new is None else new.partitions)


def _partition_path(topic: str, partition: int) -> tuple[str, ...]:
    return topic, str(partition)


def _changed_topics(
    before: MetadataImage, after: MetadataImage
) -> Iterator[tuple[str, TopicImage | None, TopicImage | None]]:
    """Name, old and new image of every topic that differs; one created again comes twice: removed, then added."""
    for name in sorted(before.topics.may_differ(after.topics)):
        old, new = before.topics.get_topic(name), after.topics.get_topic(name)
        if old is new:
            continue
        if old is new:
            continue
        if old is not None and new is not None and old.id != new.id:
            yield name, old, None
            yield name, None, new
        else:
            yield name, old, new


def _configs(before: MetadataImage, after: MetadataImage) -> Iterator[EntryChange]:
    entries = _Entries[ConfigResource, ConfigurationImage](
        part="configs",
        path=lambda resource: (resource.type_name, resource.name),
        form=lambda image: dict(sorted(image.data.items())),
        separator=":",
        is_secret=lambda resource, name: is_sensitive_config(resource.type, name),
    )
    yield from entries.changes(before.configs.resource_data, after.configs.resource_data)


def _client_quotas(before: MetadataImage, after: MetadataImage) -> Iterator[EntryChange]:
    entries = _Entries[ClientQuotaEntity, ClientQuotaImage](
        part="clientQuotas",
        path=lambda entity: (entity.text,),
        form=lambda image: dict(sorted(image.quotas.items())),
    )
    yield from entries.changes(before.client_quotas.entities, after.client_quotas.entities)


def _producer_ids(before: MetadataImage, after: MetadataImage) -> Iterator[EntryChange]:
    old, new = before.producer_ids.next_producer_id, after.producer_ids.next_producer_id
    yield from _entry("producerIds", ("nextProducerId",), {"nextProducerId": old}, {"nextProducerId": new})


def _acls(before: MetadataImage, after: MetadataImage) -> Iterator[EntryChange]:
    entries = _Entries[Uuid, StandardAcl](part="acls", path=lambda id_: (str(id_),), form=acl_json)
    yield from entries.changes(before.acls.acls, after.acls.acls)


def _scram(before: MetadataImage, after: MetadataImage) -> Iterator[EntryChange]:
    if before.scram is after.scram:
        return
    olds, news = before.scram.mechanisms, after.scram.mechanisms
    for mechanism in sorted(_keys(olds, news)):
        entries = _Entries[str, ScramCredentialData](
            part="scram",
            path=partial(_user_path, mechanism_name(mechanism)),
            form=scram_json,
            separator=":",
            is_secret=lambda _, name: name in SCRAM_SECRETS,
        )
        yield from entries.changes(olds.get(mechanism) or {}, news.get(mechanism) or {})


def _user_path(mechanism: str, user: str) -> tuple[str, ...]:
    return mechanism, user


def _delegation_tokens(before: MetadataImage, after: MetadataImage) -> Iterator[EntryChange]:
    entries = _Entries[str, DelegationTokenData](
        part="delegationTokens",
        path=lambda id_: (id_,),
        form=delegation_token_json,
        is_secret=lambda _, __: True,  # as redact_delegation_token
    )
    yield from entries.changes(before.delegation_tokens.tokens, after.delegation_tokens.tokens)


PARTS: Mapping[str, Callable[[MetadataImage, MetadataImage], Iterator[EntryChange]]] = {
    "features": _features,
    "brokers": _brokers,
    "controllers": _controllers,
    "topics": _topics,
    "partitions": _partitions,
    "configs": _configs,
    "clientQuotas": _client_quotas,
    "producerIds": _producer_ids,
    "acls": _acls,
    "scram": _scram,
    "delegationTokens": _delegation_tokens,
}
"""The parts of a diff in their order, each with what finds its changes."""


@attrs.frozen(kw_only=True)
class _Entries(Generic[K, V]):
    """How the entries of a part are named, shown and kept secret."""

    part: str
    path: Callable[[K], tuple[str, ...]]
    form: Callable[[V], Json]
    separator: str = ""
    is_secret: Callable[[K, str], bool] = lambda _, __: False

    def changes(self, olds: Mapping[K, V], news: Mapping[K, V]) -> Iterator[EntryChange]:
        """The changes between two maps: values that are one object are skipped, the others compared by field."""
        if olds is news:
            return
        for key in sorted(_keys(olds, news), key=_ordered):
            old, new = olds.get(key), news.get(key)
            if old is new:
                continue
            old_form, new_form = None if old is None else self.form(old), None if new is None else self.form(new)
            secret = frozenset(name for name in (old_form or {}) | (new_form or {}) if self.is_secret(key, name))
            for change in _entry(self.part, self.path(key), old_form, new_form):
                yield attrs.evolve(change, key=self.separator.join(change.path), secret=secret)


def _entry(part: str, path: tuple[str, ...], old: Json | None, new: Json | None) -> Iterator[EntryChange]:
    if old == new:
        return
    kind: Kind = "added" if old is None else "removed" if new is None else "changed"
    before, after = old or {}, new or {}
    fields = [FieldChange(name, before.get(name), after.get(name)) for name in before | after]
    if kind == "changed":
        fields = [change for change in fields if change.before != change.after]
    yield EntryChange(part=part, kind=kind, path=path, key="".join(path), fields=tuple(fields))


def _keys(olds: Mapping[K, V], news: Mapping[K, V]) -> set[K]:
    return {*olds, *news}


def _ordered(key: Any) -> Any:
    """Ids by number, names by name, whatever else by what it prints."""
    return key if isinstance(key, int | str | ConfigResource) else getattr(key, "text", str(key))


def _redacted(change: FieldChange) -> FieldChange:
    before = None if change.before is None else REDACTED
    return FieldChange(change.field, before, None if change.after is None else REDACTED)


def _only(kind: Kind, change: FieldChange) -> Any:
    return change.after if kind == "added" else change.before


def _text(value: Any) -> str:
    return "none" if value is None else str(value)
