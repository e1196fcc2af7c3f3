"""The check of features whose levels some nodes hold back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from kraftlake.diagnosis.doctor.case import Case
from kraftlake.diagnosis.doctor.check import Check
from kraftlake.diagnosis.doctor.finding import Found, Severity
from kraftlake.diagnosis.doctor.group import Group, LogPosition
from kraftlake.diagnosis.doctor.help import safe
from kraftlake.diagnosis.doctor.registration_history import unchanged_since
from kraftlake.image import KRAFT_VERSION, METADATA_VERSION, VersionRange
from kraftlake.records.metadata_version import ALL
from kraftlake.runtime import in_words

_NONE: Final = VersionRange(0, 0)
"""What a node supports of a feature that it does not name, as Kafka counts it."""


@attrs.frozen(kw_only=True)
class _Node:
    """A node that has a say in the levels; `aside` tells of one that may be gone."""

    name: str
    features: Mapping[str, VersionRange]
    since: LogPosition | None
    aside: str = ""


def _nodes(case: Case) -> Iterator[_Node]:
    """All that are registered, since the controller asks them all, and the voters for their kraft.version."""
    cluster, history = case.image.cluster, case.timeline.registrations
    voters = {voter.id for voter in case.quorum.voters}
    for broker_id, broker in sorted(cluster.brokers.items()):
        yield _Node(
            name=f"broker {broker_id}",
            features=broker.supported_features,
            since=unchanged_since(history.brokers.get(broker_id, ()), lambda state: state.supported_features),
            aside=" (fenced)" if broker.fenced else "",
        )
    for controller_id, controller in sorted(cluster.controllers.items()):
        yield _Node(
            name=f"controller {controller_id}",
            features=controller.supported_features,
            since=unchanged_since(history.controllers.get(controller_id, ()), lambda state: state.supported_features),
            aside=" (no voter)" if voters and controller_id not in voters else "",
        )


def _levels(case: Case) -> dict[str, int]:
    """The finalized levels by feature."""
    features = case.image.features
    levels = dict(features.finalized_versions.items())
    if features.metadata_version is not None:
        levels[METADATA_VERSION] = features.metadata_version.level
    assert case.replay is not None, "there is an image"
    return levels | {KRAFT_VERSION: case.replay.quorum.kraft_version}


def _held(case: Case) -> Iterator[Found]:
    found = [*_held_back(case), *_unregistered(case)]
    if found:
        groups = [group for _, group in found]
        features = list(dict.fromkeys(name for name, _ in found))
        holders = list(dict.fromkeys(thing for group in groups for thing in group.things))
        told = f"{in_words(holders)} {'holds' if len(holders) == 1 else 'hold'}"
        broker = next((holder.split()[1] for holder in holders if holder.startswith("broker")), None)
        yield Found(
            sentence=f"{told} back upgrades of {in_words(features)}",
            groups=tuple(groups),
            command=case.command(
                "image {source} --part controllers{at}"
                if broker is None
                else f"blame {{source}} broker/{broker}/features{{at}}"
            ),
        )


def _held_back(case: Case) -> Iterator[tuple[str, Group]]:
    """The features of which some nodes support higher levels than all do."""
    nodes, levels = [*_nodes(case)], _levels(case)
    names = dict.fromkeys(name for node in nodes for name in (METADATA_VERSION, *sorted(node.features)))
    for name in names:
        tops = [node.features.get(name, _NONE).max for node in nodes]
        least, most = min(tops), max(tops)
        if least == most:
            continue
        holders = [node for node, top in zip(nodes, tops, strict=True) if top < most]
        known = [node.since for node in holders]
        told = ", ".join(
            f"{node.name}{node.aside} {_level(name, node.features.get(name, _NONE).max)}" for node in holders
        )
        group = Group(
            reason=f"{name} is {_level(name, levels.get(name, 0))} and can't go above {_level(name, least)}: "
            f"supported are {told}, by the others {_level(name, most)}",
            things=tuple(node.name for node in holders),
            since=max((one for one in known if one is not None), default=None) if None not in known else None,
        )
        yield name, group


def _unregistered(case: Case) -> Iterator[tuple[str, Group]]:
    """The voters whose levels are unknown, which keeps the controller from any upgrade.

    Where no controller has registered at all, the cluster has just begun, or its log is not that of a controller.
    """
    version, controllers = case.image.features.metadata_version, case.image.cluster.controllers
    missing = [voter.id for voter in case.quorum.voters if voter.id not in controllers]
    if version is not None and version.is_controller_registration_supported and controllers and missing:
        group = Group(
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


FEATURE_CHECKS = (
    Check(
        name="held_back_features",
        severity=Severity.INFO,
        text="features whose levels can't be raised, and the nodes that hold them back",
        command="blame {source} broker/ID/features{at}",
        helps=safe(
            "Run the same release on all nodes before the level is raised (kafka-features.sh upgrade). One that is "
            "fenced, or no voter, may be the registration of a node that is gone: it counts all the same."
        ),
        find=_held,
    ),
)
"""The checks of features."""
