"""The states of a broker, and the times of its requests to the controller.

Pure: the driver has the clock and the network.

Source: org.apache.kafka.server.BrokerLifecycleManager (KIP-631, KIP-858).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Final, TypeAlias

import attrs

from kraftlake.protocol.broker_requests import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)
_MS: Final = 1_000_000
_AFTER_CATCH_UP_MS: Final = 10
_AFTER_FIRST_SHUTDOWN_ANSWER_MS: Final = 50

LifecycleRequest: TypeAlias = BrokerRegistrationRequest | BrokerHeartbeatRequest
LifecycleResponse: TypeAlias = BrokerRegistrationResponse | BrokerHeartbeatResponse


class LifecycleState(IntEnum):
    """The state of a broker, with Kafka's numbers. Source: org.apache.kafka.metadata.BrokerState."""

    NOT_RUNNING = 0
    STARTING = 1
    """The broker catches up with the metadata log."""
    RECOVERY = 2
    """The broker has caught up, and is fenced."""
    RUNNING = 3
    """The broker has been unfenced."""
    PENDING_CONTROLLED_SHUTDOWN = 6
    """The broker waits until the controller has moved its leaderships."""
    SHUTTING_DOWN = 7


@attrs.frozen(kw_only=True)
class LifecycleConfig:
    """Kafka's settings of a broker's life, with its names and defaults; times in ms.

    Source: org.apache.kafka.raft.KRaftConfigs, org.apache.kafka.server.config.ServerLogConfigs.
    """

    broker_heartbeat_interval_ms: int = 2_000
    broker_session_timeout_ms: int = 9_000
    initial_broker_registration_timeout_ms: int = 60_000
    log_dir_failure_timeout_ms: int = 30_000

    @property
    def channel_retry_timeout_ms(self) -> int:
        """The maximum time in which the channel may send a request, so that a newer heartbeat fits into the session."""
        return self.broker_session_timeout_ms // 2


