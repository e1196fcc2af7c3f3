"""The differences between two images, by part, entry and field."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, Generic, Literal, TypeVar

import attrs

from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotaImage
from kraftlake.image.configurations_image import ConfigResource, ConfigurationImage
from kraftlake.image.controller_registration import ControllerRegistration
from kraftlake.image.delegation_token_image import DelegationTokenData
from kraftlake.image.features_image import FeaturesImage
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
from kraftlake.image.producer_ids_image import ProducerIdsImage
from kraftlake.image.scram_image import ScramCredentialData, ScramImage, mechanism_name
from kraftlake.image.short_repr import counted
from kraftlake.image.topics.packed_partitions import ids_that_may_differ
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.redaction import REDACTED, SCRAM_SECRETS, TOKEN_ID, is_sensitive_config
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

    A topic that was deleted and created again under the same name is both removed and added, with its partitions.
    """

    from_offset: int
    to_offset: int
    changes: tuple[EntryChange, ...]

    def __repr__(self) -> str:
        return f"<ImageDiff of offsets {self.from_offset} to {self.to_offset}: {counted(changes=len(self.changes))}>"

    def is_empty(self) -> bool:
        """Whether the images are equal but for their provenance."""
        return not self.changes

    def to_json(self, show_secrets: bool = False) -> Json:
        """`{from, to, PART: {added: {key: entry}, removed: {key: entry}, changed: {key: {field: [before, after]}}}}`.

        Empty parts, and empty kinds within a part, are left out.
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


@attrs.frozen(kw_only=True)
class _Entries(Generic[K, V]):
    """How the entries of a part are named, shown and redacted."""

    part: str
    path: Callable[[K], tuple[str, ...]]
    form: Callable[[V], Json]
    separator: str = ""
    is_secret: Callable[[K, str], bool] | None = None
    fields_changed: Callable[[V, V], tuple[FieldChange, ...]] | None = None
    """The changed fields of two present values, where they can be found without making both forms."""

    def changes(
        self, olds: Mapping[K, V], news: Mapping[K, V], *, within: tuple[str, ...] = (), keys: Iterable[K] | None = None
    ) -> Iterator[EntryChange]:
        """The changes between two maps, with paths that begin with `within`; `keys`, if given, has all that may differ.

        Identical objects are skipped, other values are compared by field.
        """
        if olds is news:
            return
        for key in sorted({*olds, *news} if keys is None else keys, key=_ordered):
            old, new = olds.get(key), news.get(key)
            if old is new:
                continue
            if self.fields_changed is not None and old is not None and new is not None:
                fields = self.fields_changed(old, new)
                if fields:
                    path = (*within, *self.path(key))
                    key_text = self.separator.join(path)
                    yield EntryChange(part=self.part, kind="changed", path=path, key=key_text, fields=fields)
                continue
            before, after = None if old is None else self.form(old), None if new is None else self.form(new)
            if before == after:
                continue
            secret = frozenset[str]()
            if self.is_secret is not None:
                secret = frozenset(name for name in (before or {}) | (after or {}) if self.is_secret(key, name))
            path = (*within, *self.path(key))
            yield _entry(self.part, path, before, after, separator=self.separator, secret=secret)


def _entry(
    part: str,
    path: tuple[str, ...],
    old: Json | None,
    new: Json | None,
    *,
    separator: str = "",
    secret: frozenset[str] = frozenset(),
) -> EntryChange:
    if old is None or new is None:
        kind: Kind = "added" if old is None else "removed"
        before, after = old or {}, new or {}
        fields = [FieldChange(name, before.get(name), after.get(name)) for name in before | after]
    else:
        kind = "changed"
        names = old if old.keys() == new.keys() else old | new
        fields = [FieldChange(n, old.get(n), new.get(n)) for n in names if old.get(n) != new.get(n)]
    return EntryChange(part=part, kind=kind, path=path, key=separator.join(path), fields=tuple(fields), secret=secret)


def diff_images(before: MetadataImage, after: MetadataImage) -> ImageDiff:
    """The changes between two images. Objects that both images share are not compared."""
    changes: list[EntryChange] = []
    for diff, held in _SOURCES:
        old, new = getattr(before, held), getattr(after, held)
        if old is not new:
            changes += diff(old, new)
    return ImageDiff(from_offset=before.offset, to_offset=after.offset, changes=tuple(changes))


def _features(before: FeaturesImage, after: FeaturesImage) -> Iterator[EntryChange]:
    old, new = metadata_version_json(before), metadata_version_json(after)
    if old != new:
        yield _entry("features", ("metadata.version",), old, new)
    yield from _FEATURES.changes(before.finalized_versions, after.finalized_versions)


_FEATURES = _Entries[str, int](part="features", path=lambda name: (name,), form=lambda level: {"level": level})


_BROKERS = _Entries[int, BrokerRegistration](part="brokers", path=lambda id_: (str(id_),), form=broker_json)


_CONTROLLERS = _Entries[int, ControllerRegistration](
    part="controllers", path=lambda id_: (str(id_),), form=controller_json
)


def _topics(before: TopicsImage, after: TopicsImage) -> Iterator[EntryChange]:
    """The topics added and removed, then the changes of partitions."""
    changed = _changed_topics(before, after)
    for name, old, new in changed:
        if old is None or new is None:
            before_form, after_form = (None if topic is None else {"id": str(topic.id)} for topic in (old, new))
            yield _entry("topics", (name,), before_form, after_form)
    for name, old, new in changed:
        olds: Mapping[int, PartitionRegistration] = {} if old is None else old.partitions
        news: Mapping[int, PartitionRegistration] = {} if new is None else new.partitions
        yield from _PARTITIONS.changes(olds, news, within=(name,), keys=ids_that_may_differ(olds, news))


def _partition_fields_changed(old: PartitionRegistration, new: PartitionRegistration) -> tuple[FieldChange, ...]:
    values = zip(_PARTITION_FIELDS, _partition_values(old), _partition_values(new), strict=True)
    return tuple([FieldChange(name, form(one), form(two)) for (name, form), one, two in values if one != two])


_PARTITION_FIELDS: Final[tuple[tuple[str, Callable[[Any], Any]], ...]] = (
    ("replicas", list), ("isr", list), ("elr", list), ("lastKnownElr", list), ("removingReplicas", list),
    ("addingReplicas", list), ("leader", int), ("leaderEpoch", int), ("partitionEpoch", int),
    ("leaderRecoveryState", int), ("directories", lambda ids: list(map(str, ids))),
)  # fmt: skip
"""The fields of `partition_json`, each with the function that makes its form."""
_partition_values = attrgetter(
    "replicas", "isr", "elr", "last_known_elr", "removing_replicas", "adding_replicas", "leader", "leader_epoch",
    "partition_epoch", "leader_recovery_state", "directories",
)  # fmt: skip

_PARTITIONS = _Entries[int, PartitionRegistration](
    part="partitions",
    path=lambda id_: (str(id_),),
    form=partition_json,
    separator="-",
    fields_changed=_partition_fields_changed,
)


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


_CONFIGS = _Entries[ConfigResource, ConfigurationImage](
    part="configs",
    path=lambda resource: (resource.type_name, resource.name),
    form=lambda image: dict(sorted(image.data.items())),
    separator=":",
    is_secret=lambda resource, name: is_sensitive_config(resource.type, name),
)


_CLIENT_QUOTAS = _Entries[ClientQuotaEntity, ClientQuotaImage](
    part="clientQuotas", path=lambda entity: (entity.text,), form=lambda image: dict(sorted(image.quotas.items()))
)


def _producer_ids(before: ProducerIdsImage, after: ProducerIdsImage) -> Iterator[EntryChange]:
    old, new = before.next_producer_id, after.next_producer_id
    if old != new:
        yield _entry("producerIds", ("nextProducerId",), {"nextProducerId": old}, {"nextProducerId": new})


_ACLS = _Entries[Uuid, StandardAcl](part="acls", path=lambda id_: (str(id_),), form=acl_json)


def _scram(before: ScramImage, after: ScramImage) -> Iterator[EntryChange]:
    olds, news = before.mechanisms, after.mechanisms
    for mechanism in sorted({*olds, *news}):
        name = mechanism_name(mechanism)
        yield from _SCRAM.changes(olds.get(mechanism) or {}, news.get(mechanism) or {}, within=(name,))


_SCRAM = _Entries[str, ScramCredentialData](
    part="scram",
    path=lambda user: (user,),
    form=scram_json,
    separator=":",
    is_secret=lambda _, name: name in SCRAM_SECRETS,
)


_DELEGATION_TOKENS = _Entries[str, DelegationTokenData](
    part="delegationTokens",
    path=lambda id_: (id_,),
    form=delegation_token_json,
    is_secret=lambda _, name: name != TOKEN_ID,
)

PARTS: Final = (
    "features", "brokers", "controllers", "topics", "partitions", "configs", "clientQuotas", "producerIds", "acls",
    "scram", "delegationTokens",
)  # fmt: skip
"""The parts of a diff in their order."""


def _of(entries: _Entries[Any, Any], name: str) -> Callable[[Any, Any], Iterator[EntryChange]]:
    """Finds the changes of the entries that two images of a part hold under `name`."""
    return lambda before, after: entries.changes(getattr(before, name), getattr(after, name))


_SOURCES: tuple[tuple[Callable[[Any, Any], Iterator[EntryChange]], str], ...] = (
    (_features, "features"),
    (_of(_BROKERS, "brokers"), "cluster"),
    (_of(_CONTROLLERS, "controllers"), "cluster"),
    (_topics, "topics"),
    (_of(_CONFIGS, "resource_data"), "configs"),
    (_of(_CLIENT_QUOTAS, "entities"), "client_quotas"),
    (_producer_ids, "producer_ids"),
    (_of(_ACLS, "acls"), "acls"),
    (_scram, "scram"),
    (_of(_DELEGATION_TOKENS, "tokens"), "delegation_tokens"),
)
"""The functions that find the changes of PARTS, each with the attribute of the image that it compares."""


_WITH_AN_ORDER: Final = (int, str, ConfigResource)


def _ordered(key: Any) -> Any:
    """The sort key of an entry's key: itself where it has an order, else its text."""
    return key if isinstance(key, _WITH_AN_ORDER) else getattr(key, "text", str(key))


def _redacted(change: FieldChange) -> FieldChange:
    before = None if change.before is None else REDACTED
    return FieldChange(change.field, before, None if change.after is None else REDACTED)


def _only(kind: Kind, change: FieldChange) -> Any:
    return change.after if kind == "added" else change.before


def _text(value: Any) -> str:
    return "none" if value is None else str(value)
