"""Events of everything but topics and partitions: brokers, controllers, configs, quotas, ACLs, features, credentials.

They are made of the differences of two images that `kraftlake diff` shows, with the same secrets redacted or shown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.acls_image import AclsImage
from kraftlake.image.diff import EntryChange, FieldChange, diff_entries
from kraftlake.image.features_image import KRAFT_VERSION
from kraftlake.image.json_form import acl_json
from kraftlake.image.kafka_names import acl_words, quota_entity_words
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.quorum_state import QuorumState, voters_json
from kraftlake.runtime.java_values import parse_integer
from kraftlake.tables.events.events_table import Event

_CHANGES: Final = {
    "brokers": ("cluster_delta", "changed_brokers"),
    "controllers": ("cluster_delta", "changed_controllers"),
    "configs": ("configs_delta", "changes"),
    "clientQuotas": ("client_quotas_delta", "changes"),
    "acls": ("acls_delta", "changes"),
    "scram": ("scram_delta", "changes"),
    "delegationTokens": ("delegation_token_delta", "changes"),
}
"""The part of a MetadataDelta that has the changes of a part of a diff, and its attribute with them by key."""


def non_topic_events(
    deltas: Sequence[MetadataDelta], after: MetadataImage, *, show_secrets: bool = False
) -> Iterator[Event]:
    """The events of deltas that led to the image `after` one by one, at least one, of all but topics and partitions.

    The events are those of the difference, in the order of a diff. Sensitive configs are `(redacted)` unless
    `show_secrets`.
    """
    before = deltas[0].image
    keys = {part: named for part, of in _CHANGES.items() if (named := _keys(deltas, *of))}
    for change in diff_entries(before, after, keys):
        if change.part == "acls":
            yield from _acl_events(change.key, before.acls, after.acls)
        else:
            yield from _EVENTS[change.part](change if show_secrets else change.redacted())


def _keys(deltas: Sequence[MetadataDelta], part: str, attribute: str) -> set[Any]:
    """The keys that deltas name in a part; those of credentials are the users of all mechanisms."""
    changes = [getattr(found, attribute) for delta in deltas if (found := getattr(delta, part)) is not None]
    if not changes:
        return set()
    return {*chain(*(chain(*each.values()) if part == "scram_delta" else each for each in changes))}


def election_event(leader: int, epoch: int) -> Event:
    """The event of a new leader of the quorum."""
    subject = f"controller {leader}"
    sentence = f"{subject} leads the quorum in epoch {epoch}"
    return _event("controller_elected", subject, sentence, field="leader", after=str(leader))


def quorum_events(before: QuorumState, after: QuorumState) -> Iterator[Event]:
    """The events of two states of the quorum: of kraft.version, and of its voters by id."""
    if before.kraft_version != after.kraft_version:
        level = FieldChange("level", before.kraft_version, after.kraft_version)
        sentence = f"{KRAFT_VERSION} {_level_words(level)}"
        yield _event("feature_changed", f"feature {KRAFT_VERSION}", sentence, field=KRAFT_VERSION, **_sides(level))
    old, new = voters_json(before.voters), voters_json(after.voters)
    for voter in sorted({*old, *new}):
        subject, was, now = f"voter {voter}", old.get(voter), new.get(voter)
        if was is None:
            yield _event("voter_added", subject, f"controller {voter} is a voter of the quorum", after=now)
        elif now is None:
            yield _event("voter_removed", subject, f"controller {voter} is no longer a voter of the quorum", before=was)
        else:
            for name in (name for name in was if was[name] != now[name]):
                change = FieldChange(name, was[name], now[name])
                sentence = f"{subject} has {_change_words(change)}"
                yield _event("voter_changed", subject, sentence, field=name, **_sides(change))


def _event(
    kind: str,
    subject: str,
    sentence: str,
    *,
    field: str | None = None,
    before: Any = None,
    after: Any = None,
    topic: str | None = None,
    broker: int | None = None,
) -> Event:
    return (kind, subject, topic, None, None, broker, field, _text(before), _text(after), sentence)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, sort_keys=True)


def _values(change: EntryChange, of: str) -> Mapping[str, Any]:
    return {field.field: getattr(field, of) for field in change.fields}


def _broker_events(change: EntryChange) -> Iterator[Event]:
    broker = int(change.path[0])
    subject = f"broker {broker}"
    fields = {field.field: field for field in change.fields}

    def event(kind: str, words: str, **more: Any) -> Event:
        return _event(kind, subject, f"{subject} {words}", broker=broker, **more)

    if change.kind == "removed":
        yield event("broker_unregistered", "is no longer registered", before=_values(change, "before"))
        return
    if change.kind == "added":
        rack = fields["rack"].after
        words = f"is registered{f' in rack {rack}' if rack else ''}, {_fenced_words(fields['fenced'].after)}"
        yield event("broker_registered", words, after=_values(change, "after"))
        return
    if "incarnationId" in fields:
        incarnation = fields.pop("incarnationId")
        yield event("broker_registered", "has started anew", field="incarnationId", **_sides(incarnation))
        fields.pop("epoch", None)
    if (fenced := fields.pop("fenced", None)) is not None:
        kind = "broker_fenced" if fenced.after else "broker_unfenced"
        yield event(kind, f"is {_fenced_words(fenced.after)}", field="fenced", **_sides(fenced))
    if (stopping := fields.pop("inControlledShutdown", None)) is not None:
        words = "is in controlled shutdown" if stopping.after else "is no longer in controlled shutdown"
        kind = "broker_in_controlled_shutdown" if stopping.after else "broker_changed"
        yield event(kind, words, field="inControlledShutdown", **_sides(stopping))
    cordoned = fields.get("cordonedDirectories")
    if cordoned is not None and not cordoned.before and not cordoned.after:
        del fields["cordonedDirectories"]  # a registration that lists none is followed by a heartbeat with none
    for name, field_change in fields.items():
        yield event("broker_changed", f"has {_change_words(field_change)}", field=name, **_sides(field_change))


def _fenced_words(fenced: bool) -> str:
    return "fenced" if fenced else "unfenced"


def _controller_events(change: EntryChange) -> Iterator[Event]:
    subject = f"controller {change.path[0]}"
    if change.kind == "removed":
        sentence = f"{subject} is no longer registered"
        yield _event("controller_unregistered", subject, sentence, before=_values(change, "before"))
        return
    fields = {field.field: field for field in change.fields}
    if change.kind == "added":
        yield _event("controller_registered", subject, f"{subject} is registered", after=_values(change, "after"))
        return
    if "incarnationId" in fields:
        incarnation = fields.pop("incarnationId")
        sentence = f"{subject} has started anew"
        yield _event("controller_registered", subject, sentence, field="incarnationId", **_sides(incarnation))
    for name, field_change in fields.items():
        sentence = f"{subject} has {_change_words(field_change)}"
        yield _event("controller_changed", subject, sentence, field=name, **_sides(field_change))


def _node_id(name: str) -> int | None:
    """The id in the resource name of a broker's configs, read as Kafka does; a log may hold any name."""
    try:
        return parse_integer(name, 32)
    except ValueError:
        return None


