"""The check of features whose levels some nodes hold back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from kraftlake.diagnosis.doctor.check import Check
from kraftlake.diagnosis.doctor.check_input import CheckInput
from kraftlake.diagnosis.doctor.finding import CheckResult, Severity
from kraftlake.diagnosis.doctor.group import Affected, LogPosition, latest
from kraftlake.diagnosis.doctor.help import Help, HelpRisk, safe
from kraftlake.diagnosis.leadership import broker_words, node_words
from kraftlake.diagnosis.things import Thing
from kraftlake.image.broker_partitions import count_partitions_of_brokers
from kraftlake.image.endpoint import VersionRange
from kraftlake.image.features_image import KRAFT_VERSION, METADATA_VERSION
from kraftlake.records.metadata_version import ALL
from kraftlake.runtime.words import in_words

_NONE: Final = VersionRange(0, 0)
"""The support of a node for a feature that it does not name, as Kafka assumes it."""


@attrs.frozen(kw_only=True)
class _Node:
    """A node whose support limits the levels; `aside` marks one that may be gone: ` (fenced)`."""

    name: str
    features: Mapping[str, VersionRange]
    since: LogPosition | None
    aside: str = ""


def _nodes(case: CheckInput) -> Iterator[_Node]:
    """All registered nodes: the controller asks each of them, fenced brokers and non-voting controllers too."""
    cluster, history = case.image.cluster, case.timeline.registrations
    voters = {voter.id for voter in case.quorum.voters}
    for broker_id, broker in sorted(cluster.brokers.items()):
        yield _Node(
            name=f"broker {broker_id}",
            features=broker.supported_features,
            since=history.unchanged_since(f"broker {broker_id}", lambda state: state.supported_features),
            aside=" (fenced)" if broker.fenced else "",
        )
    for controller_id, controller in sorted(cluster.controllers.items()):
        yield _Node(
            name=f"controller {controller_id}",
            features=controller.supported_features,
            since=history.unchanged_since(f"controller {controller_id}", lambda state: state.supported_features),
            aside=" (no voter)" if voters and controller_id not in voters else "",
        )


def _voters(case: CheckInput) -> Iterator[_Node]:
    """The voters of a dynamic quorum, whose record has the levels of kraft.version that each supports."""
    record = case.quorum.furthest.quorum.voters
    for voter in () if record is None else record.voters:
        levels = voter.k_raft_version_feature
        supported = VersionRange(levels.min_supported_version, levels.max_supported_version)
        yield _Node(name=f"voter {voter.voter_id}", features={KRAFT_VERSION: supported}, since=None)


def _levels(case: CheckInput) -> dict[str, int]:
    """The finalized levels by feature."""
    features = case.image.features
    levels = dict(features.finalized_versions.items())
    if features.metadata_version is not None:
        levels[METADATA_VERSION] = features.metadata_version.level
    assert case.replay is not None, "there is an image"
    return levels | {KRAFT_VERSION: case.replay.quorum.kraft_version}


def _held(case: CheckInput) -> Iterator[CheckResult]:
    found = [*_held_back(case), *_unregistered(case)]
    if found:
        groups = [group for _, group in found]
        features = list(dict.fromkeys(name for name, _ in found))
        holders = list(dict.fromkeys(thing for group in groups for thing in group.things))
        subject = f"{node_words(holders)} {'holds' if len(holders) == 1 else 'hold'}"
        yield CheckResult(
            sentence=f"{subject} back upgrades of {in_words(features)}",
            groups=tuple(groups),
            command=case.command(_command(min(holders, key=lambda holder: holder.split()[0]))),
            helps=(*_SAME_RELEASE, *_unregistration(case, holders)),
        )


def _command(holder: str) -> str:
    """The template of the command that shows a node's supported levels, or at least the node."""
    kind, id_ = holder.split()
    if kind == "broker":
        return f"blame {{source}} broker/{id_}/features{{at}}"
    return "quorum {sources}" if kind == "voter" else "image {source} --part controllers{at}"


