"""What a standby does when its connection to the active controller ends: it claims at once, or not at all."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kraftlake.controller.errors import ControllerApiError
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.protocol.error_code import ErrorCode
from tests.controller.kafka_rpc import KafkaRpc
from tests.server.controller import wire_requests as w
from tests.server.controller.controllers import (
    PATIENCE,
    ControllerThread,
    controller_process,
    new_lake,
    started_controller,
)
from tests.server.controller.resetting_proxy import ResettingProxy
from tests.waiting import wait_for

pytestmark = pytest.mark.xdist_group("fail_over")
ACTIVE, STANDBY = 100, 101
NEVER = {"controller_quorum_fetch_timeout_ms": "3600000"}
"""A standby that claims by its connection, or not within this test."""


@contextmanager
def behind(proxy: ResettingProxy, lake: Path) -> Iterator[tuple[ControllerThread, ControllerThread]]:
    """An active controller that is reached through a proxy, and a standby that follows it."""
    advertised = {"advertised_listeners": f"CONTROLLER://127.0.0.1:{proxy.own_port}"}
    with started_controller(new_lake(lake), ACTIVE, **advertised) as active:
        proxy.port = active.server.listeners[0].port
        active.await_active()
        with started_controller(lake, STANDBY, **NEVER) as standby:
            await_answer(active.rpc())
            yield active, standby


def await_answer(leader: KafkaRpc) -> None:
    """Wait until the standby has had an answer of the active controller: it fetches a second time."""
    await_fetch(leader, since=0)
    await_fetch(leader, since=time.time())


def await_fetch(leader: KafkaRpc, *, since: float) -> None:
    """Wait until the active controller has had a fetch of the standby since a time."""

    def has_fetched() -> bool:
        voters = leader.ask(w.describe_quorum()).topics[0].partitions[0].current_voters
        return any(one.replica_id == STANDBY and one.last_fetch_timestamp > since * 1e3 for one in voters)

    wait_for(has_fetched, "the standby follows")


def test_a_standby_claims_when_the_process_of_the_active_controller_is_killed(tmp_path: Path) -> None:
    lake = new_lake(tmp_path / "lake")
    active = controller_process(lake, tmp_path, ACTIVE)
    active.start()
    try:
        active.await_event("registered")
        with started_controller(lake, STANDBY, **NEVER) as standby:
            rpc = KafkaRpc(active.address)
            await_answer(rpc)
            epoch = standby.node.view.leader.epoch
            active.kill()
            rpc.close()
            wait_for(lambda: standby.node.controller.is_active, "the standby leads")
            assert standby.node.controller.epoch == epoch + 1
    finally:
        active.kill()


def test_a_proxy_that_resets_connections_again_and_again_moves_no_leader(tmp_path: Path) -> None:
    with ResettingProxy() as proxy, behind(proxy, tmp_path / "lake") as (active, standby):
        epoch = active.node.controller.epoch
        for _ in range(5):
            before = proxy.accepted
            proxy.reset()
            wait_for(lambda before=before: proxy.accepted > before, "the standby has connected again")
        await_fetch(active.rpc(), since=time.time())
        assert active.node.controller.is_active
        assert not standby.node.controller.is_active
        assert MetadataLog.open(tmp_path / "lake").epoch == epoch


def test_of_two_controllers_that_cannot_reach_each_other_one_answers(tmp_path: Path) -> None:
    """A firewall refuses connections to a controller that lives: the standby leads, and the other answers no more."""
    with ResettingProxy() as proxy, behind(proxy, tmp_path / "lake") as (active, standby):
        proxy.refuse()
        proxy.reset()
        wait_for(lambda: standby.node.controller.is_active, "the standby leads")
        with pytest.raises(ControllerApiError) as refused:
            active.node.controller.read(lambda image: image.offset).result(PATIENCE)
        assert refused.value.error is ErrorCode.NOT_CONTROLLER