def _config_events(change: EntryChange) -> Iterator[Event]:
    kind, name = change.path
    subject = f"{kind.lower()} {name}" if name else f"all {kind.lower()}s"
    topic = name if kind == "TOPIC" else None
    broker = _node_id(name) if kind == "BROKER" else None
    for config in change.fields:
        sentence = f"{subject} {'has' if name else 'have'} {_change_words(config)}"
        yield _event(
            "config_changed", subject, sentence, field=config.field, topic=topic, broker=broker, **_sides(config)
        )


def _quota_events(change: EntryChange) -> Iterator[Event]:
    subject = quota_entity_words(json.loads(change.path[0]))
    for field_change in change.fields:
        sentence = f"quota of {subject}: {_change_words(field_change)}"
        yield _event("quota_changed", subject, sentence, field=field_change.field, **_sides(field_change))


def _acl_events(id_: str, before: AclsImage, after: AclsImage) -> Iterator[Event]:
    """The events of an ACL; an ACL that is replaced under the same id is removed and added."""
    for of, image, kind, words in (
        ("before", before, "acl_removed", "removed"),
        ("after", after, "acl_added", "added"),
    ):
        acl = image.acls.get(Uuid.from_string(id_))
        if acl is not None:
            rule = acl_words(acl_json(acl))
            sides: dict[str, Any] = {of: rule}
            yield _event(kind, acl.principal, f"ACL {words}: {rule}", field=id_, **sides)


def _feature_events(change: EntryChange) -> Iterator[Event]:
    level = next((field for field in change.fields if field.field == "level"), None)
    if level is not None:
        subject = f"feature {change.key}"
        sentence = f"{change.key} {_level_words(level)}"
        yield _event("feature_changed", subject, sentence, field=change.key, **_sides(level))


def _level_words(change: FieldChange) -> str:
    if change.after is None:
        return f"is no longer finalized, it was at level {change.before}"
    return f"is at level {change.after}{'' if change.before is None else f' instead of {change.before}'}"


_DONE = {"added": "set", "changed": "changed", "removed": "removed"}


def _scram_events(change: EntryChange) -> Iterator[Event]:
    mechanism, user = change.path
    iterations = next((field for field in change.fields if field.field == "iterations"), None)
    sides = {} if iterations is None else _sides(iterations)
    sentence = f"credential {mechanism} of user {user} was {_DONE[change.kind]}"
    yield _event("scram_changed", f"user {user}", sentence, field=mechanism, **sides)


def _token_events(change: EntryChange) -> Iterator[Event]:
    done = {"added": "issued", "changed": "renewed or changed", "removed": "taken away"}[change.kind]
    subject = f"delegation token {change.key}"
    yield _event("delegation_token_changed", subject, f"{subject} was {done}")


def _sides(change: FieldChange) -> dict[str, Any]:
    return {"before": change.before, "after": change.after}


def _change_words(change: FieldChange) -> str:
    before, after = _text(change.before), _text(change.after)
    if before is None:
        return f"{change.field} set to {after}"
    if after is None:
        return f"{change.field} no longer set, it was {before}"
    return f"{change.field} changed: {before} → {after}"


_EVENTS: Final[Mapping[str, Callable[[EntryChange], Iterator[Event]]]] = {
    "features": _feature_events,
    "brokers": _broker_events,
    "controllers": _controller_events,
    "configs": _config_events,
    "clientQuotas": _quota_events,
    "scram": _scram_events,
    "delegationTokens": _token_events,
}
"""Makes the events of each part of a diff but ACLs, for which a diff has only the fields that differ."""
