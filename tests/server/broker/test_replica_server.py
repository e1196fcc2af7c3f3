"""One process of a broker, where it does not come to a cluster."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from kraftlake.protocol.address import Address
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_error import NodeError
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.broker.replica_server import ReplicaServer
from kraftlake.server.node_config import ListenerAddress
from tests.protocol.fake_nodes import receive, serving
from tests.protocol.observer.fake_quorum import FakeQuorum
from tests.protocol.observer.model_quorum import ModelQuorum

PROMPTLY = 5.0


def server(address: Address, folder: Path, stop: threading.Event) -> ReplicaServer:
    listener = ListenerAddress(name="PLAINTEXT", host="127.0.0.1", port=0)
    config = BrokerConfig(broker_id=7, bootstrap=str(address), log_dirs=(str(folder / "d"),), listener=listener)
    return ReplicaServer(config, stop=stop)


@contextmanager
def silent() -> Iterator[Address]:
    """A node that takes connections and answers nothing."""
    with serving(lambda connection: receive(connection, 1 << 20) and None) as address:
        yield address


@contextmanager
def leaderless() -> Iterator[Address]:
    """A controller of a quorum that has no leader."""
    quorum = FakeQuorum(ModelQuorum())
    quorum.refusal = ErrorCode.NOT_LEADER_OR_FOLLOWER
    with quorum.serving() as addresses:
        yield addresses[0]


@pytest.mark.parametrize("controller", [silent, leaderless])
def test_asked_to_end_while_it_waits_for_the_first_controller_it_ends_at_once_and_has_begun_nothing(
    controller: Callable[[], AbstractContextManager[Address]], tmp_path: Path
) -> None:
    stop = threading.Event()
    timer = threading.Timer(0.3, stop.set)
    with controller() as address:
        timer.start()
        began = time.monotonic()
        server(address, tmp_path, stop).run()
        assert time.monotonic() - began < PROMPTLY
    timer.join()
    assert list(tmp_path.iterdir()) == []


def test_a_controller_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(NodeError, match="refuses connections"):
        server(Address("127.0.0.1", port), tmp_path, threading.Event()).run()
