"""What a broker's removal takes: what lies on it, the effect of its loss, and moves that the controller accepts."""

from __future__ import annotations

from typing import Any

import attrs

from kraftlake.diagnosis.removal.moves import Moves, moves_from
from kraftlake.diagnosis.trial.standing import Standing, gone_into
from kraftlake.diagnosis.trial.steps import Step, StepKind
from kraftlake.diagnosis.trial.what_if import what_if
from kraftlake.image.broker_partitions import partitions_of
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.runtime.errors import LakeError
from kraftlake.runtime.words import counted


@attrs.frozen(kw_only=True)
class RemovalCheck:
    """What lies on a broker at an offset, what its loss would take, and what the controller makes of the moves.

    `replicas` are the names of its partitions, `leads` how many of these it leads, `internal` those of internal topics;
    `directories` are the numbers of replicas by the id of their directory, online or not. `is_controller` and
    `is_voter` are of the node of the same id. `offline` and `under_min_isr` are the partitions that its loss takes.
    `refused` has the controller's reason by partition; `left` still lie on it after the moves, `harmed` are offline or
    below their minimum after them and were not before.
    """

    provenance: MetadataProvenance
    broker: int
    fenced: bool
    replicas: tuple[str, ...]
    leads: int
    internal: tuple[str, ...]
    directories: dict[str, int]
    is_controller: bool
    is_voter: bool
    offline: tuple[str, ...]
    under_min_isr: tuple[str, ...]
    moves: Moves
    refused: dict[str, str]
    left: tuple[str, ...]
    harmed: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing lies on the broker."""
        return not self.replicas

    @property
    def is_proved(self) -> bool:
        """Whether the moves empty the broker, by the rules of the controller, and take nothing offline."""
        return not (self.refused or self.left or self.harmed or self.moves.stuck)

    def to_json(self) -> dict[str, Any]:
        """The form of `kraftlake removal-check --json`."""
        return self.provenance.to_json() | {
            "broker": self.broker,
            "fenced": self.fenced,
            "replicas": list(self.replicas),
            "leads": self.leads,
            "internal": list(self.internal),
            "directories": self.directories,
            "isController": self.is_controller,
            "isVoter": self.is_voter,
            "offline": list(self.offline),
            "underMinIsr": list(self.under_min_isr),
            "moves": [
                {"partition": f"{topic}-{number}", "replicas": list(replicas)}
                for (topic, number), replicas in self.moves.targets.items()
            ],
            "fewerRacks": list(self.moves.fewer_racks),
            "stuck": list(self.moves.stuck),
            "refused": self.refused,
            "left": list(self.left),
            "harmed": list(self.harmed),
            "proved": self.is_proved,
        }

    def reassignment(self) -> dict[str, object]:
        """The moves as the file of kafka-reassign-partitions; raises LakeError for moves that are not proved."""
        if not self.is_proved:
            some = sorted({*self.moves.stuck, *self.left, *self.harmed, *self.refused})
            raise LakeError(
                f"No moves empty broker {self.broker}: {counted(len(some), 'partition')} would stay on it or be worse "
                f"off, {some[0]} first; add brokers, or wait until all are active."
            )
        return self.moves.to_json()


def check_removal(image: MetadataImage, quorum: QuorumState, broker: int) -> RemovalCheck:
    """Check the removal of a broker at an image. Raises NoSuchThingError for a broker that is not registered."""
    loss = what_if(image, [Step(kind=StepKind.LOSE_BROKER, brokers=(broker,))])
    moves, before = moves_from(image, broker), Standing.of(image)
    after, refused = image, dict[str, str]()
    if moves.targets:
        steps = [Step(kind=StepKind.REASSIGN, moves=moves.targets), Step(kind=StepKind.CATCH_UP)]
        rehearsed = what_if(image, steps)
        after, refused = rehearsed.image, dict(rehearsed.steps[0].refused)
    then, registered = Standing.of(after), image.cluster.brokers[broker]
    harmed = {*gone_into(before.offline, then.offline), *gone_into(before.under_min_isr, then.under_min_isr)}
    replicas = _names(image, broker)
    directories = {str(directory): 0 for directory in registered.directories}
    for one in image.topics.topics_by_name().values():
        for state in one.partitions.values():
            if broker in state.replicas:
                held = str(state.directory(broker) or "unknown")
                directories[held] = directories.get(held, 0) + 1
    return RemovalCheck(
        provenance=image.provenance,
        broker=broker,
        fenced=registered.fenced,
        replicas=replicas,
        leads=len(partitions_of(image, broker).led),
        internal=tuple(name for name in replicas if name.startswith("__")),
        directories=dict(sorted(directories.items())),
        is_controller=broker in image.cluster.controllers,
        is_voter=any(voter.voter_id == broker for voter in (quorum.voters.voters if quorum.voters else ())),
        offline=gone_into(before.offline, loss.after.offline),
        under_min_isr=gone_into(before.under_min_isr, loss.after.under_min_isr),
        moves=moves,
        refused=refused,
        left=tuple(name for name in _names(after, broker) if name not in moves.stuck),
        harmed=tuple(sorted(harmed)),
    )


def _names(image: MetadataImage, broker: int) -> tuple[str, ...]:
    topics = sorted(image.topics.topics_by_name().items())
    return tuple(
        f"{name}-{number}"
        for name, one in topics
        for number, state in sorted(one.partitions.items())
        if broker in state.replicas
    )