def _unregistration(case: CheckInput, holders: Sequence[str]) -> Iterator[Help]:
    """The removal of the registrations of fenced brokers that host no replicas: no data is lost."""
    counts, brokers = count_partitions_of_brokers(case.image), case.image.cluster.brokers
    ids = [int(holder.split()[1]) for holder in holders if holder.startswith("broker")]
    gone = [id_ for id_ in ids if brokers[id_].fenced and not counts[id_].led + counts[id_].followed]
    if gone:
        since = case.since([Thing.broker(id_, "fenced") for id_ in gone], bool)
        yield Help(
            action=f"If {broker_words(gone)} {'is' if len(gone) == 1 else 'are'} gone for good, unregister "
            f"{'it' if len(gone) == 1 else 'them'}: kafka-cluster.sh unregister --id ID.",
            risk=HelpRisk.UNREGISTER,
            evidence=tuple(
                Affected(reason="fenced, and hosts no replica", things=(f"broker {thing.key}",), since=at)
                for thing, at in since.items()
            ),
            cost="The registration is lost. A broker that starts again registers again, with what it supports then.",
        )


def _held_back(case: CheckInput) -> Iterator[tuple[str, Affected]]:
    """The features of which some nodes support higher levels than all do."""
    registered, voters, levels = [*_nodes(case)], [*_voters(case)], _levels(case)
    for name in dict.fromkeys(name for node in (*registered, *voters) for name in sorted(node.features)):
        nodes = [*registered, *voters] if name == KRAFT_VERSION else registered
        tops = [node.features.get(name, _NONE).max for node in nodes]
        least, most = min(tops), max(tops)
        if least == most:
            continue
        holders = [node for node, top in zip(nodes, tops, strict=True) if top < most]
        nodes_of: dict[str, list[str]] = {}
        for node in holders:
            level = _level(name, node.features.get(name, _NONE).max)
            nodes_of.setdefault(f"{node.aside}: {level}", []).append(node.name)
        lower_levels = ", ".join(f"{node_words(some)}{level}" for level, some in nodes_of.items())
        group = Affected(
            reason=f"{name} is {_level(name, levels.get(name, 0))} and can't go above {_level(name, least)}: "
            f"{lower_levels}; the others: {_level(name, most)}",
            things=tuple(node.name for node in holders),
            since=latest(node.since for node in holders),
        )
        yield name, group


def _unregistered(case: CheckInput) -> Iterator[tuple[str, Affected]]:
    """The voters whose levels are unknown, which keeps the controller from any upgrade.

    Where no controller has registered at all, the cluster has just begun, or the log is not that of a controller.
    """
    version, controllers = case.image.features.metadata_version, case.image.cluster.controllers
    missing = [voter.id for voter in case.quorum.voters if voter.id not in controllers]
    if version is not None and version.is_controller_registration_supported and controllers and missing:
        group = Affected(
            reason=f"{METADATA_VERSION} is {_level(METADATA_VERSION, version.level)}: the levels of voters are unknown "
            "that have not registered as controllers",
            things=tuple(f"controller {id_}" for id_ in missing),
        )
        yield METADATA_VERSION, group


def _level(name: str, level: int) -> str:
    """`33 (4.4-IV2)`, `1`."""
    if name == METADATA_VERSION and 0 < level <= len(ALL):
        return f"{level} ({ALL[level - 1]})"
    return str(level)


_SAME_RELEASE: Final = safe(
    "Run the same release on all nodes before the level is raised (kafka-features.sh upgrade). One that is fenced, or "
    "no voter, may be the registration of a node that is gone: it counts all the same."
)

FEATURE_CHECKS = (
    Check(
        name="held_back_features",
        severity=Severity.INFO,
        text="features whose levels can't be raised, and the nodes that hold them back",
        command="blame {source} broker/ID/features{at}",
        helps=_SAME_RELEASE,
        find=_held,
    ),
)
"""The checks of features."""
