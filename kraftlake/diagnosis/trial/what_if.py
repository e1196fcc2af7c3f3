"""The answer of a what-if: the steps, run by an active controller on a copy of an image in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.quorum.trial_controller import TrialController
from kraftlake.diagnosis.leadership import broker_words
from kraftlake.diagnosis.trial.risks import Risk, broker_risks, rack_risks
from kraftlake.diagnosis.trial.standing import Standing, gone_into, part_of
from kraftlake.diagnosis.trial.steps import Step, StepKind
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.runtime.errors import NoSuchThingError, OffsetError, UsageError
from kraftlake.runtime.json_names import fields_as_json
from kraftlake.runtime.words import in_words


@attrs.frozen(kw_only=True)
class StepState:
    """A moment within a step, in a word or two, and the standing of the partitions."""

    name: str
    standing: Standing

    def to_json(self) -> dict[str, Any]:
        """The stage as `kraftlake what-if --json` prints it."""
        return {"stage": self.name} | self.standing.to_json()


@attrs.frozen(kw_only=True)
class StepOutcome:
    """The outcome of a step.

    `fenced` are the brokers that the step has fenced and left fenced. `notes` name its parts without an effect, and the
    reason; `refused` has the controller's reason by broker or partition.
    """

    step: Step
    stages: tuple[StepState, ...]
    fenced: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    refused: Mapping[str, str] = attrs.field(factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The step as `kraftlake what-if --json` prints it."""
        return self.step.to_json() | {
            "fenced": list(self.fenced),
            "notes": list(self.notes),
            "refused": dict(self.refused),
            "stages": [stage.to_json() for stage in self.stages],
        }


