"""Faults of a simulated cluster: each begins, lasts for a while, and is undone."""

from __future__ import annotations

import errno
from collections.abc import Callable, Generator
from itertools import permutations
from typing import TYPE_CHECKING, TypeVar

import attrs

from simulator.faulty_files import READ, SYNC, WRITE, Fault
from simulator.lake_disk import LakeDisk
from simulator.lake_store import LakeTrouble
from simulator.network import NetworkTrouble
from simulator.nodes import BrokerMachine, Node
from simulator.scheduler import MILLISECOND, SECOND, Process

if TYPE_CHECKING:
    from simulator.cluster import VirtualCluster

N = TypeVar("N", bound=Node)
_DISK_ERRORS = ((errno.EIO, READ), (errno.EIO, WRITE), (errno.EIO, SYNC), (errno.EROFS, WRITE))


@attrs.define
class Faults:
    """Draws faults; each generator begins one, yields how long it lasts (ns), undoes it, and returns whether it hit."""

    cluster: VirtualCluster
    hits: dict[str, int] = attrs.field(factory=dict)

    def inject(self) -> None:
        """Begin a fault, wait, undo it, and count it if it hit."""
        kinds = list(_FAULTS.items())
        fault = self.cluster.chance.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]
        self.run(fault)

    def run(self, fault: Callable[[Faults], Generator[int, None, bool]]) -> None:
        """Run one fault."""
        cluster = self.cluster
        cluster.note(f"fault {fault.__name__}")
        steps = fault(self)
        hit: bool | None = None
        while True:
            try:
                lasts_ns = next(steps)
            except StopIteration as end:
                hit = end.value
                break
            cluster.scheduler.sleep(lasts_ns)
        if hit:
            self.hits[fault.__name__] = self.hits.get(fault.__name__, 0) + 1

    @property
    def count(self) -> int:
        """How many faults hit."""
        return sum(self.hits.values())

    def _lasts(self, longest_s: int = 180) -> int:
        return self.cluster.chance.randrange(SECOND, longest_s * SECOND)

    def _node(self) -> Node:
        return self._noted(self.cluster.chance.choice(self.cluster.nodes))

    def _broker(self) -> BrokerMachine:
        return self._noted(self.cluster.chance.choice(list(self.cluster.brokers.values())))

    def _noted(self, node: N) -> N:
        self.cluster.note(f"  it is {node.name}")
        return node

    # processes

    def crash(self) -> Generator[int, None, bool]:
        """kill -9 of a node; its machine goes on."""
        node = self._node()
        was_up = node.is_up
        if not was_up or not self.cluster.promise.may_crash(node):
            return False
        node.kill()
        self.cluster.promise.ended_unclean(node, lossy=False)
        yield self._lasts()
        node.start_if_down()
        return was_up

    def crash_of_leader(self) -> Generator[int, None, bool]:
        """kill -9 of the active controller."""
        node = self.cluster.active_controller()
        if node is None:
            return False
        node.kill()
        yield self._lasts()
        node.start_if_down()
        return True

    def crash_in_commit(self) -> Generator[int, None, bool]:
        """kill -9 of a controller in the middle of a write to the lake."""
        strike, killed = self.cluster.lake.strike, []
        if strike.is_armed:
            return False

        def kill(writer: Process) -> None:
            node = self._noted(writer.extra["node"])
            node.kill()
            killed.append(node)

        strike.arm(self.cluster.chance.randrange(1, 24), kill)
        yield self._lasts()
        for node in killed:
            node.start_if_down()
        if not killed:
            strike.disarm()
        return bool(killed)

    def power_cut_of_lake(self) -> Generator[int, None, bool]:
        """The machine with the lake's disk loses power in the middle of a write, and all nodes run on it.

        What brokers have written is on disks that lose nothing: by replicas on one machine nothing would be promised.
        """
        cluster, lake = self.cluster, self.cluster.lake
        if not isinstance(lake, LakeDisk) or lake.strike.is_armed:
            return False
        is_cut = False

        def cut(_: Process) -> None:
            nonlocal is_cut
            is_cut = all(map(cluster.promise.may_crash, cluster.nodes))
            if is_cut:
                cluster.note("  the power is cut")
                cluster.lose_lake_power(lake)

        lake.strike.arm(cluster.chance.randrange(1, 24), cut, when_named=cluster.chance.random() < 0.5)
        yield self._lasts()
        for node in cluster.nodes if is_cut else ():
            node.start_if_down()
        if not is_cut:
            lake.strike.disarm()
        return is_cut

    def power_cut(self) -> Generator[int, None, bool]:
        """A broker's machine loses power, and what it had not synced; one at a time."""
        cluster, node = self.cluster, self._broker()
        if not cluster.promise.may_lose(node):
            return False
        was_up = node.is_up
        node.cut_power()
        cluster.promise.ended_unclean(node, lossy=True)
        yield self._lasts()
        node.start_if_down()
        return was_up

    def pause(self) -> Generator[int, None, bool]:
        """SIGSTOP and SIGCONT."""
        node = self._node()
        was_up = node.is_up
        node.suspend()
        yield self._lasts(300)
        node.resume()
        return was_up

    def pause_of_leader(self) -> Generator[int, None, bool]:
        """SIGSTOP of the active controller, for longer than the others wait for it."""
        node = self.cluster.active_controller()
        if node is None:
            return False
        node.suspend()
        yield self._lasts(300) + 60 * SECOND
        node.resume()
        return True

    def rolling_restart(self) -> Generator[int, None, bool]:
        """Each broker in turn leaves in order and starts again."""
        for node in list(self.cluster.brokers.values()):
            node.leave()
            for waited in range(240):  # it gives up after 300 s without a controller
                if waited > 60 and node.is_up and self.cluster.promise.may_crash(node):
                    node.kill()
                    self.cluster.promise.ended_unclean(node, lossy=False)
                if not node.is_up:
                    break
                yield 2 * SECOND
            node.start_if_down()
            yield 20 * SECOND
        return True

    def outage(self) -> Generator[int, None, bool]:
        """Brokers fall out one after another, one of them without power, until none is left; they come back by chance.

        Each is gone for longer than its session before the next: the last ones are eligible leaders out of sync.
        """
        cluster, chance = self.cluster, self.cluster.chance
        nodes = chance.sample(list(cluster.brokers.values()), len(cluster.brokers))
        powerless = self._noted(chance.choice(nodes[1:]))
        for node in nodes:
            if node is not powerless:
                node.suspend()
            elif cluster.promise.may_lose(node):
                node.cut_power()
                cluster.promise.ended_unclean(node, lossy=True)
            yield 70 * SECOND + self._lasts(40)
        for node in chance.sample(nodes, len(nodes)):
            node.resume()
            node.start_if_down()
            yield self._lasts(60)
        return True

    def clock_jump(self) -> Generator[int, None, bool]:
        """The wall clock of a machine jumps, to and fro."""
        node = self._node()
        jump_ns = self.cluster.chance.randrange(-3600, 3600) * SECOND
        node.jump(jump_ns)
        yield self._lasts()
        node.jump(-jump_ns)
        return True

    # network

    def cut_link(self) -> Generator[int, None, bool]:
        """Nothing gets from one node to another, one way or both."""
        network, chance = self.cluster.network, self.cluster.chance
        one, other = chance.sample([node.name for node in self.cluster.nodes], 2)
        pairs = {(one, other), (other, one)} if chance.random() < 0.5 else {(one, other)}
        before = network.hits
        network.cut |= pairs
        yield self._lasts()
        network.cut -= pairs
        return network.hits > before

    def isolate(self) -> Generator[int, None, bool]:
        """A node is cut off from all others and all clients, perhaps one way, perhaps from the lake too."""
        network, chance, node = self.cluster.network, self.cluster.chance, self._node()
        others = [name for name in self.cluster.names if name != node.name]
        pairs = {(node.name, other) for other in others} if chance.random() < 0.7 else set()
        pairs |= {(other, node.name) for other in others} if chance.random() < 0.7 or not pairs else set()
        before, lasts_ns = network.hits, self._lasts()
        network.cut |= pairs
        if chance.random() < 0.5 and node.process is not None:
            node.process.extra["lake_gone_until"] = self.cluster.scheduler.now_ns + lasts_ns
        yield lasts_ns
        network.cut -= pairs
        return network.hits > before

    def refusal(self) -> Generator[int, None, bool]:
        """A firewall resets and refuses what controllers ask each other, while both live and serve others."""
        network = self.cluster.network
        names = [node.name for node in self.cluster.controllers.values()]
        pairs, before = {*permutations(names, 2)}, network.hits
        network.refuse(pairs)
        yield self._lasts()
        network.refused -= pairs
        return network.hits > before

    def split(self) -> Generator[int, None, bool]:
        """The nodes and clients fall into two parts."""
        network, chance = self.cluster.network, self.cluster.chance
        names = self.cluster.names
        part = set(chance.sample(names, len(names) // 2))
        pairs = {(one, other) for one, other in permutations(names, 2) if (one in part) != (other in part)}
        before = network.hits
        network.cut |= pairs
        yield self._lasts()
        network.cut -= pairs
        return network.hits > before

    def bad_network(self) -> Generator[int, None, bool]:
        """Frames are lost, late, and connections break."""
        network, chance = self.cluster.network, self.cluster.chance
        before = network.hits
        network.trouble = NetworkTrouble(
            lost=chance.choice((0.0, 0.05, 0.3)), broken=chance.choice((0.0, 0.02, 0.1)),
            late=chance.choice((0.0, 0.05, 0.3)), late_ns=chance.choice((20, 120, 400)) * SECOND,
            slow=chance.choice((0.05, 0.3)), slow_ns=chance.choice((1, 5, 40)) * SECOND,
        )  # fmt: skip
        yield self._lasts()
        network.trouble = NetworkTrouble()
        return network.hits > before

    def flapping_link(self) -> Generator[int, None, bool]:
        """A leader and a follower lose each other again and again, and requests come late."""
        network, chance = self.cluster.network, self.cluster.chance
        topics = self.cluster.replicas.newest.topics
        found = [topics.get_topic(name) for name in ("one", "two")]
        states = [state for topic in found if topic for state in topic.partitions.values() if len(state.isr) > 1]
        if not states:
            return False
        state = chance.choice(states)
        follower = chance.choice([id_ for id_ in state.isr if id_ != state.leader])
        one, other = f"broker-{state.leader}", f"broker-{follower}"
        before, pairs = network.hits, {(one, other), (other, one)}
        for _ in range(3):
            network.trouble = NetworkTrouble(late=0.5, late_ns=300 * SECOND)
            network.cut |= pairs
            yield 100 * SECOND + self._lasts(200)
            network.cut -= pairs
            yield self._lasts(60)
        network.trouble = NetworkTrouble()
        return network.hits > before

    def failing_listener(self) -> Generator[int, None, bool]:
        """A broker's listener takes no new connections, while the broker lives and asks others."""
        network, chance, node = self.cluster.network, self.cluster.chance, self._broker()
        before = network.hits
        how = chance.choice(("refuses", "drops", "ignores"))
        network.fail_listener(node.name, how, resets=chance.random() < 0.7)
        yield self._lasts()
        network.failing.pop(node.name, None)
        return network.hits > before

    # lake

    def bad_lake(self) -> Generator[int, None, bool]:
        """The lake's store or disk is slow, refuses requests, and leaves writers without an answer."""
        lake, chance = self.cluster.lake, self.cluster.chance
        before = lake.hits
        lake.trouble = LakeTrouble(
            slow=chance.choice((0.0, 0.05, 0.3)), slow_ns=chance.choice((1, 10, 60)) * SECOND,
            fails=chance.choice((0.0, 0.02, 0.1)), unanswered=chance.choice((0.0, 0.05, 0.3)),
        )  # fmt: skip
        yield self._lasts()
        lake.trouble = LakeTrouble()
        return lake.hits > before

    def stale_lake(self) -> Generator[int, None, bool]:
        """A node sees what others have written to an object store only later."""
        if isinstance(self.cluster.lake, LakeDisk):
            return False
        node = self._node()
        process = node.process
        if process is None or not node.is_up:
            return False
        process.extra["lake_lag"] = self.cluster.chance.choice((1, 10, 60)) * SECOND
        yield self._lasts()
        process.extra["lake_lag"] = 0
        return True

    def stalled_lake(self) -> Generator[int, None, bool]:
        """The lake does not answer a node for long, and then fails or gives it parts of files, before it is well."""
        cluster, chance = self.cluster, self.cluster.chance
        node = cluster.active_controller() if chance.random() < 0.5 else self._node()
        process = None if node is None else node.process
        if node is None or process is None or not node.is_up:
            return False
        before = cluster.lake.hits
        node.suspend()
        yield 60 * SECOND + self._lasts(240)  # as long as others wait for the active controller
        process.extra["lake_trouble"] = LakeTrouble(
            fails=chance.choice((0.1, 0.5, 1.0)), short=chance.choice((0.0, 0.0, 0.2))
        )
        node.resume()
        yield self._lasts()
        process.extra.pop("lake_trouble", None)
        return cluster.lake.hits > before

    # disks

    def slow_disk(self) -> Generator[int, None, bool]:
        """Calls of a broker's disks take long."""
        node, chance = self._broker(), self.cluster.chance
        before = node.files.hits
        node.files.slow, node.files.slow_ns = chance.choice((0.02, 0.2)), chance.choice((100, 2_000)) * MILLISECOND
        yield self._lasts()
        node.files.slow = 0.0
        return node.files.hits > before

    def failing_disk(self) -> Generator[int, None, bool]:
        """A log directory of a broker fails or is full; then the broker is started again on whole ones."""
        cluster, node, chance = self.cluster, self._broker(), self.cluster.chance
        if not cluster.promise.may_lose(node):
            return False
        before = node.files.hits
        directory = chance.choice(("d1", "d2"))
        error, kind = chance.choice(_DISK_ERRORS)
        if chance.random() < 0.3:
            node.files.space[directory] = chance.randrange(20_000)
        else:
            node.files.faults.append(Fault(directory, error, frozenset([kind])))
        cluster.promise.ended_unclean(node, lossy=True)
        yield self._lasts()
        node.kill()
        node.heal()
        node.start_if_down()
        return node.files.hits > before


_FAULTS: dict[Callable[[Faults], Generator[int, None, bool]], int] = {
    Faults.crash: 6,
    Faults.crash_of_leader: 3,
    Faults.crash_in_commit: 3,
    Faults.power_cut_of_lake: 3,
    Faults.power_cut: 5,
    Faults.pause: 4,
    Faults.pause_of_leader: 3,
    Faults.rolling_restart: 1,
    Faults.outage: 2,
    Faults.clock_jump: 2,
    Faults.cut_link: 4,
    Faults.flapping_link: 3,
    Faults.isolate: 3,
    Faults.refusal: 2,
    Faults.failing_listener: 3,
    Faults.split: 2,
    Faults.bad_network: 4,
    Faults.bad_lake: 4,
    Faults.stale_lake: 3,
    Faults.stalled_lake: 3,
    Faults.slow_disk: 2,
    Faults.failing_disk: 2,
}
"""The faults and their weights."""
