"""The check of log directories that are gone: their former replicas, and the remaining copies elsewhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import attrs
import numpy as np

from kraftlake.diagnosis.doctor.check import Check
from kraftlake.diagnosis.doctor.check_input import CheckInput
from kraftlake.diagnosis.doctor.finding import CheckResult, Severity
from kraftlake.diagnosis.doctor.group import Affected, LogPosition
from kraftlake.diagnosis.doctor.help import Help, safe
from kraftlake.diagnosis.doctor.registration_history import Registered, failed_directories
from kraftlake.diagnosis.doctor.replaced_replicas import ReplacedReplica, replaced_replicas
from kraftlake.diagnosis.doctor.replica_states import ReplicaUse, may_lead
from kraftlake.diagnosis.image_columns import ImageColumns
from kraftlake.diagnosis.leadership import broker_words, may_lead_words
from kraftlake.diagnosis.things import Thing
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.json_form import partition_json
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.directory_id import LOST
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.kafka_files.node.meta_properties import find_properties
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.words import counted, in_words

_OTHERS: Final = "others lead"


@attrs.frozen(kw_only=True)
class _Gone:
    """A directory that a broker does not have online; `new` are directories that appeared since then."""

    broker: int
    directory: Uuid
    since: LogPosition | None
    new: tuple[Uuid, ...] = ()
    partitions: Sequence[tuple[str, int]] = ()


def _gone(case: CheckInput) -> Iterator[_Gone]:
    """The directories with replicas, and those without any that were lost while their broker ran."""
    history = case.timeline.registrations.brokers
    found = _offline_replicas(case.image)
    for (broker, directory), partitions in found.items():
        states = history.get(broker, [])
        since, new = _lost(directory, states)
        if directory == LOST:
            things = [Thing.partition(topic, number, "directories") for topic, number in partitions]
            ends = [*case.since(things, lambda ids: ids is not None and str(LOST) in ids).values()]
            since = None if None in ends else min((end for end in ends if end is not None), default=None)
        yield _Gone(broker=broker, directory=directory, since=since, new=new, partitions=partitions)
    for broker, states in sorted(history.items()):
        for directory, since in failed_directories(states).items():
            if (broker, directory) not in found:
                yield _Gone(broker=broker, directory=directory, since=since)


def _offline_replicas(image: MetadataImage) -> dict[tuple[int, Uuid], list[tuple[str, int]]]:
    """The partitions (topic, number) with a replica in an offline directory, by registered broker and directory."""
    brokers = image.cluster.brokers
    columns = ImageColumns.of(image)
    replicas = columns.states.hosts.replicas
    pairs, which = columns.directories()
    offline = [id_ in brokers and not brokers[id_].has_online_dir(directory) for id_, directory in pairs]
    places = np.flatnonzero(np.array(offline, np.bool_)[which])
    rows = np.repeat(np.arange(len(replicas)), replicas.lengths)[places]
    found: dict[tuple[int, Uuid], list[tuple[str, int]]] = defaultdict(list)
    for (topic, _, number), place in zip(columns.at(rows), which[places].tolist(), strict=True):
        found[pairs[place]].append((topic, number))
    return {pair: sorted(some) for pair, some in sorted(found.items(), key=lambda item: (item[0][0], str(item[0][1])))}


def _lost(
    directory: Uuid, states: Sequence[Registered[BrokerRegistration]]
) -> tuple[LogPosition | None, tuple[Uuid, ...]]:
    """The position from which a registration lacks a directory, and the directories that were new in it then."""
    known: set[Uuid] = set()
    since: LogPosition | None = None
    new: tuple[Uuid, ...] = ()
    for before, after in pairwise(states):
        had = () if before.state is None else before.state.directories
        known.update(had)
        if directory in had and (after.state is None or directory not in after.state.directories):
            since, new = after.since, ()
        elif after.state is not None and directory in after.state.directories:
            since = None
        if since is not None and after.state is not None:
            new = (*new, *(one for one in after.state.directories if one not in known and one not in new))
    return since, new


def _left(case: CheckInput, broker: int, topic: str, number: int) -> tuple[str, bool]:
    """The remains of a partition without its replica on a broker, and whether only failed disks have its records."""
    image = case.image.topics.get_topic(topic)
    assert image is not None, "it is one of the image"
    state = image.partitions[number]
    if len(state.replicas) == 1:
        return "the only replica", True
    if state.leader not in (NO_LEADER, broker):
        return _OTHERS, False
    others = [ReplicaUse.of(case.image, state, one) for one in may_lead(state) if one != broker]
    words = may_lead_words(partition_json(state), case.brokers) if others else "no other replica is in sync"
    return f"no leader, {words}", all(other is ReplicaUse.NO_DIRECTORY for other in others)


def _offline(case: CheckInput) -> Iterator[CheckResult]:
    gone = [*_gone(case)]
    if not gone:
        return
    paths = _paths(case)
    groups: list[Affected] = []
    last: list[Affected] = []
    is_critical = False
    for one in gone:
        found: dict[tuple[str, bool], list[str]] = {}
        for topic, number in one.partitions:
            found.setdefault(_left(case, one.broker, topic, number), []).append(f"{topic}-{number}")
        where = _where(one, paths)
        for (left, is_last), names in sorted(found.items(), key=lambda item: (item[0][0] == _OTHERS, item[0])):
            groups.append(Affected(reason=f"{where}: {left}", things=tuple(names), since=one.since))
            last += groups[-1:] if is_last else ()
            is_critical = is_critical or left != _OTHERS
        if not one.partitions:
            groups.append(
                Affected(reason=f"{where}: no replica lay there", things=(f"broker {one.broker}",), since=one.since)
            )
    yield CheckResult(
        sentence=_sentence(gone, sum(len(group.things) for group in last)),
        groups=tuple(groups),
        severity=Severity.CRITICAL if is_critical else Severity.WARNING,
        command=case.command(f"blame {{source}} broker/{gone[0].broker}/directories{{at}}"),
        helps=_helps(gone, last, is_critical=is_critical),
    )


def _sentence(gone: Sequence[_Gone], last: int) -> str:
    brokers = list(dict.fromkeys(one.broker for one in gone))
    directories = f"{counted(len(gone), 'log directory', 'log directories')} of {broker_words(brokers)}"
    held = counted(sum(len(one.partitions) for one in gone), "replica")
    return f"{directories} {'is' if len(gone) == 1 else 'are'} offline, with {held}" + (
        f": {last} of them without another in sync" if last else ""
    )


def _where(one: _Gone, paths: Mapping[Uuid, str]) -> str:
    if one.directory == LOST:
        return f"a directory that broker {one.broker} could not name"
    instead = f", which has {in_words(one.new)} anew" if one.new else ""
    return f"directory {_named(one.directory, paths)} of broker {one.broker}{instead}"


def _paths(case: CheckInput) -> dict[Uuid, str]:
    """The paths of directories, as far as a `meta.properties` beside a source or a given log directory names them."""
    known = {copy.properties.directory_id: copy.path for copy in case.quorum.copies}
    for folders in case.folders:
        for path in folders.paths:
            known[find_properties(Path(path)).directory_id] = path
    return {id_: path for id_, path in known.items() if id_ is not None}


def _helps(gone: Sequence[_Gone], last: Sequence[Affected], *, is_critical: bool) -> tuple[Help, ...]:
    """The remedies; another disk only where every partition is led, so that no records were on the old disk alone."""
    helps: list[Help] = []
    if last:
        partitions = counted(len({name for group in last for name in group.things}), "partition")
        action = f"Keep the disk, and mount it again: the newest records of {partitions} may be on it alone."
        helps.append(Help(action=action, evidence=tuple(last)))
    if any(one.new for one in gone):
        action = (
            "The new directory fills from the leaders where others lead. Where none does, the replica in it has no "
            "records: these come back with the old disk alone."
        )
        helps.append(Help(action=action))
    if any(not one.new for one in gone):
        helps += _MEND if is_critical else (*_MEND, *_REPLACE)
    return tuple(helps)


def _replaced(case: CheckInput) -> Iterator[CheckResult]:
    replaced = [one for of_brokers in replaced_replicas(case).values() for one in of_brokers.values()]
    if not replaced:
        return
    paths = _paths(case)
    found: dict[tuple[bool, int, Uuid, Uuid], list[ReplacedReplica]] = {}
    for one in replaced:
        found.setdefault((one.has_leader, one.broker, one.lost, one.directory), []).append(one)
    groups = tuple(
        Affected(
            reason=f"lay in directory {_named(lost, paths)} of broker {broker}, and was made anew in "
            f"{_named(directory, paths)}; {'led again, without what lay there' if has_leader else 'no leader'}",
            things=tuple(one.partition for one in some),
            since=min(one.since for one in some),
        )
        for (has_leader, broker, lost, directory), some in sorted(found.items(), key=lambda item: item[0][:2])
    )
    brokers = sorted({one.broker for one in replaced})
    yield CheckResult(
        sentence=f"{counted(len(replaced), 'replica')} of {broker_words(brokers)} lost the last directory in sync, and "
        f"{'is' if len(replaced) == 1 else 'are'} in an empty one",
        groups=groups,
        severity=Severity.WARNING if all(one.has_leader for one in replaced) else Severity.CRITICAL,
        command=case.command(f"blame {{source}} broker/{brokers[0]}/directories{{at}}"),
    )


def _named(directory: Uuid, paths: Mapping[Uuid, str]) -> str:
    return f"{directory} ({paths[directory]})" if directory in paths else str(directory)


_MEND: Final = safe(
    "Starting the broker is no help while the disk is broken. Its log names the path and the error: mend the disk, "
    "then start the broker anew. If log.dirs no longer names the directory, name it again."
)
_REPLACE: Final = safe("Or replace the disk: all that lay there is copied from the leaders.")

DIRECTORY_CHECKS = (
    Check(
        name="offline_directories",
        severity=Severity.CRITICAL,
        text="log directories that failed or are gone, with the replicas that lay there",
        command="blame {source} broker/ID/directories{at}",
        helps=_MEND,
        find=_offline,
    ),
    Check(
        name="replaced_directories",
        severity=Severity.CRITICAL,
        text="replicas that were the last in sync and lay in a directory that was gone, and are in an empty one now",
        command="blame {source} broker/ID/directories{at}",
        helps=safe(
            "Their records are on the old disk alone: give it to the broker again in the place of the new one, and the "
            "replicas are back in it. Do not start that broker anew, nor elect a leader, before it is known that the "
            "old disk can't be read: the new replica, which lacks them, becomes the leader."
        ),
        find=_replaced,
    ),
)
"""The checks of log directories."""
