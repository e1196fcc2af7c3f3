"""The application of a plan to a living cluster: each step read before, taken, and read back."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import attrs

from kraftlake.diagnosis.drift.comparison import Drift, compare
from kraftlake.diagnosis.drift.description import ClusterDescription
from kraftlake.diagnosis.drift.selection import selected_changes
from kraftlake.diagnosis.leadership import broker_words
from kraftlake.diagnosis.undo.current import Progress, is_hidden, other_values, progress_of
from kraftlake.diagnosis.undo.journal import Journal
from kraftlake.diagnosis.undo.plan import Plan
from kraftlake.diagnosis.undo.requests import request_of
from kraftlake.diagnosis.undo.step import Action, Step, StepClass
from kraftlake.image.json_form import Json
from kraftlake.protocol.address import Address
from kraftlake.protocol.admin_client import AdminClient
from kraftlake.protocol.node_error import NodeError
from kraftlake.records.redaction import REDACTED
from kraftlake.runtime.clock import Clock, SystemClock
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.runtime.words import counted, shown

T = TypeVar("T")

_PATIENCE_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.2
_SETTLED_SECONDS: Final = 5.0


class ApplyError(KraftlakeError):
    """Reports the step at which an application ended; what was done before it stays, and is in the journal."""


class Cluster(Protocol):
    """A living cluster that can be read."""

    def read(self, step: Step) -> ClusterDescription:
        """A description that covers the subject of a step."""

    def whole(self) -> ClusterDescription:
        """The whole cluster."""

    def moving(self) -> Mapping[str, Sequence[int]]:
        """The partitions that move, such as `orders-0`, with the brokers that they wait for and that do not run."""

    def node_of(self, step: Step) -> Address | None:
        """The node that alone takes the request of a step; None for a step that any node takes."""


@attrs.frozen(kw_only=True)
class Taken:
    """What came of a step: `applied`, `already` (the cluster was so), or `skipped`, with the reason.

    `waits` precedes these where a step waits for partitions that move.
    """

    number: int
    step: Step
    outcome: str
    reason: str = ""

    def to_json(self) -> Json:
        """The form within the answer of `kraftlake undo --apply --json`."""
        return {"step": self.number, "path": self.step.path, "outcome": self.outcome, "reason": self.reason}


@attrs.frozen(kw_only=True)
class Applied:
    """What came of each step of a plan, and what differs from the cluster to the state wanted, read back whole."""

    steps: tuple[Taken, ...]
    left: Drift


@attrs.frozen(kw_only=True)
class Pace:
    """The pace of an application: at most `rate` steps in a second, and its time."""

    rate: float = 10.0
    patience: float = _PATIENCE_SECONDS
    """The seconds that a step waits for a cluster that does not answer, or does not show a change it has taken."""
    sleep: Callable[[float], object] = time.sleep
    clock: Clock = attrs.field(factory=SystemClock)

    def seconds(self) -> float:
        """Monotonic time, for deadlines."""
        return self.clock.nanoseconds() / 1e9


class Application:
    """Takes the steps of a plan, for one thread. Every request is in the journal before and after it."""

    def __init__(
        self,
        plan: Plan,
        client: AdminClient,
        cluster: Cluster,
        journal: Journal,
        *,
        classes: Collection[StepClass],
        pace: Pace | None = None,
        on_step: Callable[[Taken], object] = lambda _: None,
    ) -> None:
        """`classes` are those whose steps are taken, `on_step` gets the outcome of each step."""
        self._plan = plan
        self._client = client
        self._cluster = cluster
        self._journal = journal
        self._classes = classes
        self._pace = pace or Pace()
        self._on_step = on_step

    def validate(self) -> None:
        """Let the cluster validate the steps that do not depend on others. Raises ApplyError for a refusal."""
        for number, step in enumerate(self._plan.steps, 1):
            if self._why_not(step) or not request_of(step).validates or _depends(step, self._plan.steps[: number - 1]):
                continue
            described = self._patiently(partial(self._cluster.read, step))
            if progress_of(described, step) is Progress.TO_DO:
                self._patiently(partial(self._send, number, step, validate_only=True))

    def run(self) -> tuple[Taken, ...]:
        """Take the steps in their order. Raises ApplyError at the first that can't be taken."""
        return tuple(self._take(number, step) for number, step in enumerate(self._plan.steps, 1))

    def left(self, then: ClusterDescription, *, topics: Sequence[str] = (), kinds: Sequence[str] = ()) -> Drift:
        """What differs from the cluster to the state that is wanted, of what the plan is about.

        Brokers learn of a change one after another: what a step has changed is read again for a while if it differs.
        """
        taken = {step.path for step in self._plan.steps if not self._why_not(step)}
        taken -= {step.path for step in self._plan.steps if self._why_not(step)}
        deadline = self._pace.seconds() + _SETTLED_SECONDS
        while True:
            whole = self._patiently(self._cluster.whole)
            left = selected_changes(compare(whole, then, internal=True), topics, kinds)
            if not any(one.path in taken for one in left.changes) or self._pace.seconds() > deadline:
                return left
            self._pace.sleep(_PAUSE_SECONDS)

    def _patiently(self, ask: Callable[[], T]) -> T:
        """The result of `ask`, called again while a node does not answer. Raises the NodeError when patience ends."""
        deadline = self._pace.seconds() + self._pace.patience
        while True:
            try:
                return ask()
            except NodeError:
                if self._pace.seconds() > deadline:
                    raise
                self._pace.sleep(_PAUSE_SECONDS)

    def _why_not(self, step: Step) -> str:
        """The reason why a step is not taken; empty for one that is."""
        if step.action is Action.NONE:
            return step.note or "there is no request for it"
        if not step.can_run:
            return "its value is redacted in the plan: make the plan with --show-secrets"
        if step.step_class not in self._classes:
            return f"it is {step.step_class.value}: --{step.step_class.value} takes it"
        return ""

    def _take(self, number: int, step: Step) -> Taken:
        why_not = self._why_not(step)
        if why_not:
            taken = Taken(number=number, step=step, outcome="skipped", reason=why_not)
        else:
            if self._plan.assignments and step.ends_throttle:
                self._until_moved(number, step)
            is_new = self._until_done(number, step)
            taken = Taken(number=number, step=step, outcome="applied" if is_new else "already")
            if is_new:
                self._pace.sleep(1 / self._pace.rate)
        self._on_step(taken)
        return taken

    def _until_moved(self, number: int, step: Step) -> None:
        """Wait until no partition moves, as long as the brokers run that they move to. Raises ApplyError."""
        reported, deadline = 0, self._pace.seconds() + self._pace.patience
        while moving := self._patiently(self._cluster.moving):
            if len(moving) != reported:
                reported = len(moving)
                of = f"{counted(reported, 'partition')} {'moves' if reported == 1 else 'move'}"
                self._on_step(Taken(number=number, step=step, outcome="waits", reason=of))
            stuck = next(((name, brokers) for name, brokers in sorted(moving.items()) if brokers), None)
            if stuck is None:
                deadline = self._pace.seconds() + self._pace.patience
            elif self._pace.seconds() > deadline:
                waits = f"{stuck[0]} moves to {broker_words(stuck[1])}, which {'does' if len(stuck[1]) == 1 else 'do'}"
                raise ApplyError(
                    f"Step {number} ({shown(step.path)}): {waits} not run; the throttle stays until then. Run the same "
                    "command again to go on."
                )
            self._pace.sleep(_PAUSE_SECONDS)

    def _until_done(self, number: int, step: Step) -> bool:
        """Take a step until the cluster shows it; returns whether a request was sent.

        A node that fails in between, or a controller that changes, leaves the outcome of a request unknown: the cluster
        is read again, and the request repeated only where it still has the value before the step.
        """
        deadline = self._pace.seconds() + self._pace.patience
        is_sent = is_accepted = False
        settled = (
            deadline  # a broker that learns of a change may show, for a moment, where a value is from and not which
        )
        while True:
            why = "the cluster has accepted the change, and does not show it."
            try:
                described = self._cluster.read(step)
                progress = progress_of(described, step)
                if progress is Progress.DONE or (is_accepted and is_hidden(described, step)):
                    if is_sent:
                        self._note(number, step, "read back")
                    return is_sent
                if progress is Progress.OTHER and not (is_accepted and self._pace.seconds() < settled):
                    raise self._other(number, step, described)
                if not is_accepted:
                    settled = self._pace.seconds() + _SETTLED_SECONDS
                    is_sent = True
                    is_accepted = self._send(number, step)
                    continue
            except NodeError as fault:
                self._note(number, step, "no answer", error=str(fault))
                why = str(fault)
            if self._pace.seconds() > deadline:
                raise ApplyError(f"Step {number} ({shown(step.path)}): {why} Run the same command again to go on.")
            self._pace.sleep(_PAUSE_SECONDS)

    def _send(self, number: int, step: Step, *, validate_only: bool = False) -> bool:
        """Send the request of a step; returns that it was accepted.

        Raises ApplyError for a refusal, unless the cluster shows the change all the same: a request that is repeated at
        another node may have been taken before. Raises NodeError without an answer.
        """
        request = request_of(step)
        verb = "validate" if validate_only else "send"
        self._note(number, step, verb)
        make = partial(_made, request.make, step, validate_only)
        node = self._cluster.node_of(step)
        if node is None:
            response = self._client.ask(request.api, request.versions, make, request.answer)
        else:
            response = self._client.ask_node(node, request.api, request.versions, make)
        answer = request.answer(response)
        self._note(number, step, "answer", of=verb, error=answer.name, message=answer.message)
        if not answer.is_failure:
            return True
        if not validate_only:
            self._pace.sleep(_PAUSE_SECONDS)
            if progress_of(self._cluster.read(step), step) is Progress.DONE:
                return True
        if answer.is_denied:
            why = f"{self._client.principal} needs an ACL for {request.right}"
        else:
            why = f"the cluster refuses it: {answer.name}{f': {answer.message}' if answer.message else ''}"
        raise ApplyError(f"Step {number} ({step.action.value}, {shown(step.path)}): {why.rstrip('.')}.")

    def _other(self, number: int, step: Step, described: ClusterDescription) -> ApplyError:
        differences = "; ".join(
            f"{change.field} is {self._shown(change.secret, value)}, and the plan goes from "
            f"{self._shown(change.secret, change.before)} to {self._shown(change.secret, change.after)}"
            for change, value in other_values(described, step)
        )
        return ApplyError(
            f"Step {number} ({shown(step.path)}) meets another state: {differences}. It was changed after the plan was "
            "made: make a new plan."
        )

    @staticmethod
    def _shown(secret: bool, value: Any) -> str:
        return "nothing" if value is None else REDACTED if secret else shown(str(value), 60)

    def _note(self, number: int, step: Step, event: str, **more: Any) -> None:
        line = {
            "time": self._pace.clock.milliseconds(),
            "event": event,
            "number": number,
            "step": step.shown(False).to_json(),
        }
        self._journal.write(line | more)


def _made(make: Callable[[Any, Step, bool], Any], step: Step, validate_only: bool, module: Any) -> Any:
    return make(module, step, validate_only)


def _depends(step: Step, earlier: Sequence[Step]) -> bool:
    """Whether a step can only be validated after steps that are before it in its plan: of a feature, of its topic."""
    if any(one.action is Action.UPDATE_FEATURE for one in earlier):
        return True
    match step.action:
        case Action.CREATE_TOPIC:  # one that collides with its name is deleted before
            return any(one.action is Action.DELETE_TOPIC for one in earlier)
        case Action.ALTER_CONFIGS if step.subject["type"] == "TOPIC":
            return any(
                one.action is Action.CREATE_TOPIC and one.subject["topic"] == step.subject["name"] for one in earlier
            )
        case _:
            return False
