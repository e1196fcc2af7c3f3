"""Checks of brokers, of throttles and other settings, and of brokers' folders."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import Final

from kraftlake.diagnosis.doctor.check import Check
from kraftlake.diagnosis.doctor.check_input import RECENT_HOURS, CheckInput
from kraftlake.diagnosis.doctor.finding import CheckResult, Severity
from kraftlake.diagnosis.doctor.folder_helps import missing_helps, stray_helps
from kraftlake.diagnosis.doctor.group import Affected, LogPosition, earliest
from kraftlake.diagnosis.doctor.help import Help, HelpRisk, safe
from kraftlake.diagnosis.doctor.registration_history import failed_directories
from kraftlake.diagnosis.leadership import broker_words
from kraftlake.diagnosis.things import Thing
from kraftlake.image.broker_partitions import BrokerCounts, count_partitions_of_brokers, partitions_of
from kraftlake.image.configurations_image import ConfigResource
from kraftlake.runtime.words import counted, in_words

THROTTLES: Final = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
"""The configs of topics and brokers that throttle replication."""


def _brokers_that(case: CheckInput, field: str, brokers: list[int]) -> tuple[Affected, ...]:
    """A group for each broker, with the number of its replicas, since the time when a flag of it was set."""
    flags = {broker: Thing.broker(broker, field) for broker in brokers}
    since = case.since(flags.values(), bool)
    counts = count_partitions_of_brokers(case.image)
    return tuple(_hosting(broker, counts[broker], since[flag]) for broker, flag in flags.items())


def _hosting(broker: int, count: BrokerCounts, since: LogPosition | None) -> Affected:
    reason = f"hosts {counted(count.led + count.followed, 'replica')}"
    return Affected(reason=reason, things=(f"broker {broker}",), since=since)


def _fenced(case: CheckInput) -> Iterator[CheckResult]:
    brokers = sorted(id_ for id_, broker in case.image.cluster.brokers.items() if broker.fenced)
    if brokers:
        count = len(case.image.cluster.brokers)
        sentence = f"{broker_words(brokers)} of {count} {'is' if len(brokers) == 1 else 'are'} fenced"
        helps = (*_lost_disks(case, brokers), *_STARTED)
        yield CheckResult(sentence=sentence, groups=_brokers_that(case, "fenced", brokers), helps=helps)


def _lost_disks(case: CheckInput, fenced: Iterable[int]) -> Iterator[Help]:
    """Remedies for fenced brokers whose last process had lost log directories: the last loss may have ended it."""
    history = case.timeline.registrations.brokers
    for broker in fenced:
        lost = failed_directories(history.get(broker, ()))
        if lost:
            reason = f"log directory {in_words([*lost])} failed while its process ran"
            yield Help(
                action=f"Look at the disks of broker {broker} before it is started: a broker whose last log directory "
                "fails ends itself.",
                evidence=(Affected(reason=reason, things=(f"broker {broker}",), since=earliest(lost.values())),),
            )


def _shutting_down(case: CheckInput) -> Iterator[CheckResult]:
    known = case.image.cluster.brokers.items()
    brokers = sorted(id_ for id_, broker in known if broker.in_controlled_shutdown and not broker.fenced)
    if brokers:
        sentence = f"{broker_words(brokers)} {'is' if len(brokers) == 1 else 'are'} in controlled shutdown"
        yield CheckResult(sentence=sentence, groups=_brokers_that(case, "inControlledShutdown", brokers))


def _gone(case: CheckInput) -> Iterator[CheckResult]:
    """Brokers that are not registered and still have replicas."""
    known = case.image.cluster.brokers
    gone = {broker: one for broker, one in count_partitions_of_brokers(case.image).items() if broker not in known}
    if gone:
        since = case.since(map(Thing.broker, gone), lambda registration: registration is None)
        groups = tuple(_hosting(broker, one, since[Thing.broker(broker)]) for broker, one in sorted(gone.items()))
        have, are = ("has", "is") if len(gone) == 1 else ("have", "are")
        sentence = f"{broker_words(sorted(gone))} {have} replicas and {are} not registered"
        yield CheckResult(sentence=sentence, groups=groups, helps=(*BACK, *_moved_away(case, sorted(gone))))


def _moved_away(case: CheckInput, gone: Iterable[int]) -> Iterator[Help]:
    """The reassignment of replicas on unregistered brokers; only of partitions that another replica leads."""
    evidence = []
    for broker in gone:
        hosted = partitions_of(case.image, broker)
        led = tuple(f"{topic}-{number}" for topic, number in sorted({*hosted.followed} - {*hosted.offline}))
        if led:
            evidence.append(
                Affected(reason=f"broker {broker} is not registered, and another replica leads", things=led)
            )
    if evidence:
        yield Help(
            action="If the broker does not come back, move its replicas to others: kafka-reassign-partitions.sh.",
            risk=HelpRisk.REASSIGN,
            evidence=tuple(evidence),
            cost="Each new replica is copied whole from its leader, and the folders on the broker that has gone are "
            "given up: look for what they alone hold before that.",
        )


def _throttles(case: CheckInput) -> Iterator[CheckResult]:
    """The throttles that outlast the reassignment that they were for; during one they are not a fault."""
    set_: list[tuple[ConfigResource, str, str]] = [
        (resource, name, value)
        for resource, configs in sorted(case.image.configs.resource_data.items())
        for name, value in sorted(configs.data.items())
        if name in THROTTLES and value
    ]
    if not set_:
        return
    things = [Thing.config(resource.type_name, resource.name, name) for resource, name, _ in set_]
    since = case.since(things, lambda value: value is not None)
    groups = tuple(
        Affected(
            reason=f"{name}={value if len(value) <= _LONGEST else f'{value[:_LONGEST]}…'}",
            things=(f"{resource.type_name.lower()} {resource.name or '(default)'}",),
            since=since[thing],
        )
        for thing, (resource, name, value) in zip(things, set_, strict=True)
    )
    groups = tuple(sorted(groups, key=lambda group: -1 if group.since is None else group.since.offset))
    under_way = bool(case.timeline.partitions["being_reassigned"])
    resources = len({resource for resource, _, _ in set_})
    what = f"{counted(len(set_), 'throttle')} of replication on {counted(resources, 'resource')}"
    yield CheckResult(
        sentence=f"{what}, {'while a' if under_way else 'and no'} reassignment is under way",
        groups=groups,
        severity=Severity.INFO if under_way else Severity.WARNING,
    )


_LONGEST: Final = 60
"""The number of characters of a throttle's value that are shown."""


