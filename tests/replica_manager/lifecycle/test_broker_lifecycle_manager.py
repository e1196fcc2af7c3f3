"""The thread around a broker's lifecycle: it sends what is due, and hands the answers back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from kraftlake.protocol.broker_requests import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kraftlake.replica_manager.lifecycle.broker_lifecycle import BrokerLifecycle, LifecycleConfig, LifecycleState
from kraftlake.replica_manager.lifecycle.broker_lifecycle_manager import BrokerLifecycleManager
from kraftlake.runtime.clock import SystemClock
from tests.replica_manager.lifecycle.test_broker_lifecycle import REGISTRATION, A
from tests.waiting import PATIENCE


class Controller:
    """Answers each request on a thread of its own, as a channel does; `silent` keeps it from that."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.silent = False
        self.fenced = True
        self._changed = threading.Condition()

    def send(self, request: Any, on_answer: Callable[[Any], None]) -> None:
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        if self.silent:
            return
        answer: Any = BrokerRegistrationResponse(broker_epoch=40 + len(self.requests))
        if isinstance(request, BrokerHeartbeatRequest):
            self.fenced = self.fenced and request.want_fence
            answer = BrokerHeartbeatResponse(
                is_caught_up=True, is_fenced=self.fenced, should_shut_down=request.want_shut_down
            )
        threading.Thread(target=on_answer, args=[answer]).start()

    def await_request(self, condition: Callable[[Any], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: any(map(condition, self.requests)), PATIENCE)


def managed(controller: Controller, **config: int) -> BrokerLifecycleManager:
    settings = {"broker_heartbeat_interval_ms": 20} | config
    lifecycle = BrokerLifecycle(REGISTRATION, lambda: 100, LifecycleConfig(**settings))
    return BrokerLifecycleManager(lifecycle, controller, SystemClock())


def test_a_broker_is_led_from_its_start_to_its_controlled_shutdown() -> None:
    controller = Controller()
    manager = managed(controller)
    assert (manager.state, manager.broker_epoch) == (LifecycleState.NOT_RUNNING, -1)
    manager.start()
    assert manager.await_state(LifecycleState.RECOVERY, PATIENCE) is LifecycleState.RECOVERY
    assert manager.broker_epoch == 41
    manager.set_ready_to_unfence()
    assert manager.await_state(LifecycleState.RUNNING, PATIENCE) is LifecycleState.RUNNING
    manager.directory_failed(A)
    controller.await_request(lambda one: isinstance(one, BrokerHeartbeatRequest) and one.offline_log_dirs == (A,))
    manager.resend_registration()
    controller.await_request(lambda one: isinstance(one, BrokerHeartbeatRequest) and one.broker_epoch > 41)
    manager.begin_controlled_shutdown()
    assert manager.await_state(LifecycleState.SHUTTING_DOWN, PATIENCE) is LifecycleState.SHUTTING_DOWN
    assert manager.fault is None
    assert controller.requests[-1].want_shut_down
    manager.close()
    sent = len(controller.requests)
    manager.set_ready_to_unfence()
    assert len(controller.requests) == sent, "nothing is sent after the end"


def test_a_broker_without_a_controller_gives_up_after_its_time() -> None:
    controller = Controller()
    controller.silent = True
    manager = managed(controller, initial_broker_registration_timeout_ms=50)
    manager.start()
    assert manager.await_state(LifecycleState.SHUTTING_DOWN, PATIENCE) is LifecycleState.SHUTTING_DOWN
    assert manager.fault == "no controller has registered the broker within 50 ms"
    assert [type(one) for one in controller.requests] == [BrokerRegistrationRequest]
    manager.close()


def test_waiting_for_a_state_ends_with_the_time_or_the_broker() -> None:
    controller = Controller()
    controller.silent = True
    manager = managed(controller)
    manager.start()
    assert manager.await_state(LifecycleState.RUNNING, 0.01) in (LifecycleState.NOT_RUNNING, LifecycleState.STARTING)
    waiting = threading.Thread(target=manager.await_state, args=[LifecycleState.RUNNING])
    waiting.start()
    manager.close()
    waiting.join(PATIENCE)
    assert not waiting.is_alive()
    assert manager.state is LifecycleState.SHUTTING_DOWN
