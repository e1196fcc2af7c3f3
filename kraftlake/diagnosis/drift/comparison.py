"""Drift: what differs between two descriptions of clusters, as entries that were added, removed or changed."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, Final

import attrs

from kraftlake.diagnosis.drift.description import (
    PARTS,
    ClusterDescription,
    ScramDescription,
    TopicDescription,
    is_internal,
)
from kraftlake.diagnosis.things import path_of
from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.client_quotas_image import ClientQuotaEntity
from kraftlake.image.configurations_image import TOPIC_RESOURCE, ConfigResource
from kraftlake.image.diff import CLIENT_QUOTAS, CONFIGS, FEATURES, Entries, EntryChange, FieldChange
from kraftlake.image.json_form import Json, acl_json
from kraftlake.image.kafka_names import OPERATIONS, PATTERN_TYPES, PERMISSIONS, RESOURCE_TYPES, name_of
from kraftlake.records.redaction import REDACTED

KEYS: Final = "keys"
"""The field of a credential that stands for its salt and keys; its value is never shown."""


@attrs.frozen(kw_only=True)
class DriftChange:
    """An entry that differs: the change, the part's key of the entry, and the paths that patterns match."""

    change: EntryChange
    key: Any
    paths: tuple[str, ...]

    @property
    def path(self) -> str:
        """The path that names the entry."""
        return self.paths[0]


@attrs.frozen(kw_only=True)
class Drift:
    """All that differs from one description to another, in the order of PARTS and of keys.

    `not_compared` are the paths of fields that one side holds without their values: redacted configs, keys of
    credentials.
    """

    changes: tuple[DriftChange, ...]
    not_compared: tuple[str, ...] = ()

    def is_empty(self) -> bool:
        """Whether nothing that was compared differs."""
        return not self.changes

    def to_json(self, show_secrets: bool = False) -> Json:
        """`{equal, notCompared, PART: {added: {key: entry}, removed: …, changed: {key: {field: [before, after]}}}}`."""
        form: Json = {"equal": self.is_empty(), "notCompared": list(self.not_compared)}
        for one in self.changes:
            change = one.change if show_secrets and one.change.part != "scram" else one.change.redacted()
            form.setdefault(change.part, {}).setdefault(change.kind, {})[change.key] = change.fields_json()
        return form


_PARTS: Final[dict[str, Entries[Any, Any]]] = {
    "features": attrs.evolve(FEATURES, form=lambda level: {"level": level}),
    "brokers": Entries[int, Json](part="brokers", form=lambda broker: broker),
    "topics": Entries[str, TopicDescription](part="topics", form=TopicDescription.to_json),
    "configs": CONFIGS,
    "clientQuotas": CLIENT_QUOTAS,
    "acls": Entries[StandardAcl, StandardAcl](part="acls", path=lambda acl: (_acl_path(acl),), form=acl_json),
    "scram": Entries[tuple[str, str], ScramDescription](
        part="scram",
        path=lambda key: (key[1], key[0]),
        form=ScramDescription.to_json,
        separator=":",
        is_secret=lambda _, name: name == KEYS,
    ),
}


def compare(
    before: ClusterDescription, after: ClusterDescription, *, ignore: Sequence[str] = (), internal: bool = False
) -> Drift:
    """What differs from `before` to `after`, of what both cover.

    `ignore` are shell patterns of paths: an entry (`topic/__*` with its configs, `acl/User:ci/*`, `feature/*`) or one
    field of it (`config/TOPIC/*/retention.ms`). Internal topics are left out unless `internal`.
    """
    found: list[DriftChange] = []
    unknown: list[str] = []
    for part in PARTS:
        olds, news = before.part(part), after.part(part)
        if olds is news:
            continue
        keys = [
            key
            for key in {*olds, *news}
            if olds.get(key) is not news.get(key)
            and before.covers(part, key)
            and after.covers(part, key)
            and (internal or not is_internal(part, key))
        ]
        for paths, key in sorted([(paths_of(part, key), key) for key in keys], key=itemgetter(0)):
            if not any(_matches(path, ignore) for path in paths):
                for change in _PARTS[part].changes(olds, news, keys=[key]):
                    found += _compared(DriftChange(change=change, key=key, paths=paths), ignore, unknown)
    return Drift(changes=tuple(found), not_compared=tuple(unknown))


def _compared(one: DriftChange, ignore: Sequence[str], unknown: list[str]) -> Iterator[DriftChange]:
    """The change without ignored fields and those whose values one side does not state; `unknown` gets the latter."""
    change = one.change
    fields: list[FieldChange] = []
    for field in change.fields:
        path = f"{one.path}/{path_of(field.field)}"
        if _matches(path, ignore):
            continue
        if change.kind == "changed" and _is_unstated(change.part, field):
            if field.field == KEYS or change.part == "configs":
                unknown.append(path)
            continue
        fields.append(field)
    if fields or change.kind != "changed":
        yield attrs.evolve(one, change=attrs.evolve(change, fields=tuple(fields)))


def _is_unstated(part: str, field: FieldChange) -> bool:
    """Whether a field differs only because one side does not state its value."""
    values = (field.before, field.after)
    if part == "configs":
        return REDACTED in values and None not in values
    return None in values and part in ("topics", "scram")


def paths_of(part: str, key: Any) -> tuple[str, ...]:
    """The paths that name an entry, its own one first."""
    match part:
        case "features":
            return (path_of("feature", key),)
        case "configs":
            resource: ConfigResource = key
            own = path_of("config", resource.type_name, resource.name)
            return (own, path_of("topic", resource.name)) if resource.type == TOPIC_RESOURCE else (own,)
        case "clientQuotas":
            entity: ClientQuotaEntity = key
            return (path_of("quota", *(word for entry in entity.entries for word in entry)),)
        case "acls":
            acl: StandardAcl = key
            return (f"acl/{_acl_path(acl)}",)
        case "scram":
            return (path_of("scram", *key),)
        case _:
            return (path_of(part.removesuffix("s"), str(key)),)


def _acl_path(acl: StandardAcl) -> str:
    """All of an ACL in one text, whatever its names hold."""
    return path_of(
        acl.principal, name_of(RESOURCE_TYPES, acl.resource_type), acl.resource_name,
        name_of(PATTERN_TYPES, acl.pattern_type), name_of(OPERATIONS, acl.operation),
        name_of(PERMISSIONS, acl.permission_type), acl.host,
    )  # fmt: skip


def _matches(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)