@attrs.frozen(kw_only=True)
class RecoveredPartitions:
    """The partitions that return if only these lost brokers start again, as after a crash.

    `online` are the partitions that get a leader; the leaders of those in `recovering` may lack records.
    """

    brokers: tuple[int, ...]
    online: tuple[str, ...]
    recovering: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The return as `kraftlake what-if --json` prints it."""
        return fields_as_json(self)


@attrs.frozen(kw_only=True)
class WhatIf:
    """The standing of the partitions `before`, in the image, and after each step; the returns of the brokers lost.

    `each_broker` and `each_rack` are the risks of one more loss after the steps, None where they were not requested.
    `image` is the copy after the steps.
    """

    provenance: MetadataProvenance
    before: Standing
    steps: tuple[StepOutcome, ...]
    returns: tuple[RecoveredPartitions, ...]
    each_broker: tuple[Risk, ...] | None
    each_rack: tuple[Risk, ...] | None
    image: MetadataImage

    @property
    def after(self) -> Standing:
        """The standing of the partitions after the last step."""
        return self.steps[-1].stages[-1].standing if self.steps else self.before

    @property
    def refused(self) -> bool:
        """Whether the controller has refused a part of a step."""
        return any(one.refused for one in self.steps)

    def to_json(self) -> dict[str, Any]:
        """The form of `kraftlake what-if --json`."""
        before, after = self.before.to_json(), self.after.to_json()
        steps = [one.step for one in self.steps]
        return self.provenance.to_json() | {
            "lost": {
                "brokers": sorted(
                    {broker for one in steps if one.kind is StepKind.LOSE_BROKER for broker in one.brokers}
                ),
                "racks": sorted({rack for one in steps for rack in one.racks}),
            },
            "offline": after["offline"],
            "underMinIsr": after["underMinIsr"],
            "leadersBefore": before["leaders"],
            "leadersAfter": after["leaders"],
            "offlineBefore": before["offline"],
            "underMinIsrBefore": before["underMinIsr"],
            "steps": [one.to_json() for one in self.steps],
            "returns": [one.to_json() for one in self.returns],
            "eachBroker": None if self.each_broker is None else [risk.to_json() for risk in self.each_broker],
            "eachRack": None if self.each_rack is None else [risk.to_json() for risk in self.each_rack],
        }


def what_if(
    image: MetadataImage, steps: Sequence[Step], *, each_broker: bool = False, each_rack: bool = False
) -> WhatIf:
    """The controller's reaction to the steps, one after the other, on a copy of an image. Nothing is written.

    `each_broker` and `each_rack` request the risk table after the steps. Raises NoSuchThingError for an unknown broker
    or rack, OffsetError for an image without a metadata.version, UsageError without steps and tables.
    """
    if not (steps or each_broker or each_rack):
        raise UsageError(
            "Say what would happen: --lose-broker, --lose-rack, --restart, --reassign or --catch-up; or ask for "
            "--each-broker or --each-rack."
        )
    offset = image.provenance.offset
    if image.features.metadata_version is None:
        raise OffsetError(
            f"The image at offset {offset} has no metadata.version, without which no controller decides anything: "
            "take a later offset."
        )
    known = image.cluster.brokers
    for step in steps:
        for broker in step.brokers:
            if broker not in known:
                registered = in_words(sorted(known)) or "none"
                raise NoSuchThingError(
                    f"Broker {broker} is not registered at offset {offset}; registered brokers: {registered}."
                )
        for rack in step.racks:
            if not _brokers_of(image, rack):
                racks = in_words(sorted({one.rack for one in known.values() if one.rack is not None}))
                raise NoSuchThingError(
                    f"No broker is in rack {rack!r} at offset {offset}; "
                    + (f"racks: {racks}." if racks else "there are no racks.")
                )
    if each_rack and all(broker.rack is None for broker in known.values()):
        raise NoSuchThingError(f"No broker has a rack at offset {offset}: ask for --each-broker.")
    trial = TrialController(image)
    before = Standing.of(image)
    outcomes = tuple(_take(trial, step) for step in steps)
    after = trial.image
    return WhatIf(
        provenance=image.provenance,
        before=before,
        steps=outcomes,
        returns=tuple(_returns(after, outcomes)),
        each_broker=tuple(broker_risks(after)) if each_broker else None,
        each_rack=tuple(rack_risks(after)) if each_rack else None,
        image=after,
    )


def _brokers_of(image: MetadataImage, rack: str) -> list[int]:
    return sorted(id_ for id_, broker in image.cluster.brokers.items() if broker.rack == rack)


def _take(trial: TrialController, step: Step) -> StepOutcome:
    """Run a step."""
    match step.kind:
        case StepKind.LOSE_BROKER:
            return _lose(trial, step, step.brokers)
        case StepKind.LOSE_RACK:
            return _lose(trial, step, [broker for rack in step.racks for broker in _brokers_of(trial.image, rack)])
        case StepKind.RESTART:
            return _restart(trial, step)
        case StepKind.REASSIGN:
            answers = trial.reassign(step.moves)
            refused = {
                f"{name}-{number}": error.message or error.error.name
                for (name, number), error in answers.items()
                if error.is_failure
            }
            return StepOutcome(step=step, stages=(_stage("begun", trial),), refused=refused)
        case StepKind.CATCH_UP:
            trial.catch_up()
            return StepOutcome(step=step, stages=(_stage("caught up", trial),))


def _stage(name: str, trial: TrialController) -> StepState:
    return StepState(name=name, standing=Standing.of(trial.image))


def _lose(trial: TrialController, step: Step, brokers: Sequence[int]) -> StepOutcome:
    fenced = [broker for broker in brokers if trial.image.cluster.brokers[broker].fenced]
    lost = [broker for broker in dict.fromkeys(brokers) if broker not in fenced]
    trial.lose(lost)
    are = "is" if len(fenced) == 1 else "are"
    notes = (f"{broker_words(fenced)} {are} fenced already",) if fenced else ()
    return StepOutcome(step=step, stages=(_stage("lost", trial),), fenced=tuple(sorted(lost)), notes=notes)


def _restart(trial: TrialController, step: Step) -> StepOutcome:
    """Run a restart: the active brokers stop first, one after another; then all start."""
    known = trial.image.cluster.brokers
    active = [broker for broker in dict.fromkeys(step.brokers) if not known[broker].fenced]
    stages: list[StepState] = []
    for broker in active:
        trial.shut_down(broker)
    if active:
        stages.append(_stage("stopped", trial))
    refused = {}
    for broker in dict.fromkeys(step.brokers):
        registration = trial.image.cluster.brokers[broker]
        try:
            trial.register(broker, clean=broker in active or registration.in_controlled_shutdown)
            trial.unfence(broker)
        except ControllerApiError as refusal:
            refused[f"broker {broker}"] = refusal.message or refusal.error.name
    return StepOutcome(step=step, stages=(*stages, _stage("back", trial)), refused=refused)


def _returns(image: MetadataImage, outcomes: Sequence[StepOutcome]) -> Iterator[RecoveredPartitions]:
    """The partitions that each lost and still fenced broker brings back alone, and those that all bring back."""
    lost = sorted({id_ for one in outcomes for id_ in one.fenced if image.cluster.brokers[id_].fenced})
    if not lost:
        return
    offline = [name.rpartition("-") for name in Standing.of(image).offline]
    part = part_of(image, ((topic, int(number)) for topic, _, number in offline))
    before = Standing.of(part)
    for brokers in [*([broker] for broker in lost), *([lost] if len(lost) > 1 else [])]:
        trial = TrialController(part)
        for broker in brokers:
            trial.register(broker, clean=False)
            trial.unfence(broker)
        after = Standing.of(trial.image)
        yield RecoveredPartitions(
            brokers=tuple(brokers),
            online=gone_into(after.offline, before.offline),
            recovering=gone_into(before.recovering, after.recovering),
        )
