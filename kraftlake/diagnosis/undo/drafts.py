"""Steps before their evidence is known: one or more for each entry that differs between two states of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from kraftlake.diagnosis.drift.comparison import KEYS, DriftChange
from kraftlake.diagnosis.drift.description import ClusterDescription, TopicDescription
from kraftlake.diagnosis.leadership import broker_words
from kraftlake.diagnosis.things import Thing
from kraftlake.diagnosis.undo.evidence import Undone, acl_things, hashable
from kraftlake.diagnosis.undo.risks import acl_class, config_class, quota_class
from kraftlake.diagnosis.undo.step import THROTTLES, Action, Step, StepChange, StepClass
from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.client_quotas_image import ClientQuotaEntity
from kraftlake.image.configurations_image import TOPIC_RESOURCE, ConfigResource
from kraftlake.image.json_form import acl_json
from kraftlake.image.kafka_names import acl_words
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records.redaction import REDACTED

KEYS_LOST: Final = (
    "the log has the stored keys and a request takes a password: set it again with kafka-configs.sh --alter "
    "--add-config 'SCRAM-SHA-…=[password=…]'"
)
_LACKED: Final = "the source was made without secrets, and lacks the value"
_NEW_ID: Final = "it comes back under a new id and without its records"


@attrs.frozen(kw_only=True)
class Draft:
    """A step without evidence, and the things with the values whose loss each of its fields is about."""

    step: Step
    undone: Mapping[str, tuple[Undone, ...]] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Sides:
    """The two states of a cluster: the present one and the one that is brought back."""

    present: MetadataImage
    past: MetadataImage
    now: ClusterDescription
    then: ClusterDescription


def drafts_of(sides: Sides, one: DriftChange, *, assignments: bool = False) -> Iterator[Draft]:
    """The steps of an entry that differs, from what it is to what it was."""
    match one.change.part:
        case "topics":
            yield from _topic(sides, one, assignments=assignments)
        case "configs":
            yield from _configs(sides, one)
        case "clientQuotas":
            yield from _quotas(sides, one)
        case "acls":
            yield _acl(sides, one)
        case "scram":
            yield _scram(sides, one)
        case "features":
            yield _feature(one)


def _draft(action: Action, class_: StepClass, one: DriftChange, subject: Mapping[str, Any], **more: Any) -> Draft:
    undone = more.pop("undone", {})
    changes = more.pop("changes", None)
    if changes is None:
        secret = one.change.secret
        changes = tuple(
            StepChange(field=c.field, before=c.before, after=c.after, secret=c.field in secret)
            for c in one.change.fields
        )
    step = Step(action=action, step_class=class_, path=one.path, subject=subject, changes=changes, **more)
    return Draft(step=step, undone=undone)


def _topic(sides: Sides, one: DriftChange, *, assignments: bool) -> Iterator[Draft]:
    name: str = one.key
    now, then = sides.now.topics.get(name), sides.then.topics.get(name)
    subject = {"topic": name}
    if now is None and then is not None:
        yield _created(sides, one, then)
        if assignments:
            yield from _reassigned(sides, one, TopicDescription(), then)
        return
    if now is not None and then is None:
        gone = (Undone(Thing.topic(name), None),)
        note = "it was made since; its records are deleted with it"
        changes = _of_topic(now, None)
        undone = dict.fromkeys(("partitions", "replicationFactor"), gone)
        yield _draft(
            Action.DELETE_TOPIC, StepClass.DESTRUCTIVE, one, subject, changes=changes, undone=undone, note=note
        )
        return
    assert now is not None
    assert then is not None
    yield from _resized(sides, one, now, then)
    if not assignments:
        return
    yield from _reassigned(sides, one, now, then)


def _reassigned(sides: Sides, one: DriftChange, now: TopicDescription, then: TopicDescription) -> Iterator[Draft]:
    name: str = one.key
    moved = _moved(sides, now, then)
    if moved:
        changes = tuple(StepChange(field=field, before=before, after=after) for field, (before, after) in moved.items())
        undone_by = {
            field: (Undone(Thing.partition(name, int(field), "replicas"), tuple(after)),)
            for field, (_, after) in moved.items()
        }
        yield _draft(Action.REASSIGN, StepClass.SAFE, one, {"topic": name}, changes=changes, undone=undone_by)


def _moved(
    sides: Sides, now: TopicDescription, then: TopicDescription
) -> dict[str, tuple[list[int] | None, list[int]]]:
    """The replicas of each partition that moves back, now and then; None for a new one, which Kafka places first.

    A partition of which a broker is not registered stays where it is.
    """
    befores, afters = now.replicas or (), then.replicas or ()
    moved: dict[str, tuple[list[int] | None, list[int]]] = {
        str(number): (list(before), list(after))
        for number, (before, after) in enumerate(zip(befores, afters, strict=False))
        if before != after
    }
    placed, _ = _placed(sides, afters[len(befores) :], befores)
    if len(afters) > len(befores) and not placed:
        moved |= {str(number): (None, list(afters[number])) for number in range(len(befores), len(afters))}
    known = sides.present.cluster.brokers
    return {field: (before, after) for field, (before, after) in moved.items() if all(id_ in known for id_ in after)}


def _of_topic(before: TopicDescription | None, after: TopicDescription | None) -> tuple[StepChange, ...]:
    """The partitions and the replication factor of a topic that comes or goes."""
    fields = {"partitions": "partitions", "replicationFactor": "replication_factor"}
    return tuple(
        StepChange(
            field=name,
            before=None if before is None else getattr(before, attribute),
            after=None if after is None else getattr(after, attribute),
        )
        for name, attribute in fields.items()
    )


def _created(sides: Sides, one: DriftChange, then: TopicDescription) -> Draft:
    """A topic that comes back: on its brokers, where these are active."""
    changes, elsewhere = _placed(sides, then.replicas or ())
    changes = (*_of_topic(None, then), *changes)
    note = _NEW_ID + (f", and on brokers that Kafka chooses: {elsewhere}" if elsewhere else "")
    undone = dict.fromkeys((change.field for change in changes), (Undone(Thing.topic(one.key), True),))
    return _draft(
        Action.CREATE_TOPIC, StepClass.PARTIAL, one, {"topic": one.key}, changes=changes, undone=undone, note=note
    )


def _placed(
    sides: Sides, replicas: Sequence[tuple[int, ...]], beside: Sequence[tuple[int, ...]] = ()
) -> tuple[tuple[StepChange, ...], str]:
    """The assignment of new partitions to the brokers that they had, beside those that a topic has.

    Without it, the reason why it can't be had.
    """
    brokers = sides.present.cluster.brokers
    away = sorted({id_ for lists in replicas for id_ in lists if id_ not in brokers})
    if away:
        return (), f"{broker_words(away)} {'is' if len(away) == 1 else 'are'} not registered"
    if any(all(brokers[id_].fenced for id_ in lists) for lists in replicas):
        return (), "all brokers of a partition are fenced"
    if len({len(lists) for lists in (*replicas, *beside[:1])}) != 1:
        return (), "its partitions had unlike numbers of replicas"
    return (StepChange(field="replicas", before=None, after=[list(lists) for lists in replicas]),), ""


def _resized(sides: Sides, one: DriftChange, now: TopicDescription, then: TopicDescription) -> Iterator[Draft]:
    before, after = now.partitions or 0, then.partitions or 0
    if before == after:
        return
    subject = {"topic": one.key}
    changes: tuple[StepChange, ...] = (StepChange(field="partitions", before=before, after=after),)
    if before > after:
        undone = {"partitions": (Undone(Thing.partition(one.key, after, "replicas"), None),)}
        note = "partitions can't become fewer: they stay"
        yield _draft(Action.NONE, StepClass.PARTIAL, one, subject, changes=changes, undone=undone, note=note)
        return
    placed, elsewhere = _placed(sides, (then.replicas or ())[before:], now.replicas or ())
    note = "they come back empty" + (f", on brokers that Kafka chooses: {elsewhere}" if elsewhere else "")
    yield _draft(Action.ADD_PARTITIONS, StepClass.PARTIAL, one, subject, changes=(*changes, *placed), note=note)


def _configs(sides: Sides, one: DriftChange) -> Iterator[Draft]:
    """A step for the configs of each class: safe ones for a topic that comes back, none for one that goes."""
    resource: ConfigResource = one.key
    is_of_topic = resource.type == TOPIC_RESOURCE
    if is_of_topic and resource.name not in sides.then.topics:
        return
    is_made = is_of_topic and resource.name not in sides.now.topics
    by_class: dict[tuple[StepClass, bool], list[StepChange]] = {}
    undone = {}
    for change in one.change.fields:
        ends_throttle = change.after is None and change.field in THROTTLES  # a step of its own, at the end
        class_ = StepClass.SAFE
        if change.after == REDACTED:
            class_ = StepClass.IMPOSSIBLE
        elif not is_made:
            class_ = config_class(resource, change.field, sides.now.configs, sides.then.configs)
        secret = change.field in one.change.secret
        by_class.setdefault((class_, ends_throttle), []).append(
            StepChange(field=change.field, before=change.before, after=change.after, secret=secret)
        )
        thing = Thing.config(resource.type_name, resource.name, change.field)
        undone[change.field] = (Undone(thing, change.after),)
    subject = {"type": resource.type_name, "name": resource.name}
    for (class_, _), changes in by_class.items():
        action, note = (Action.NONE, _LACKED) if class_ is StepClass.IMPOSSIBLE else (Action.ALTER_CONFIGS, "")
        yield _draft(action, class_, one, subject, changes=tuple(changes), undone=undone, note=note)


def _quotas(sides: Sides, one: DriftChange) -> Iterator[Draft]:
    entity: ClientQuotaEntity = one.key
    by_class: dict[StepClass, list[StepChange]] = {}
    undone = {}
    for change in one.change.fields:
        class_ = quota_class(entity, change.field, sides.now.client_quotas, sides.then.client_quotas)
        by_class.setdefault(class_, []).append(StepChange(field=change.field, before=change.before, after=change.after))
        undone[change.field] = (Undone(Thing("quota", (entity, change.field)), change.after),)
    for class_, changes in by_class.items():
        subject = {"entity": dict(entity.entries)}
        yield _draft(Action.ALTER_QUOTAS, class_, one, subject, changes=tuple(changes), undone=undone)


def _acl(sides: Sides, one: DriftChange) -> Draft:
    acl: StandardAcl = one.key
    is_added = one.change.kind == "added"
    form = acl_json(acl)
    words = acl_words(form)
    change = StepChange(field="acl", before=None if is_added else words, after=words if is_added else None)
    owner = sides.past if is_added else sides.present
    undone = {"acl": tuple(Undone(thing, True if is_added else None) for thing in acl_things(acl, owner))}
    class_ = acl_class(acl, is_added=is_added, then=sides.then.acls)
    action = Action.CREATE_ACL if is_added else Action.DELETE_ACL
    return _draft(action, class_, one, {"acl": form}, changes=(change,), undone=undone)


def _scram(sides: Sides, one: DriftChange) -> Draft:
    user, mechanism = one.key
    subject = {"user": user, "mechanism": mechanism}
    is_changed = one.change.kind == "changed"  # else the iterations say that there is a credential
    changes = tuple(
        StepChange(field=c.field, before=REDACTED, after=REDACTED, secret=True)
        if c.field == KEYS
        else StepChange(field=c.field, before=c.before, after=c.after)
        for c in one.change.fields
        if is_changed or c.field != KEYS
    )
    thing = Thing.credential(user, mechanism)
    undone = dict.fromkeys((change.field for change in changes), (Undone(thing, hashable(thing.value(sides.past))),))
    action, class_, note = Action.NONE, StepClass.IMPOSSIBLE, KEYS_LOST
    if one.change.kind == "removed":
        action, class_, note = Action.DELETE_SCRAM, StepClass.DESTRUCTIVE, "the user was made since"
    return _draft(action, class_, one, subject, changes=changes, undone=undone, note=note)


def _feature(one: DriftChange) -> Draft:
    (change,) = one.change.fields
    note = "Kafka refuses a downgrade that would lose metadata" if (change.after or 0) < (change.before or 0) else ""
    undone = {change.field: (Undone(Thing("feature", one.key), change.after),)}
    return _draft(Action.UPDATE_FEATURE, StepClass.SAFE, one, {"feature": one.key}, undone=undone, note=note)
