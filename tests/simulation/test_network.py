"""The network between simulated processes, as clients and listeners see it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kraftlake.protocol.address import Address
from kraftlake.protocol.node_error import SilentNodeError
from kraftlake.server.requests.dispatcher import Peer
from simulator.network import Network, VirtualConnection, VirtualListener
from simulator.scheduler import SECOND, Process, Scheduler

PORT = 9000


def test_a_suspended_process_handles_a_request_late_whose_client_has_given_it_up(time: Scheduler) -> None:
    network = time.outside.extra["network"] = Network(time)
    server, handled = Process(time, "server"), list[int]()

    def handle(_frame: bytes, _peer: Peer, respond: Callable[[bytes | None], None]) -> None:
        handled.append(time.now_ns)
        respond(b"done")

    def ask() -> None:
        with VirtualConnection(Address("host", PORT), timeout=10) as connection, pytest.raises(SilentNodeError):
            connection.exchange(b"a frame longer than a header")

    time.start(server, "main", lambda: VirtualListener("listener", "host", PORT, handle).start())
    time.run(SECOND)
    time.suspend(server)
    time.start(Process(time, "client"), "main", ask)
    time.run(60 * SECOND)
    assert (handled, network.late_ns < 0) == ([], True)
    time.resume(server)
    time.run(61 * SECOND)
    assert handled == [network.late_ns] == [60 * SECOND]