class BrokerLifecycle:
    """The state machine of one broker process; all times are those of one monotonic clock, in ns.

    The driver calls `next_request` at `due_ns`, sends the returned request, and passes the answer to `answered`; at
    most one request is in flight. Like Kafka's broker, it registers again only on request (`resend_registration`):
    after STALE_BROKER_EPOCH or BROKER_ID_NOT_REGISTERED, as after all other errors, the heartbeat is repeated after
    `broker_heartbeat_interval_ms`. A broker that has not registered within `initial_broker_registration_timeout_ms`, or
    has not reported a failed directory within `log_dir_failure_timeout_ms`, shuts down; `fault` is the reason.
    `metadata_offset` returns the last applied offset of the metadata log; `cordoned` are the log directories that get
    no new replicas.
    """

    def __init__(
        self,
        registration: BrokerRegistrationRequest,
        metadata_offset: Callable[[], int],
        config: LifecycleConfig | None = None,
        *,
        cordoned: Sequence[Uuid] = (),
    ) -> None:
        self.config = config or LifecycleConfig()
        self.state = LifecycleState.NOT_RUNNING
        self.broker_epoch = -1
        """The epoch of the registration, −1 before the first."""
        self.fault: str | None = None
        """The reason for which the broker shuts down without a request to stop."""
        directories = tuple(sorted(registration.log_dirs, key=Uuid.sort_key))
        self._registration = attrs.evolve(registration, log_dirs=directories)
        self._cordoned = tuple(cordoned)
        self._metadata_offset = metadata_offset
        self._registered = False
        self._ready_to_unfence = False
        self.got_shutdown_answer = False
        """Whether a controller has answered a request for a controlled shutdown."""
        self._in_flight: LifecycleRequest | None = None
        self._refusal: ErrorCode | None = None
        self._at_once_after_answer = False
        self._communicate_at_ns: int | None = None
        self._register_by_ns: int | None = None
        self._unreported: dict[Uuid, int] = {}
        """Failed directories that no answered heartbeat has reported, each with the deadline of its report."""
        self._offline: list[Uuid] = []

    @property
    def due_ns(self) -> int | None:
        """The time of the next call of `next_request`; None while nothing is due."""
        if self.state in (LifecycleState.NOT_RUNNING, LifecycleState.SHUTTING_DOWN):
            return None
        dues = [self._communicate_at_ns, self._register_by_ns, *self._unreported.values()]
        return min((due for due in dues if due is not None), default=None)

    # events

    def start(self, now_ns: int) -> None:
        """Begin to register."""
        assert self.state is LifecycleState.NOT_RUNNING, "a process starts once"
        self.state = LifecycleState.STARTING
        self._register_by_ns = now_ns + self.config.initial_broker_registration_timeout_ms * _MS
        self._communicate_at_ns = now_ns

    def set_ready_to_unfence(self, now_ns: int) -> None:
        """Request unfencing from now on: the broker can serve."""
        self._ready_to_unfence = True
        self._schedule(now_ns)

    def directory_failed(self, directory: Uuid, now_ns: int) -> None:
        """Report a log directory as offline to the controller."""
        if directory in self._offline:
            return
        self._offline.append(directory)
        self._unreported[directory] = now_ns + self.config.log_dir_failure_timeout_ms * _MS
        if self._registered:
            self._schedule(now_ns)

    def cordon(self, directories: Sequence[Uuid], now_ns: int) -> None:
        """Report to the controller the log directories that get no new replicas from now on."""
        self._cordoned = tuple(directories)
        if self._registered:
            self._schedule(now_ns)

    def resend_registration(self, now_ns: int) -> None:
        """Register again, for another broker epoch."""
        self._registered = False
        self._schedule(now_ns)

    def begin_controlled_shutdown(self, now_ns: int) -> None:
        """Request a controlled shutdown if the broker runs; otherwise shut down at once."""
        if self.state is LifecycleState.RUNNING:
            self.state = LifecycleState.PENDING_CONTROLLED_SHUTDOWN
            self._schedule(now_ns)
        elif self.state is not LifecycleState.PENDING_CONTROLLED_SHUTDOWN:
            self.begin_shutdown()

    def begin_shutdown(self) -> None:
        """Shut down without the controller's permission."""
        self.state = LifecycleState.SHUTTING_DOWN

    # communication

    def next_request(self, now_ns: int) -> LifecycleRequest | None:
        """The request to send now, if one is due."""
        self._check_deadlines(now_ns)
        due = self.due_ns
        if due is None or self._communicate_at_ns is None or self._communicate_at_ns > now_ns:
            return None
        self._communicate_at_ns = None
        if self._in_flight is not None:
            self._at_once_after_answer = True
            return None
        self._in_flight = self._heartbeat() if self._registered else self._registration
        return self._in_flight

    def _check_deadlines(self, now_ns: int) -> None:
        if self.due_ns is None:
            return
        if self._register_by_ns is not None and self._register_by_ns <= now_ns:
            waited = self.config.initial_broker_registration_timeout_ms
            last = f"; the last answer was {self._refusal.name}" if self._refusal is not None else ""
            self.fault = f"no controller has registered the broker within {waited} ms{last}"
            self.begin_shutdown()
        for directory, by_ns in self._unreported.items():
            if by_ns <= now_ns:
                waited = self.config.log_dir_failure_timeout_ms
                self.fault = f"no controller could be told within {waited} ms that log directory {directory} is offline"
                self.begin_shutdown()

    def _heartbeat(self) -> BrokerHeartbeatRequest:
        return BrokerHeartbeatRequest(
            broker_id=self._registration.broker_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._metadata_offset(),
            want_fence=not self._ready_to_unfence,
            want_shut_down=self.state is LifecycleState.PENDING_CONTROLLED_SHUTDOWN,
            offline_log_dirs=tuple(self._offline),
            cordoned_log_dirs=None if self.state is LifecycleState.STARTING else self._cordoned,
        )

    def answered(self, response: LifecycleResponse | None, now_ns: int) -> None:
        """Process the answer to the request in flight; None if no controller has answered in time."""
        request, self._in_flight = self._in_flight, None
        assert request is not None, "an answer follows a request"
        if self.state is LifecycleState.SHUTTING_DOWN:
            return
        if response is None or response.error is not ErrorCode.NONE:
            self._refusal = None if response is None else response.error
            error = "no answer" if response is None else response.error.name
            _log.warning("broker_not_heard", broker=request.broker_id, request=type(request).__name__, error=error)
            self._at_once_after_answer = False  # never at once after a failure
            self._schedule(now_ns, self.config.broker_heartbeat_interval_ms)
        elif isinstance(response, BrokerRegistrationResponse):
            self.broker_epoch = response.broker_epoch
            self._registered = True
            self._register_by_ns = None
            self._schedule(now_ns)
        else:
            assert isinstance(request, BrokerHeartbeatRequest), "each request has its response"
            for directory in request.offline_log_dirs:
                self._unreported.pop(directory, None)
            if self.state is LifecycleState.PENDING_CONTROLLED_SHUTDOWN and not request.want_shut_down:
                self._schedule(now_ns)  # what was asked before: the controllers may not have heard of the shutdown
            else:
                self._schedule(now_ns, self._after_heartbeat(response))

    def _after_heartbeat(self, response: BrokerHeartbeatResponse) -> int:
        """Change the state according to the controller's answer; returns the ms until the next heartbeat."""
        state = self.state
        if state is LifecycleState.STARTING:
            if response.is_caught_up:
                self.state = LifecycleState.RECOVERY
            return _AFTER_CATCH_UP_MS
        if state is LifecycleState.RECOVERY and not response.is_fenced:
            self.state = LifecycleState.RUNNING
        elif state is LifecycleState.PENDING_CONTROLLED_SHUTDOWN:
            first, self.got_shutdown_answer = not self.got_shutdown_answer, True
            if response.should_shut_down:
                self.begin_shutdown()
            elif first:
                return _AFTER_FIRST_SHUTDOWN_ANSWER_MS
        return self.config.broker_heartbeat_interval_ms

    def _schedule(self, now_ns: int, after_ms: int = 0) -> None:
        """Schedule the next request, in place of the scheduled one."""
        after_ms = 0 if self._at_once_after_answer else after_ms
        self._at_once_after_answer = False
        self._communicate_at_ns = now_ns + after_ms * _MS