def _settings(case: CheckInput) -> Iterator[CheckResult]:
    changes = case.timeline.settings
    if changes:
        counts = [
            counted(count, noun)
            for kind, noun in (("config", "config"), ("acl", "ACL"))
            if (count := sum(change.kind == kind for change in changes))
        ]
        groups = tuple(Affected(reason=change.words, things=(change.thing,), since=change.at) for change in changes)
        sentence = f"{in_words(counts)} changed in the last {RECENT_HOURS} hours of the log{case.read_from}"
        yield CheckResult(sentence=sentence, groups=groups)


def _strays(case: CheckInput) -> Iterator[CheckResult]:
    groups = [
        Affected(reason=finding.reason, things=(finding.path or finding.partition,))
        for folders in case.folders
        for finding in (*folders.report.strays, *folders.report.misplaced)
    ]
    if groups:
        hold = "holds no replica that its" if len(groups) == 1 else "hold no replica that their"
        sentence = f"{counted(len(groups), 'folder')} {hold} broker has there"
        yield CheckResult(
            sentence=sentence, groups=tuple(groups), command=_replay(case), helps=tuple(stray_helps(case))
        )


def _missing_folders(case: CheckInput) -> Iterator[CheckResult]:
    groups = [
        Affected(reason=f"broker {folders.broker}: {finding.reason}", things=(finding.partition,))
        for folders in case.folders
        for finding in folders.report.missing
    ]
    if groups:
        sentence = f"{counted(len(groups), 'replica')} {'has' if len(groups) == 1 else 'have'} no folder"
        helps = tuple(missing_helps(case))
        yield CheckResult(sentence=sentence, groups=tuple(groups), command=_replay(case), helps=helps)


def _replay(case: CheckInput) -> str:
    """The command that shows all folders of the first broker."""
    folders = case.folders[0]
    given = " ".join(f"--log-dirs {shlex.quote(path)}" for path in folders.paths)
    at = case.image.offset
    words = f"replay {{source}} --broker {folders.broker} --from {at} --to {at} {{given}}"
    return case.command(words, given=given)


BACK: Final = safe(
    "Start the broker with the log directories that it had: it registers again, and its replicas catch up."
)

_STARTED: Final = safe("Start the broker. If its process runs, look at its connection to the controllers.")

RECENT_CHANGES: Final = "recent_changes"
BROKER_CHECKS = (
    Check(
        name="fenced_brokers",
        severity=Severity.WARNING,
        text="brokers that are fenced: they sent no heartbeats, neither lead nor are in sync",
        command="events {source} --kind 'broker_*fenced'{range}",
        state_command="image {source} --part brokers --all{at}",
        helps=_STARTED,
        find=_fenced,
    ),
    Check(
        name="unregistered_brokers",
        severity=Severity.WARNING,
        text="brokers that have replicas and are not registered",
        command="events {source} --kind unregistered{range}",
        state_command="image {source} --part topics --all{at}",
        helps=BACK,
        find=_gone,
    ),
    Check(
        name="brokers_shutting_down",
        severity=Severity.INFO,
        text="brokers in controlled shutdown",
        command="events {source} --kind shutdown{range}",
        state_command="image {source} --part brokers --all{at}",
        helps=safe(
            "It ends when the broker leads nothing any more. If it does not end, its partitions have no "
            "other replica in sync."
        ),
        find=_shutting_down,
    ),
    Check(
        name="throttles",
        severity=Severity.WARNING,
        text="throttles of replication that were left on",
        command="image {source} --part configs --all{at}",
        helps=safe(
            "Remove them: kafka-reassign-partitions.sh --verify does so after a reassignment, kafka-configs.sh "
            "--alter --delete-config at any time."
        ),
        find=_throttles,
    ),
    Check(
        name="missing_folders",
        severity=Severity.CRITICAL,
        text="replicas without a folder in the log directories of their broker",
        command="replay {source} --broker ID --log-dirs DIR",
        helps=safe("Give all log directories of the broker (--log-dirs)."),
        find=_missing_folders,
    ),
    Check(
        name="stray_folders",
        severity=Severity.WARNING,
        text="folders that no replica of the broker has: strays, wrong topic ids, wrong directories",
        command="replay {source} --broker ID --log-dirs DIR",
        helps=safe("Keep the folders until it is known what they hold."),
        find=_strays,
    ),
    Check(
        name=RECENT_CHANGES,
        severity=Severity.INFO,
        text="changes of configs and ACLs lately",
        command="events {source} --kind config{range}",
        helps=safe("Compare with when the trouble began."),
        find=_settings,
    ),
)
"""The checks of brokers, settings and folders."""
