"""The what-if of a plan: its steps, taken by an active controller on a copy of an image in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

import attrs

from kraftlake.controller.access.acls import AclFilter, create_acls, delete_acls
from kraftlake.controller.access.client_quotas import QuotaAlteration, alter_client_quotas
from kraftlake.controller.access.scram import ScramDeletion, alter_user_scram_credentials
from kraftlake.controller.cluster.features import FeatureUpdate, UpgradeType, update_features
from kraftlake.controller.configs.alter_configs import ConfigOperation, OpType, incremental_alter_configs
from kraftlake.controller.errors import ApiError, ControllerApiError
from kraftlake.controller.quorum.trial_controller import TrialController
from kraftlake.controller.replication.reassignments import alter_partition_reassignments
from kraftlake.controller.replication.topics import (
    CreatableTopic,
    NewPartitions,
    create_partitions,
    create_topics,
    delete_topics,
)
from kraftlake.controller.result import ControllerResult
from kraftlake.controller.state import ControllerState
from kraftlake.diagnosis.drift.comparison import Drift, compare
from kraftlake.diagnosis.drift.description import describe
from kraftlake.diagnosis.drift.selection import selected_changes
from kraftlake.diagnosis.undo.plan import Plan
from kraftlake.diagnosis.undo.step import Action, Step
from kraftlake.diagnosis.undo.subjects import acl_of, mechanism_number, resource_of
from kraftlake.image.json_form import Json
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.protocol.error_code import ErrorCode

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Rehearsed:
    """The controller's answer to a step; None for a step without a request."""

    step: Step
    answer: ApiError | None

    def to_json(self) -> Json:
        """The form within the answer of `kraftlake undo --what-if --json`."""
        answer = self.answer
        form = None if answer is None else {"error": answer.error.name, "message": answer.message}
        return {"path": self.step.path, "action": self.step.action.value, "answer": form}


@attrs.frozen(kw_only=True)
class Rehearsal:
    """The answers to all steps of a plan, the image that comes out, and what differs from it to the state wanted."""

    answers: tuple[Rehearsed, ...]
    image: MetadataImage
    left: Drift

    @property
    def refused(self) -> bool:
        """Whether the controller has refused a step."""
        return any(one.answer is not None and one.answer.is_failure for one in self.answers)


def rehearse(plan: Plan, present: MetadataImage, past: MetadataImage) -> Rehearsal:
    """Take the steps of a plan on a copy of the `present` image. Nothing is written, and no cluster is asked.

    Reassignments complete at once, as if all replicas caught up.
    """
    trial = TrialController(present)
    answers = tuple(Rehearsed(step=step, answer=_take(trial, step) if step.can_run else None) for step in plan.steps)
    if any(step.action is Action.REASSIGN for step in plan.steps):
        trial.catch_up()
    image = trial.image
    left = compare(describe(image), describe(past), internal=True)
    return Rehearsal(answers=answers, image=image, left=selected_changes(left, plan.topics, plan.kinds))


def _take(trial: TrialController, step: Step) -> ApiError:
    try:
        return trial.run(partial(_COMMANDS[step.action], step=step))
    except ControllerApiError as refusal:
        return refusal.api_error


def _answered(result: ControllerResult[Any], answer: ApiError) -> ControllerResult[ApiError]:
    """The result of a command with one answer in place of its response."""
    return ControllerResult(result.records, answer, result.atomic)


def _of_one(result: ControllerResult[Any]) -> ControllerResult[ApiError]:
    (answer,) = result.response.values()
    return _answered(result, answer)


def _feature(state: ControllerState, step: Step) -> ControllerResult[ApiError]:
    after = step.after("level") or 0
    is_lower = after < (step.before("level") or 0)
    kind = UpgradeType.SAFE_DOWNGRADE if is_lower else UpgradeType.UPGRADE
    return update_features(state, {step.subject["feature"]: FeatureUpdate(after, kind)})


def _create_topic(state: ControllerState, step: Step) -> ControllerResult[ApiError]:
    name, replicas = step.subject["topic"], step.after("replicas")
    if replicas is None:
        topic = CreatableTopic(
            name=name, num_partitions=step.after("partitions"), replication_factor=step.after("replicationFactor")
        )
    else:
        topic = CreatableTopic(name=name, assignments=[*enumerate(replicas)])
    result = create_topics(state, [topic])
    return _answered(result, result.response[name].error)


def _add_partitions(state: ControllerState, step: Step) -> ControllerResult[ApiError]:
    name = step.subject["topic"]
    wanted = NewPartitions(name=name, count=step.after("partitions"), assignments=step.after("replicas"))
    return _of_one(create_partitions(state, [wanted]))


def _delete_topic(state: ControllerState, step: Step) -> ControllerResult[ApiError]:
    topic = state.image.topics.get_topic(step.subject["topic"])
    if topic is None:
        return ControllerResult((), ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    return _of_one(delete_topics(state, [topic.id]))


def _reassign(state: ControllerState, step: Step) -> ControllerResult[ApiError]:
    name = step.subject["topic"]
    moves = [((name, int(change.field)), change.after) for change in step.changes]
    result = alter_partition_reassignments(state, moves)
    refused = [answer for answer in result.response.values() if answer.is_failure]
    return _answered(result, refused[0] if refused else ApiError.NONE)


def _configs(state: ControllerState, step: Step) -> ControllerResult[ApiError]:
    operations = {
        change.field: ConfigOperation(OpType.DELETE if change.after is None else OpType.SET, change.after)
        for change in step.changes
    }
    return _of_one(incremental_alter_configs(state, {resource_of(step): operations}))


def _quotas(state: ControllerState, step: Step) -> ControllerResult[ApiError]:
    entity = tuple(step.subject["entity"].items())
    ops = [(change.field, change.after) for change in step.changes]
    return _of_one(alter_client_quotas(state, [QuotaAlteration(entity=entity, ops=ops)]))


def _create_acl(state: ControllerState, step: Step) -> ControllerResult[ApiError]:
    result = create_acls(state, [acl_of(step)])
    return _answered(result, result.response[0])


def _delete_acl(state: ControllerState, step: Step) -> ControllerResult[ApiError]:
    result = delete_acls(state, [AclFilter(**attrs.asdict(acl_of(step)))])
    return _answered(result, result.response[0].error)


def _delete_scram(state: ControllerState, step: Step) -> ControllerResult[ApiError]:
    deletion = ScramDeletion(name=step.subject["user"], mechanism=mechanism_number(step))
    return _of_one(alter_user_scram_credentials(state, [deletion], []))


_COMMANDS: Final[Mapping[Action, Callable[..., ControllerResult[ApiError]]]] = {
    Action.UPDATE_FEATURE: _feature,
    Action.CREATE_TOPIC: _create_topic,
    Action.ADD_PARTITIONS: _add_partitions,
    Action.DELETE_TOPIC: _delete_topic,
    Action.REASSIGN: _reassign,
    Action.ALTER_CONFIGS: _configs,
    Action.ALTER_QUOTAS: _quotas,
    Action.CREATE_ACL: _create_acl,
    Action.DELETE_ACL: _delete_acl,
    Action.DELETE_SCRAM: _delete_scram,
}
