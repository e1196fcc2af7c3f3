"""The obstacles of a feature's level: those for which an active controller refuses it, by the controller's own rule."""

from __future__ import annotations

from collections.abc import Iterator

from kraftlake.controller.cluster.features import Unsupporting, lossy_downgrade, unsupporting_nodes
from kraftlake.diagnosis.things import Thing
from kraftlake.diagnosis.upgrade.obstacle import Obstacle
from kraftlake.diagnosis.upgrade.target import Target
from kraftlake.image.broker_partitions import count_partitions_of_brokers
from kraftlake.image.endpoint import VersionRange
from kraftlake.image.features_image import KRAFT_VERSION, METADATA_VERSION
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.loader.quorum_state import QuorumState


def current_level(feature: str, image: MetadataImage, quorum: QuorumState) -> int:
    """The finalized level of metadata.version or kraft.version, 0 for none."""
    if feature == KRAFT_VERSION:
        return quorum.kraft_version
    version = image.features.metadata_version
    return 0 if version is None else version.level


def voters_of(quorum: QuorumState) -> tuple[int, ...]:
    """The ids of the voters, as far as control records name them."""
    if quorum.voters is not None:
        return tuple(sorted(voter.voter_id for voter in quorum.voters.voters))
    return quorum.static_voters


def level_obstacles(target: Target, image: MetadataImage, quorum: QuorumState) -> Iterator[Obstacle]:
    """The obstacles of a level in the order in which the controller looks for them; its refusal is the first one."""
    current, feature = current_level(target.feature, image, quorum), target.feature
    leader = -1 if quorum.leader_id is None else quorum.leader_id
    own = image.cluster.controllers.get(leader)
    supported = None if own is None else own.supported_features.get(feature, VersionRange(0, 0))
    version = image.features.metadata_version
    if version is not None and not version.is_controller_registration_supported:
        yield Obstacle(
            check="unknown_controllers",
            refuses=False,
            sentence=f"controllers do not register below {METADATA_VERSION} 3.7-IV0: the log lacks what they support",
        )
    for node in unsupporting_nodes(image, feature, target.level, (leader, supported), voters_of(quorum)):
        yield _of_node(node, target, image, voters_of(quorum), is_new=target.level > current)
    change = Thing("feature", METADATA_VERSION)
    if feature == KRAFT_VERSION and target.level < current:
        yield Obstacle(check="no_downgrade", sentence=f"{feature} is {current}, and is never lowered")
    since = lossy_downgrade(current, target.level) if feature == METADATA_VERSION else None
    if since is not None:
        yield Obstacle(
            check="metadata_lost",
            sentence=f"{feature} is {target.words(current)}: what {since} and later ones have written might be lost",
            things=(feature,),
            thing=change,
        )


def _of_node(
    node: Unsupporting, target: Target, image: MetadataImage, voters: tuple[int, ...], *, is_new: bool
) -> Obstacle:
    name = f"{node.kind} {node.id}"
    if node.supported is None:
        return Obstacle(
            check="unregistered_controller",
            sentence=f"controller {node.id} is a voter and has not registered, so its support is unknown",
            things=(name,),
            command=f"start controller {node.id}; if it is gone for good: kafka-metadata-quorum.sh remove-controller",
        )
    levels = f"{target.words(node.supported.min)} to {target.words(node.supported.max)}"
    supports = f"supports {target.feature} {levels}" if node.supported.max else f"does not support {target.feature}"
    fix = f"restart {name} with {_release(target) if is_new else 'an older release'}"
    if node.kind == "controller":
        is_stale = bool(voters) and node.id not in voters
        aside = ", which is no voter," if is_stale else ""
        return Obstacle(check=_check(stale=is_stale), sentence=f"{name}{aside} {supports}", things=(name,), command=fix)
    broker = image.cluster.brokers[node.id]
    if broker.fenced:
        counts = count_partitions_of_brokers(image)[node.id]
        hosted = counts.led + counts.followed
        away = f"kafka-cluster.sh unregister --bootstrap-server $BOOTSTRAP --id {node.id}"
        moved = f"after its {hosted:,} replicas were moved away: " if hosted else ""
        fix = f"{fix}; of one that is gone for good, {moved}{away}" if hosted else f"{away}, if it is gone for good"
    return Obstacle(
        check=_check(stale=broker.fenced),
        sentence=f"{name}{', which is fenced,' if broker.fenced else ''} {supports}",
        things=(name,),
        command=fix,
        thing=Thing.broker(node.id, "features"),
    )


def _check(*, stale: bool) -> str:
    return "stale_registration" if stale else "unsupported_level"


def _release(target: Target) -> str:
    return f"Kafka {target.release}" if target.release else f"a release that supports {target.words(target.level)}"
