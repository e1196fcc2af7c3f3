"""Remedies for folders of a broker that are missing or that no replica has: first of all, keep the only copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from kraftlake.diagnosis.doctor.check_input import CheckInput
from kraftlake.diagnosis.doctor.group import Affected, LogPosition
from kraftlake.diagnosis.doctor.help import Help, HelpRisk
from kraftlake.diagnosis.doctor.replica_states import ReplicaUse, may_lead
from kraftlake.diagnosis.thing_changes import changes_of
from kraftlake.diagnosis.things import Thing
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.records import metadata_records as r
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.words import counted, in_words

_NAMED: Final = 3


def missing_helps(case: CheckInput) -> Iterator[Help]:
    """Remedies that bring back replicas without a folder: from their leaders, or else only from the folder itself."""
    refilled = 0
    only: list[str] = []
    for folders in case.folders:
        for finding in folders.report.missing:
            state = _state(case, finding.partition)
            if state is None or folders.broker not in may_lead(state) or _led_elsewhere(case, state, folders.broker):
                refilled += 1
            else:
                only.append(finding.partition)
    if only:
        they, it = ("it", "it") if len(only) == 1 else ("they", "them")
        yield Help(
            action=f"Find the folder{'' if len(only) == 1 else 's'} of {_named(only)} first, in a log directory that "
            f"was not given or on a disk that was replaced: no other broker may lead {it}, so {they} may be the "
            "only copy. Do not start the broker without: the other replicas would drop what an empty leader lacks."
        )
    if refilled:
        yield Help(action=f"Give all log directories of the broker (--log-dirs). If {counted(refilled, 'folder')} "
                   f"{'is' if refilled == 1 else 'are'} gone, start the broker: the replicas are copied from their "
                   "leaders.")  # fmt: skip


def stray_helps(case: CheckInput) -> Iterator[Help]:
    """Remedies for folders without a replica: those whose records the log shows to be unneeded may be deleted."""
    strays = [finding for folders in case.folders for finding in folders.report.strays]
    deleted = dict(_deleted_topics(case, strays))
    groups: dict[tuple[str, LogPosition | None], list[str]] = {}
    kept: list[str] = []
    for finding in strays:
        why = _not_needed(case, finding, deleted)
        if why is None:
            kept.append(finding.path or finding.partition)
        else:
            groups.setdefault(why, []).append(finding.path or finding.partition)
    if kept:
        them, they = ("it", "it") if len(kept) == 1 else ("them", "they")
        yield Help(
            action=f"Keep {_named(kept)}: the log does not show that the records in {them} are elsewhere or were given "
            f"up, so {they} may be the only copy. The broker keeps {them} too when it starts, renamed to *-stray."
        )
    if groups:
        count = sum(map(len, groups.values()))
        yield Help(
            action=f"If the disk needs the space, delete {counted(count, 'folder')} while the broker is down.",
            risk=HelpRisk.DELETE,
            evidence=tuple(
                Affected(reason=reason, things=tuple(paths), since=since) for (reason, since), paths in groups.items()
            ),
            cost="The records in these folders. Of a topic that was deleted there is no other copy.",
        )
    if any(folders.report.misplaced for folders in case.folders):
        yield Help(
            action="Leave a folder where it is that lies in another directory than the image says: the broker tells "
            "the controller of it when it starts."
        )


def _not_needed(
    case: CheckInput, finding: Any, deleted: dict[Uuid, LogPosition]
) -> tuple[str, LogPosition | None] | None:
    """The reason why the records in a folder are not needed, and since when; None where nothing shows it."""
    if finding.topic_id is None:
        return None
    if finding.topic_id in deleted:
        return f"topic {finding.topic_id} was deleted", deleted[finding.topic_id]
    topic = case.image.topics.get_topic(finding.partition.rpartition("-")[0])
    state = _state(case, finding.partition) if topic is not None and topic.id == finding.topic_id else None
    if state is None or set(state.isr) != set(state.replicas) or not _led_elsewhere(case, state, None):
        return None
    return f"all replicas are in sync, on {in_words(state.replicas)}", None


def _deleted_topics(case: CheckInput, strays: Iterable[Any]) -> Iterator[tuple[Uuid, LogPosition]]:
    """The folders' topics that the log shows to be deleted, by id, and the positions of the deletions."""
    ids = {finding.topic_id for finding in strays if finding.topic_id is not None}
    names = {finding.partition.rpartition("-")[0] for finding in strays if finding.topic_id is not None}
    lines = changes_of(case.source, map(Thing.topic, names), case.image.offset).lines if names else {}
    for change in (change for line in lines.values() for change in line if change.after is None):
        batch = next(iter(case.source.batches(change.offset, change.offset)))
        message = batch.messages()[change.offset - batch.base_offset].message
        if isinstance(message, r.RemoveTopicRecord) and message.topic_id in ids:
            yield message.topic_id, LogPosition(offset=change.since, timestamp=change.since_time)


def _state(case: CheckInput, partition: str) -> PartitionRegistration | None:
    """The state of a partition by its name: `foo-3`."""
    name, _, number = partition.rpartition("-")
    topic = case.image.topics.get_topic(name)
    return None if topic is None else topic.partitions.get(int(number))


def _led_elsewhere(case: CheckInput, state: PartitionRegistration, broker: int | None) -> bool:
    """Whether an active broker other than `broker` may lead a partition without a loss."""
    others = (one for one in may_lead(state) if one != broker)
    return any(ReplicaUse.of(case.image, state, one) is ReplicaUse.ACTIVE for one in others)


def _named(names: Sequence[str]) -> str:
    return in_words(names) if len(names) <= _NAMED else f"{in_words(names[:1])} and {len(names) - 1:,} more"
