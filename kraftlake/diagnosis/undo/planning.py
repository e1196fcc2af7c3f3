"""The plan from one state of a cluster to an earlier one, with the evidence of the log between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from kraftlake.diagnosis.drift.comparison import DriftChange, compare
from kraftlake.diagnosis.drift.description import describe
from kraftlake.diagnosis.drift.selection import selected_changes
from kraftlake.diagnosis.things import path_of
from kraftlake.diagnosis.undo.drafts import Draft, Sides, drafts_of
from kraftlake.diagnosis.undo.evidence import evidence_of
from kraftlake.diagnosis.undo.order import in_order
from kraftlake.diagnosis.undo.plan import Plan, State
from kraftlake.diagnosis.undo.step import Action, Step, StepChange, StepClass
from kraftlake.diagnosis.undo.throttle import RATE, left_throttles, throttle_steps
from kraftlake.image.configurations_image import TOPIC_RESOURCE
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.queries.source import LogSource
from kraftlake.runtime.errors import NoSuchThingError, OffsetError
from kraftlake.runtime.words import counted, in_words


def plan_undo(
    source: LogSource,
    then: int,
    now: int,
    *,
    topics: Sequence[str] = (),
    kinds: Sequence[str] = (),
    assignments: bool = False,
    throttle: int = RATE,
    lenient: bool = False,
) -> Plan:
    """The plan that brings back the state after the offset `then`, from that after `now`.

    `topics` (names or shell patterns) and `kinds` (words of KINDS) select what is undone, by default all but internal
    topics. `assignments` also moves partitions back, each broker at most `throttle` bytes a second. Raises OffsetError
    where `then` is later than `now`, NoSuchThingError for a topic that neither state has, else as `LogSource.replay`.
    """
    if then > now:
        raise OffsetError(f"Offset {then} is later than {now}: a plan goes back, so give an earlier moment.")
    past, present = (source.replay(at, lenient=lenient).image for at in (then, now))
    sides = sides_of(present, past)
    drift = compare(sides.now, sides.then, internal=True)
    found = selected_changes(drift, topics, kinds).changes
    if assignments:
        selected = {one.path for one in found}
        found += tuple(one for one in left_throttles(drift, topics, throttle) if one.path not in selected)
    if not found:
        _check_topics(topics, sides, then, now)
    ownerless = [one for one in found if _is_ownerless(sides, found, one)]
    found = tuple(one for one in found if one not in ownerless)
    drafts = [draft for one in found for draft in drafts_of(sides, one, assignments=assignments)]
    steps = _proven(source, drafts, then, now, lenient=lenient)
    if assignments:
        steps += throttle_steps(sides, steps, throttle)
    whole = not topics and not kinds
    if whole:
        steps += _lost_tokens(sides)
    return Plan(
        cluster_id=source.cluster_id,
        now=State.of(present.provenance),
        then=State.of(past.provenance),
        topics=tuple(topics),
        kinds=tuple(kinds),
        assignments=assignments,
        steps=tuple(in_order(steps)),
        notes=tuple(_notes(sides, found, ownerless, assignments=assignments, whole=whole)),
    )


def sides_of(present: MetadataImage, past: MetadataImage) -> Sides:
    """Two images of a cluster with their descriptions."""
    now, then = (describe(image, also=("placement",)) for image in (present, past))
    return Sides(present=present, past=past, now=now, then=then)


def _proven(source: LogSource, drafts: Sequence[Draft], then: int, now: int, *, lenient: bool) -> list[Step]:
    """The steps with the records that undid what they bring back."""
    undone = [one for draft in drafts for things in draft.undone.values() for one in things]
    evidence = evidence_of(source, undone, then, now, lenient=lenient)
    steps = []
    for draft in drafts:
        changes = []
        for change in draft.step.changes:
            known = [evidence[one] for one in draft.undone.get(change.field, ()) if one in evidence]
            proof = max(known, key=lambda one: one.offset, default=None)
            changes.append(attrs.evolve(change, undone_by=proof))
        steps.append(attrs.evolve(draft.step, changes=tuple(changes)))
    return steps


def _check_topics(topics: Sequence[str], sides: Sides, then: int, now: int) -> None:
    """Raise NoSuchThingError where a name, without * and ?, is of a topic that neither state has."""
    known = {*sides.now.topics, *sides.then.topics}
    for name in topics:
        if not {"*", "?", "["} & {*name} and name not in known:
            raise NoSuchThingError(f"There is no topic {name} at offset {then}, nor at {now}.")


def _notes(
    sides: Sides, found: Sequence[DriftChange], ownerless: Sequence[DriftChange], *, assignments: bool, whole: bool
) -> Iterator[str]:
    """What the plan leaves as it is."""
    placed = [
        one.key
        for one in found
        if one.change.part == "topics"
        and one.change.kind == "changed"
        and any(change.field in ("replicas", "replicationFactor") for change in one.change.fields)
    ]
    if placed and not assignments:
        of = counted(len(placed), "topic")
        yield f"the replicas of {of} ({_few(placed)}) stay where they are now: --assignments moves them back"
    if ownerless:
        names = [one.key.name for one in ownerless]
        yield f"the configs of {counted(len(names), 'deleted topic')} ({_few(names)}) come back with them: --kind topic"
    tokens = [image.delegation_tokens.tokens for image in (sides.past, sides.present)]
    made = sorted(id_ for id_ in tokens[1] if id_ not in tokens[0])
    if made and whole:
        yield f"{counted(len(made), 'delegation token')} made since ({_few(made)}) stay until they expire"


def _is_ownerless(sides: Sides, found: Sequence[DriftChange], one: DriftChange) -> bool:
    """Whether an entry has configs of a topic that there is not now, and that is not selected to come back."""
    if one.change.part != "configs" or one.key.type != TOPIC_RESOURCE or one.key.name in sides.now.topics:
        return False
    return not any(other.change.part == "topics" and other.key == one.key.name for other in found)


def _lost_tokens(sides: Sides) -> Iterator[Step]:
    """The delegation tokens that went: a new token has other keys."""
    tokens = [image.delegation_tokens.tokens for image in (sides.past, sides.present)]
    for id_ in sorted(one for one in tokens[0] if one not in tokens[1]):
        change = StepChange(field="token", before=None, after=id_)
        yield Step(
            action=Action.NONE, step_class=StepClass.IMPOSSIBLE, path=path_of("token", id_), subject={"token": id_},
            changes=(change,), note="a new token has another id and other keys",
        )  # fmt: skip


def _few(names: Sequence[str]) -> str:
    return in_words([*names[:3], f"{len(names) - 3} more"] if len(names) > 4 else names)
