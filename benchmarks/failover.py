"""The loss of the active controller, of three of ours beside three of Kafka's: python -m benchmarks.failover

In turn, on the same machine, with the same client: kill -9 of the active controller, and the time until another one has
answered a change of a config, which is then in the log; the client asks the two that are left, one after another,
without a pause. Then the killed one starts again, and follows before the next round. All settings are the defaults of
Kafka. Kafka's nodes have 320 MB of memory each.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import attrs

from benchmarks.folders import made_folder
from kraftlake.protocol.address import parse_addresses
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import NodeError
from kraftlake.protocol.observer.quorum_observer import QuorumObserver
from kraftlake.runtime.free_ports import free_ports
from kraftlake.server.cluster_up.cluster_plan import NodeKind, NodePlan
from kraftlake.server.node_config import ListenerAddress
from tests.kafka_node import new_nodes
from tests.server.controller import wire_requests as w
from tests.server.controller.controllers import new_lake
from tests.server.node_process import KilledNode

CONTROLLERS = (101, 102, 103)
CLIENT_SECONDS = 1.0
_numbers = count()


class Node(Protocol):
    """A controller's process."""

    def start(self) -> None: ...
    def kill(self) -> None: ...


@attrs.frozen(kw_only=True)
class Quorum:
    """Controllers by id, and where they listen."""

    nodes: Mapping[int, Node]
    addresses: Mapping[int, str]

    def leader(self) -> int:
        """The active controller, when all others follow it."""
        while True:
            addresses = parse_addresses(",".join(self.addresses.values()))
            connect = NodeConnector(timeout=CLIENT_SECONDS)
            with suppress(NodeError), QuorumObserver(addresses, connect=connect) as observer:
                found = observer.describe()
                now_ms = time.time() * 1e3
                lately = {one.id for one in found.voters if now_ms - one.last_fetch_timestamp < 2_000}
                if {*CONTROLLERS} <= {*lately, found.leader.id}:
                    return int(found.leader.id)
            time.sleep(0.1)


@contextmanager
def kafka(folder: Path) -> Iterator[Quorum]:
    """Kafka's own."""
    nodes = new_nodes(folder, dict.fromkeys(CONTROLLERS, "controller"))
    yield from _started(Quorum(nodes=nodes, addresses={id_: node.controller for id_, node in nodes.items()}))


@contextmanager
def ours(folder: Path) -> Iterator[Quorum]:
    """Those of a lake."""
    folder.mkdir(parents=True)
    lake, ports = new_lake(folder / "lake"), free_ports(len(CONTROLLERS))
    nodes = {
        id_: KilledNode(
            NodePlan(
                kind=NodeKind.CONTROLLER, id=id_, lake=str(lake), folder=folder / str(id_), settings={},
                listener=ListenerAddress(name="CONTROLLER", host="127.0.0.1", port=port),
            )
        )
        for id_, port in zip(CONTROLLERS, ports, strict=True)
    }  # fmt: skip
    yield from _started(Quorum(nodes=nodes, addresses={id_: node.address for id_, node in nodes.items()}))


def _started(quorum: Quorum) -> Iterator[Quorum]:
    with ExitStack() as stack:
        for node in quorum.nodes.values():
            stack.callback(node.kill)
            node.start()
        yield quorum


def change(address: str) -> bool:
    """Whether a controller answers a change of a config as the active one."""
    (where,) = parse_addresses(address)
    request = w.change_configs((4, "", [("log.retention.ms", 0, str(3_600_000 + next(_numbers)))]))
    try:
        with NodeConnector(timeout=CLIENT_SECONDS)(where) as node:
            answer: Any = node.ask("incremental_alter_configs", range(1, 2), lambda _: request)
    except NodeError:
        return False
    return bool(answer.responses[0].error_code == ErrorCode.NONE)


def lose_the_leader(quorum: Quorum) -> float:
    """Seconds from kill -9 until another controller has answered; afterwards all run."""
    leader = quorum.leader()
    time.sleep(1)
    others = [address for id_, address in quorum.addresses.items() if id_ != leader]
    begin = time.perf_counter()
    quorum.nodes[leader].kill()
    while not any(map(change, others)):
        time.sleep(0.002)
    taken = time.perf_counter() - begin
    quorum.nodes[leader].start()
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="how often the active controller is killed")
    parser.add_argument("--only", choices=["kafka", "ours"], help="one of the two")
    parser.add_argument("--folder", type=made_folder, help="where the logs lie; by default among the temporary files")
    options = parser.parse_args()
    sides: dict[str, Callable[[Path], Any]] = {"kafka": kafka, "ours": ours}
    taken: dict[str, list[float]] = {}
    for name in [options.only] if options.only else sides:
        with tempfile.TemporaryDirectory(dir=options.folder) as scratch, sides[name](Path(scratch) / name) as quorum:
            taken[name] = sorted(lose_the_leader(quorum) for _ in range(options.kills))
    print(f"{'s until another controller answers':36} {'p50':>8} {'p99':>8} {'longest':>8}")
    for name, times in taken.items():
        p50, p99 = times[len(times) // 2], times[min(len(times) - 1, len(times) * 99 // 100)]
        print(f"{name:36} {p50:8.3f} {p99:8.3f} {times[-1]:8.3f}")


if __name__ == "__main__":
    main()
