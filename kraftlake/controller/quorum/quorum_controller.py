"""The controller of a process: follows the log until no other controller writes, claims the log, and runs commands.

One thread runs all events in order; a second thread commits appended batches in groups. Source:
org.apache.kafka.controller.QuorumController; elections use a compare-and-set of the log in place of Raft.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from kraftlake.controller.cluster.brokers import BrokerHeartbeatReply, process_heartbeat
from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.errors import ControllerApiError, not_controller
from kraftlake.controller.quorum.active_controller import ActiveController, Executed
from kraftlake.controller.quorum.candidacy import Candidacy
from kraftlake.controller.quorum.followed_log import FollowedLog
from kraftlake.controller.quorum.periodic_tasks import AGAIN_AFTER_MS, PeriodicTask, periodic_tasks, write_no_op
from kraftlake.controller.quorum.quorum_controller_metrics import QuorumControllerMetrics
from kraftlake.controller.quorum.waiting_answers import Answer, WaitingAnswers
from kraftlake.controller.state import Command
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.metadata_log.append.commit_queue import PendingAppend
from kraftlake.metadata_log.append.group_commit import GroupCommit
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.protocol.broker_requests import BrokerHeartbeatRequest
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.runtime.clock import Clock, SystemClock
from kraftlake.runtime.errors import EndOffsetError, KraftlakeError, LakeError
from kraftlake.runtime.event_order import EventQueueClosedError, EventTimeoutError
from kraftlake.runtime.event_queue import FunctionEvent, KafkaEventQueue
from kraftlake.runtime.fault_handler import FaultHandler, LoggingFaultHandler
from kraftlake.runtime.log import get_logger

T = TypeVar("T")
POLL_MS = 20
"""The interval at which a standby checks for a new version of the log."""
_FOLLOW = "followLog"


class QuorumController:
    """A standby at first; the active controller after it has claimed the log and written its first records.

    A standby claims when the log has had no new record for one to two times `quorum_fetch_timeout_ms`; the time is
    random, so that two standbys rarely claim together. A standby that learns that the active controller has resigned
    waits a tenth of that; one that learns that its process has ended, or that comes to a log that nobody has claimed,
    claims at once. The active controller prevents claims by a no-op record every `max_idle_interval_ms`, or more often
    if that is too long. Commands fail with NOT_CONTROLLER on a standby, and on an active controller that is fenced
    while they wait. A response that does not depend on records in the log is sent only if the log had no claim of
    another controller after its request came: by a commit since, or by a look for a later version within the fetch
    timeout of the last commit. Otherwise one more commit is made first.

    The handle `log` is for the controller's threads alone from then on.
    """

    def __init__(
        self,
        log: MetadataLog,
        config: ControllerConfig,
        *,
        clock: Clock | None = None,
        fault_handler: FaultHandler | None = None,
        draws: random.Random | None = None,
        claim_at_once: bool = False,
        metrics: QuorumControllerMetrics | None = None,
    ) -> None:
        if log.role != "controlled":
            raise LakeError(f"{log.path} is an imported lake, which has no controller: `kraftlake fork` makes a copy.")
        self.config = config
        self.metrics = metrics or QuorumControllerMetrics()
        self._clock = clock or SystemClock()
        self._faults = fault_handler or LoggingFaultHandler("quorum controller")
        self._draws = draws or random.Random()  # noqa: S311 - where replicas go is no secret
        self._followed = FollowedLog(log)
        self._active: ActiveController | None = None
        self._group: GroupCommit | None = None
        self._waiting = WaitingAnswers()
        self._lease_from_ns = self._led_at_ns = 0
        self._activated_at = -1
        self._seen_epoch = self._followed.log.epoch
        self._log = get_logger().bind(controller=config.node_id)
        timeout_ns = 0 if claim_at_once else self._draw_election_timeout()
        self._candidacy = Candidacy(since_ns=self._clock.nanoseconds(), timeout_ns=timeout_ns)
        if self._seen_epoch <= 0:
            self._candidacy.ended()  # nobody has led yet, so that there is nobody to wait for
        self.resigned_epoch = self._seen_epoch
        """The epoch of the log up to which this controller has resigned, whichever controller claimed that epoch."""
        self._queue = KafkaEventQueue(
            self._clock,
            f"quorum-controller-{config.node_id}",
            cleanup=self._step_down,
            on_idle=self.metrics.idle.record,
        )
        self._queue.append(FunctionEvent(self._follow, self._follow_failed))

    @property
    def epoch(self) -> int:
        """The claimed epoch; -1 on a standby."""
        active = self._active
        return -1 if active is None else active.epoch

    @property
    def is_active(self) -> bool:
        """Whether this controller is active, as far as it knows."""
        return self._active is not None

    def submit(self, command: Command[T], *, timeout_ms: float | None = None) -> Future[T]:
        """Run a command; the future has its response or ControllerApiError (also NOT_CONTROLLER, REQUEST_TIMED_OUT)."""
        asked_ns = self._clock.nanoseconds()
        deadline_ns = None if timeout_ms is None else asked_ns + round(timeout_ms * 1e6)
        return self._enqueue(partial(self._run, command, asked_ns), deadline_ns)

    def read(self, question: Callable[[MetadataImage], T]) -> Future[T]:
        """Apply a function to the committed image."""
        return self._enqueue(partial(self._read, question, self._clock.nanoseconds()))

    def heartbeat(
        self, request: BrokerHeartbeatRequest, *, timeout_ms: float | None = None
    ) -> Future[BrokerHeartbeatReply]:
        """Submit `process_heartbeat`; the contact is noted at once, before the event waits in the queue."""
        active = self._active
        if active is not None:
            now_ns = self._clock.nanoseconds()
            active.state.heartbeats.touch_contact(request.broker_id, request.broker_epoch, now_ns)
        answer = self.submit(lambda state: process_heartbeat(state, request), timeout_ms=timeout_ms)
        answer.add_done_callback(self._count_timeout)
        return answer

    def _count_timeout(self, answer: Future[BrokerHeartbeatReply]) -> None:
        fault = answer.exception()
        late = isinstance(fault, ControllerApiError) and fault.error is ErrorCode.REQUEST_TIMED_OUT
        self.metrics.timed_out_heartbeats += late

    def resign(self) -> Future[None]:
        """Become a standby when all appended records are durable."""

        def event(future: Future[None]) -> None:
            self._step_down()
            future.set_result(None)

        return self._enqueue(event)

    def expect_vacancy(self, epoch: int, *, ended: bool = False) -> None:
        """On a standby: note that the leader of an epoch has resigned, or that its process has `ended`."""
        self._queue.append(FunctionEvent(partial(self._expect_vacancy, epoch, ended), self._follow_failed))

    def close(self) -> None:
        """Commit the appended records and end both threads."""
        self._queue.close()

    def _enqueue(self, run: Callable[[Future[T]], None], deadline_ns: int | None = None) -> Future[T]:
        """Return the future that `run` completes on the queue's thread.

        The future fails at the deadline or when the queue closes.
        """
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        self._queue.append(FunctionEvent(partial(run, future), partial(self._fail, future)), deadline_ns=deadline_ns)
        return future

    # The methods below run on the queue's thread unless they say otherwise.

    def _draw_election_timeout(self) -> int:
        return round(self.config.quorum_fetch_timeout_ms * 1e6 * self._draws.uniform(1, 2))

    def _follow(self) -> None:
        if self._active is not None:
            return
        if self._followed.catch_up():
            # only now: a slow read, or a pause within it, is no silence of the leader
            self._candidacy.heard(self._clock.nanoseconds())
            self._note_followed()
        if self._candidacy.is_due(self._clock.nanoseconds()):
            self._claim(expected_end_offset=self._followed.log.end_offset if self._candidacy.timeout_ns else None)
        if self._active is None:
            self._follow_after(POLL_MS)

    def _expect_vacancy(self, epoch: int, ended: bool) -> None:
        self._follow()
        if self._active is not None or self._followed.log.epoch != epoch:
            return  # a later epoch was claimed meanwhile
        if ended:
            self._candidacy.ended()
            self._follow()
        else:
            self._candidacy.resigned(self._clock.nanoseconds())

    def _note_followed(self) -> None:
        """Update the metrics after a standby has replayed the log to its end."""
        image, epoch = self._followed.loader.image, self._followed.log.epoch
        self.metrics.applied(image.provenance.offset, image.provenance.timestamp)
        self.metrics.last_committed_offset = image.provenance.offset
        self.metrics.new_active_controllers += epoch > self._seen_epoch
        self._seen_epoch = max(epoch, self._seen_epoch)

    def _follow_after(self, delay_ms: float) -> None:
        due = self._clock.nanoseconds() + round(delay_ms * 1e6)
        self._queue.schedule_deferred(_FOLLOW, due, FunctionEvent(self._follow, self._follow_failed))

    def _follow_failed(self, fault: Exception) -> None:
        if isinstance(fault, EventQueueClosedError):
            return
        self._faults.handle_fault("following the metadata log", fault)
        self._step_down()
        self._candidacy.restart(self._clock.nanoseconds(), self._draw_election_timeout())
        self._follow_after(self.config.quorum_fetch_timeout_ms)

    def _claim(self, *, expected_end_offset: int | None) -> None:
        """Claim the log, unless it has records after an offset: those show another writing controller."""
        started_ns = self._clock.nanoseconds()
        writer = self._followed.log.another_handle()  # one that is opened anew would have many commits to read first
        timestamp = self._clock.milliseconds()
        try:
            epoch = writer.claim(self.config.node_id, timestamp=timestamp, expected_end_offset=expected_end_offset)
        except EndOffsetError:
            return
        self._followed.catch_up()
        self._note_followed()
        self._candidacy.restart(started_ns, self._draw_election_timeout())
        if self._followed.log.epoch != epoch:
            return  # another controller has claimed the log after this one
        self._active = active = self._followed.take_over(self.config, epoch, clock=self._clock, draws=self._draws)
        self._lease_from_ns = self._led_at_ns = started_ns
        self._group = GroupCommit(writer, epoch, on_failure=self._commit_failed)
        self._log.info("log_claimed", epoch=epoch, offset=active.durable_offset)
        executed = active.activate(self._followed.bootstrap)
        self._activated_at = executed.answer_at
        self.metrics.active, self.metrics.last_contacts = True, active.state.heartbeats.last_contacts
        self._append(executed)
        for task in periodic_tasks(self.config):
            self._schedule(task, task.pause_ms(active.state))

    def _schedule(self, task: PeriodicTask, delay_ms: float) -> None:
        due = self._clock.nanoseconds() + round(delay_ms * 1e6)
        event = FunctionEvent(partial(self._run_task, task), partial(self._task_failed, task))
        self._queue.schedule_deferred(task.name, due, event)

    def _run_task(self, task: PeriodicTask) -> None:
        active = self._active
        if active is None:
            return
        executed = active.execute(task.command)
        self._append(executed)
        self._schedule(task, AGAIN_AFTER_MS if executed.response else task.pause_ms(active.state))

    def _task_failed(self, task: PeriodicTask, fault: Exception) -> None:
        if isinstance(fault, EventQueueClosedError):
            return
        self._faults.handle_fault(f"the periodic task {task.name}", fault)
        if self._active is not None:
            self._schedule(task, max(AGAIN_AFTER_MS, task.pause_ms(self._active.state)))

    def _run(self, command: Command[T], asked_ns: int, future: Future[T]) -> None:
        active, began_ns = self._active, self._clock.nanoseconds()
        if active is None:
            raise not_controller()
        self.metrics.operations_started += 1
        self.metrics.queue_time_ms.add((began_ns - asked_ns) / 1e6)
        give: Callable[[], None]
        try:
            executed = active.execute(command)
        except ControllerApiError as refusal:
            # the refusal may depend on records that are not durable yet, or on those of another controller
            give, at, records = partial(future.set_exception, refusal), active.last_appended, False
        else:
            self._append(executed)
            give = partial(future.set_result, executed.response)
            at, records = executed.answer_at, bool(executed.batches)
        self.metrics.processing_time_ms.add((self._clock.nanoseconds() - began_ns) / 1e6)
        fail = partial(future.set_exception, not_controller())
        self._answer(active, at, Answer(give, fail, records=records, asked_ns=asked_ns))

    def _fail(self, future: Future[Any], fault: Exception) -> None:
        """Complete a future with a fault, as Kafka's error if one corresponds."""
        self.metrics.operations_timed_out += isinstance(fault, EventTimeoutError)
        if isinstance(fault, EventTimeoutError):
            fault = ControllerApiError(ErrorCode.REQUEST_TIMED_OUT, "The controller had no time for the request.")
        elif isinstance(fault, EventQueueClosedError):
            fault = not_controller()
        if not future.done():
            future.set_exception(fault)

    def _read(self, question: Callable[[MetadataImage], T], asked_ns: int, future: Future[T]) -> None:
        active = self._active
        if active is None:
            raise not_controller()

        def give() -> None:
            try:
                future.set_result(question(active.committed))
            except Exception as fault:  # a fault of the caller's function
                future.set_exception(fault)

        fail = partial(future.set_exception, not_controller())
        self._answer(active, self._activated_at, Answer(give, fail, records=False, asked_ns=asked_ns))

    def _answer(self, active: ActiveController, at: int, answer: Answer) -> None:
        """Send an answer now, when offset `at` is durable, or after one more commit if another may lead."""
        if self._active is not active:
            answer.fail()
        elif at > active.durable_offset:
            self._waiting.add(max(at, active.last_appended), answer)
        elif answer.records or self._has_led_since(answer.asked_ns):
            answer.give()
        else:
            if active.last_appended <= active.durable_offset:  # otherwise a commit is under way
                self._append(active.execute(write_no_op))
            self._answer(active, active.last_appended, answer)

    def _has_led_since(self, asked_ns: int) -> bool:
        """Whether no other controller had claimed the log when a request came at `asked_ns`.

        A look for a later version serves all requests that came before it. Beyond the fetch timeout of the last commit
        a commit has to be made: a disk that fails must not be led.
        """
        now_ns = self._clock.nanoseconds()
        if now_ns - self._lease_from_ns >= self.config.quorum_fetch_timeout_ms * 1_000_000:
            return False
        if self._led_at_ns < asked_ns and self._group is not None and self._group.is_newest():
            self._led_at_ns = now_ns
        return self._led_at_ns >= asked_ns

    def _append(self, executed: Executed[Any]) -> None:
        group = self._group
        assert group is not None, "an active controller has a group commit"
        offset = executed.base_offset
        for batch in executed.batches:
            now_ns = self._clock.nanoseconds()
            try:
                pending = group.append(batch, timestamp=self._clock.milliseconds(), wait=None)
            except KraftlakeError as fault:
                self._renounce(group, fault)
                return
            assert pending.base_offset == offset, "the pending image has the offsets of its records"
            offset = pending.last_offset + 1
            self.metrics.applied(pending.last_offset, self._clock.milliseconds())
            pending.done.add_done_callback(partial(self._appended, group, pending, now_ns))

    def _appended(self, group: GroupCommit, pending: PendingAppend, since_ns: int, done: Future[int]) -> None:
        """Handle a durable or failed batch, on the committing thread."""
        if done.exception() is None:
            durable = partial(self._durable, group, pending.last_offset, since_ns)
            self._queue.append(FunctionEvent(durable, self._leading_failed))

    def _durable(self, group: GroupCommit, offset: int, since_ns: int) -> None:
        active = self._active
        if active is None or group is not self._group:
            return
        active.committed_up_to(offset)
        self.metrics.last_committed_offset = offset
        self._lease_from_ns = max(self._lease_from_ns, since_ns)
        self._led_at_ns = max(self._led_at_ns, since_ns)
        for answer in self._waiting.take_up_to(offset):
            try:
                self._answer(active, offset, answer)
            except Exception as fault:  # the other answers are still given
                self._faults.handle_fault("answering a command", fault)
                answer.fail()

    def _commit_failed(self, fault: KraftlakeError) -> None:
        """Handle a failed commit, on the committing thread."""
        self._queue.prepend(FunctionEvent(partial(self._renounce, self._group, fault), self._leading_failed))

    def _leading_failed(self, fault: Exception) -> None:
        if isinstance(fault, EventQueueClosedError):
            return  # the queue's cleanup answers all that wait
        self._faults.handle_fault("leading the quorum", fault)
        self._step_down()

    def _renounce(self, group: GroupCommit | None, fault: KraftlakeError) -> None:
        """Become a standby: drop pending records and fail the waiting requests."""
        if self._active is None or group is not self._group:
            return
        self._log.warning("log_lost", epoch=self._active.epoch, cause=str(fault))
        self._step_down()

    def _step_down(self) -> None:
        group, self._group = self._group, None
        if self._active is None or group is None:
            return
        self.resigned_epoch = self._active.epoch
        active, self._active = self._active, None
        group.close()
        self.metrics.active, self.metrics.last_contacts = False, dict
        self.metrics.last_applied_offset = active.durable_offset
        for answer in self._waiting.take_all():
            answer.give() if group.fault is None and answer.records else answer.fail()
        for task in periodic_tasks(self.config):
            self._queue.cancel_deferred(task.name)
        self._log.info("leadership_ended", epoch=active.epoch)
        self._candidacy.restart(self._clock.nanoseconds(), self._draw_election_timeout())
        if not self._queue.shutting_down:
            self._follow_after(POLL_MS)
