"""A few brokers with a network that loses, delays and reorders messages, and a clock that jumps, from one seed."""

from __future__ import annotations

import heapq
import random
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records import metadata_records as r
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.config import ReplicaManagerConfig
from kraftlake.replica_manager.fetch.leader_end_point import LeaderUnreachableError
from kraftlake.replica_manager.fetch.replica_fetcher import ReplicaFetcher
from kraftlake.replica_manager.logs.log_batch import LogBatch
from kraftlake.replica_manager.partition.leader import FetchParams, FetchPartition
from kraftlake.replica_manager.requests.log_dir_moves import alter_replica_log_dirs
from kraftlake.runtime.log import without_logs
from simulator.data_batches import batch
from tests.histories import uuid_of
from tests.replica_manager.cluster import Cluster, Node, answer_fetch
from tests.simulation.disks import DiskNode, fail_disk, lose_power, register_again, tend, write_directories

STEPS = 160
SETTLING_ROUNDS = 60
LAG_MS = 2_000
_VALUE = re.compile(rb"value \d+;")
RAISING = 0.1
"""The share of callbacks that raise."""


class CallbackError(Exception):
    """The error that a callback raises after its work."""


class LossyCluster(Cluster):
    """A cluster whose controller requests and answers may be lost, and whose callbacks raise."""

    simulation: Simulation

    def carry(self, ask, lost, on_answer):
        later, chance, loss = self.simulation.later, self.simulation.chance, self.simulation.loss

        def arrive() -> None:
            answer = lost if chance.random() < loss else ask()
            later(lambda: on_answer(lost if chance.random() < loss else answer))

        later(arrive)

    def schedule(self, delay_ms, action):
        self.simulation.later(action)

    def assign(self, id_, directories):
        if self.simulation.disks:  # a broker on a disk asks at its start which of two logs is the replica
            write_directories(self, id_, directories)

    def called(self, callback):
        def call(*answer) -> None:
            callback(*answer)
            if self.simulation.chance.random() < RAISING:
                raise CallbackError

        return call


class Simulation:
    """One history; `run` raises AssertionError where an invariant is broken, with the seed."""

    def __init__(self, seed: int, *, disks: bool = False) -> None:
        """With `disks`, brokers have their logs on disks, which lose power and fail."""
        self.seed = seed
        self.chance = random.Random(seed)
        self.loss = self.chance.choice((0.0, 0.05, 0.3))
        self._now = 0
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        ids = range(1, self.chance.choice((3, 3, 4, 5)) + 1)
        config = ReplicaManagerConfig(replica_lag_time_max_ms=LAG_MS, replica_fetch_backoff_ms=50)
        min_isr = self.chance.choice((1, 2))
        new_node = partial(DiskNode, simulation=self) if disks else Node
        self.cluster = LossyCluster(ids=ids, min_isr=min_isr, config=config, new_node=new_node)
        self.cluster.simulation = self
        self.cluster.send = self.later
        self._events = {**_EVENTS, **(_DISK_EVENTS if disks else {})}
        self.disks = disks
        self.moved = 0
        self.cluster.create(self.chance.choice((1, 2)))
        self.cluster.publish()
        self.asleep: dict[int, int] = {}
        self.stalled: dict[int, int] = {}
        """The time until which brokers copy no replica to another directory."""
        self.sequences: dict[TopicPartition, int] = {}
        self.unanswered: dict[TopicPartition, tuple[int, bytes | None]] = {}
        """The batch that each partition's idempotent producer sends until it is acknowledged."""
        self.asking: set[ReplicaFetcher] = set()
        self.appended = 0
        self.acknowledged: dict[tuple[TopicPartition, int], bytes] = {}
        self.committed: dict[TopicPartition, list[bytes]] = {}
        self.leaders: dict[tuple[TopicPartition, int], int] = {}
        self.high_watermarks: dict[tuple[TopicPartition, int, int], int] = {}
        self.history: list[str] = []
        self.brief: dict[str, Uuid] = {}
        self._topics = 0

    def run(self) -> None:
        """Random events, then peace, after which all replicas must be equal."""
        with without_logs():
            self._run()

    def _run(self) -> None:
        try:
            for _ in range(STEPS):
                event = self.chance.choices(list(self._events), list(self._events.values()))[0]
                self.history.append(event.__name__)
                event(self)
                self._deliver()
                self.check()
            self._make_peace()
        except AssertionError as error:
            raise AssertionError(f"seed {self.seed}, after {self.history[-12:]}: {error}") from error

    # the network and time

    def later(self, message: Callable[[], None]) -> None:
        """Deliver a message later, in any order."""
        self._count += 1
        heapq.heappush(self._queue, (self._now + self.chance.randrange(1, 12), self._count, message))

    def _deliver(self) -> None:
        self._now += 1
        while self._queue and self._queue[0][0] <= self._now:
            with suppress(CallbackError):  # each is handled on its own, as by a thread that logs it
                heapq.heappop(self._queue)[2]()

    def _awake(self) -> list[Node]:
        return [node for node in self.cluster.nodes.values() if node.up and self.asleep.get(node.id, 0) <= self._now]

    # events

    def fetch(self) -> None:
        """Let some fetchers fetch."""
        for node in self._awake():
            for fetcher in node.fetchers():
                if fetcher not in self.asking and self.chance.random() < 0.7:
                    self._ask(node, fetcher)

    def _ask(self, node: Node, fetcher: ReplicaFetcher) -> None:
        fetcher.maybe_truncate()
        request = fetcher.build_fetch()
        if request is None:
            return
        self.asking.add(fetcher)
        leader = self.cluster.nodes[fetcher.leader.id]

        def back(response) -> None:
            self.asking.discard(fetcher)
            if not node.up or fetcher not in node.fetchers():
                return
            if response is None:
                fetcher.handle_failure(LeaderUnreachableError("lost"))
            else:
                self._take(node, fetcher, response)

        def arrive() -> None:
            lost = self.chance.random() < self.loss or not self.cluster.reaches(node.id, leader.id)
            response = None if lost else answer_fetch(leader, request)
            self.later(lambda: back(None if self.chance.random() < self.loss else response))

        self.later(arrive)

    def _take(self, node: Node, fetcher: ReplicaFetcher, response) -> None:
        """A follower handles an answer: the leader of that epoch has all records that it appends."""
        ends = {name: log.log_end_offset for name in fetcher.states() if (log := node.log(name)) is not None}
        fetcher.handle_response(response)
        leader = self.cluster.nodes[fetcher.leader.id]
        for name, state in fetcher.states().items():
            partition = leader.manager.online_partition(name) if leader.up else None
            if name not in ends or partition is None or not partition.is_leader:
                continue
            if node.log(name) is None or leader.log(name) is None:
                continue
            appended = node.batches(node.log(name))[ends[name] :]
            if appended and partition.leader_epoch == state.current_leader_epoch:
                held = leader.batches(partition.local_log)[ends[name] : ends[name] + len(appended)]
                assert appended == held, f"{name}: broker {node.id} has other records than its leader"

    def append(self) -> None:
        """A client appends to a broker that takes itself for the leader."""
        for node in self._awake():
            for number, _ in self.cluster.partitions():
                name = TopicPartition("foo", number)
                partition = node.manager.online_partition(name)
                if partition is not None and partition.is_leader and self.chance.random() < 0.6:
                    value = self._new_value()
                    self._produce(node, name, value, batch(value), self.chance.choice((1, -1, -1)))

    def _new_value(self) -> bytes:
        self.appended += 1
        return b"value %d;" % self.appended

    def retry(self) -> None:
        """An idempotent producer appends to a broker that takes itself for the leader, and retries."""
        for number, _ in self.cluster.partitions():
            name = TopicPartition("foo", number)
            sequence, value = self.unanswered.setdefault(name, (self.sequences.get(name, 0), None))
            if value is None:
                value = self._new_value()
                self.unanswered[name] = (sequence, value)
            data = batch(value, producer=1_000 + number, sequence=sequence)
            for node in self._awake():
                partition = node.manager.online_partition(name)
                if partition is not None and partition.is_leader:
                    self._produce(node, name, value, data, -1)

    def _produce(self, node: Node, name: TopicPartition, value: bytes, data: bytes, acks: int) -> None:
        answers = []

        def answered(answer) -> None:
            answers.append(answer)
            assert len(answers) == 1, f"{value!r} was answered twice: {answers}"
            if acks == -1 and answer[name].error is ErrorCode.NONE:
                self.acknowledged[name, answer[name].base_offset] = value
                sequence, unanswered = self.unanswered.get(name, (0, None))
                if unanswered == value:
                    del self.unanswered[name]
                    self.sequences[name] = sequence + 1

        timeout = self.chance.choice((100, LAG_MS, 10 * LAG_MS))
        on_answer = self.cluster.called(answered)
        with suppress(CallbackError):  # it is the client's own, where it need not wait
            node.server.append_records({name: data}, required_acks=acks, timeout_ms=timeout, on_answer=on_answer)

    def consume(self) -> None:
        """Consumers wait at leaders for records after the high watermark."""
        for node in self._awake():
            for partition in list(node.manager.leader_partitions()):
                self._wait_for_data(node, partition.topic_partition, partition.local_log.high_watermark)

    def _wait_for_data(self, node: Node, name: TopicPartition, offset: int) -> None:
        answers = []

        def answered(answer) -> None:
            answers.append(answer)
            assert len(answers) == 1, f"a fetch of {name} at {offset} was answered twice"

        with suppress(CallbackError):
            node.server.fetch_messages(
                FetchParams(max_wait_ms=LAG_MS),
                {name: FetchPartition(fetch_offset=offset)},
                on_answer=self.cluster.called(answered),
            )

    def hear(self) -> None:
        """Some brokers apply some deltas."""
        for node in self._awake():
            if self.chance.random() < 0.7:
                node.hear(node.heard + self.chance.randrange(1, 4))

    def pass_time(self) -> None:
        self.cluster.advance(self.chance.choice((1, 60, 60, LAG_MS // 2, LAG_MS + 1)))
        for node in self._awake():
            node.delayed.expire()

    def expire_isr(self) -> None:
        for node in self._awake():
            node.manager.maybe_shrink_isr()

    def crash(self) -> None:
        """A broker dies; the controller notices later, or when the broker is back."""
        up = [node for node in self.cluster.nodes.values() if node.up]
        if len(up) < 2:
            return
        node = self.chance.choice(up)
        self.end(node, clean=self.disks and self.chance.random() < 0.3)

    def end(self, node: Node, *, power: bool = False, clean: bool = False) -> None:
        """End a broker's process."""
        node.manager.shutdown(checkpoint=clean or self.chance.random() < 0.5)
        node.up = False
        node.stop(power=power, clean=clean)
        self.later(lambda: self.notice(node))

    def notice(self, node: Node) -> None:
        """Let the controller fence a broker that has died."""
        if not node.up and not self.cluster.image.cluster.brokers[node.id].fenced:
            self.cluster.fence(node)

    def restart(self) -> None:
        for node in self.cluster.nodes.values():
            if not node.up and self.chance.random() < 0.5:
                self._start(node)

    def _start(self, node: Node) -> None:
        self.notice(node)
        if self.disks:
            register_again(self, node)
        self.cluster.start(node)

    def fall_asleep(self) -> None:
        """A broker pauses for a while, as in a long garbage collection."""
        node = self.chance.choice(list(self.cluster.nodes.values()))
        self.asleep[node.id] = self._now + self.chance.randrange(5, 30)

    def lose_session(self) -> None:
        """The controller fences a healthy broker without heartbeats, which registers again at once."""
        node = self.chance.choice(list(self.cluster.nodes.values()))
        if node.up and not self.cluster.image.cluster.brokers[node.id].fenced:
            self.cluster.fence(node)
            self.later(lambda: self._unfence(node))

    def _unfence(self, node: Node) -> None:
        broker = self.cluster.image.cluster.brokers[node.id]
        if node.up and broker.fenced and broker.epoch == node.epoch:
            self.cluster.unfence(node)

    def elect(self) -> None:
        """The controller prefers another leader."""
        for number, state in self.cluster.partitions():
            alive = [id_ for id_ in state.isr if not self.cluster.image.cluster.brokers[id_].fenced]
            if alive and self.chance.random() < 0.5:
                self.cluster.elect(number, self.chance.choice(alive))

    def move(self) -> None:
        """Request moves of replicas to the other directory of their broker."""
        names = [TopicPartition("foo", number) for number, _ in self.cluster.partitions()]
        names += [TopicPartition(name, 0) for name in self.brief]
        for node in self._awake():
            for name in names:
                log = node.log(name)
                if log is not None and self.chance.random() < 0.5:
                    alter_replica_log_dirs(node.manager, {name: "e" if log.directory == "d" else "d"})

    def come_and_go(self) -> None:
        """Create or delete a topic with one replica, perhaps while the replica moves."""
        if self.brief and self.chance.random() < 0.5:
            self._delete(self.chance.choice(list(self.brief)))
            return
        self._topics += 1
        topic_id, id_ = uuid_of(50_000 + self._topics), self.chance.choice(list(self.cluster.nodes))
        self.brief[f"brief-{self._topics}"] = topic_id
        self.cluster.write(
            r.TopicRecord(name=f"brief-{self._topics}", topic_id=topic_id),
            r.PartitionRecord(
                partition_id=0, topic_id=topic_id, replicas=(id_,), isr=(id_,), leader=id_, leader_epoch=0,
                partition_epoch=0, directories=(uuid_of(900 + id_),),
            ),
        )  # fmt: skip

    def _delete(self, name: str) -> None:
        self.cluster.write(r.RemoveTopicRecord(topic_id=self.brief.pop(name)))

    def copy(self) -> None:
        """Run the moves of replicas."""
        for node in self._awake():
            if self.stalled.get(node.id, 0) <= self._now:
                self._copy(node)

    def _copy(self, node: Node) -> None:
        """A round of copying: a promoted future log has the same records as the log."""
        for fetcher in node.log_dir_fetchers():
            before = {name: node.log(name) for name in fetcher.moves()}
            fetcher.do_work()
            for name in before.keys() - fetcher.moves().keys():
                now = node.log(name)
                if before[name] is None or now is before[name]:
                    continue
                self.moved += 1
                assert now is None or node.batches(now) == node.batches(before[name]), (
                    f"{name}: the copy that took its replica's place on broker {node.id} has other records"
                )
        node.manager.log_dir_fetchers.shutdown_idle_fetchers()

    def quarrel(self) -> None:
        """Two ISR members lead in turns and append while one of them is copied: logs diverge over several epochs."""
        for number, state in self.cluster.partitions():
            name, nodes = TopicPartition("foo", number), self._eligible(state)
            if len(nodes) < 2 or self.chance.random() < 0.5:
                continue
            one, other = self.chance.sample(nodes, 2)
            one.hear()
            if one.log(name) is not None:
                alter_replica_log_dirs(one.manager, {name: "e" if one.log(name).directory == "d" else "d"})
            for node in (one, other, one, other):
                self._lead_and_append(node, name)
                for _ in range(3):
                    self._copy(node)
            one.hear()
            self._follow(one, other, name)
            self.stalled[one.id] = self._now + self.chance.randrange(30)

    def answer_late(self) -> None:
        """A leader's answer arrives after it has lost the leadership, truncated the sent records, and leads again."""
        for number, state in self.cluster.partitions():
            name, nodes = TopicPartition("foo", number), self._eligible(state)
            leader = next((node for node in nodes if node.id == state.leader), None)
            others = [node for node in nodes if node is not leader]
            if leader is None or len(others) < 2:
                continue
            follower, mate = self.chance.sample(others, 2)
            leader.hear()
            follower.hear()
            fetcher = self._fetcher(follower, leader, name)
            if fetcher is None:
                continue
            fetcher.do_work()
            value = self._new_value()
            self._produce(leader, name, value, batch(value), 1)
            fetcher.maybe_truncate()
            request = fetcher.build_fetch()
            if request is None:
                continue
            response = answer_fetch(leader, request)
            self._lead_and_append(mate, name)
            leader.hear()
            self._follow(leader, mate, name)
            self._lead_and_append(leader, name)
            follower.hear()
            if fetcher in follower.fetchers():
                self._take(follower, fetcher, response)

    def _eligible(self, state) -> list[Node]:
        brokers = self.cluster.image.cluster.brokers
        return [node for node in self._awake() if node.id in state.isr and not brokers[node.id].fenced]

    def _fetcher(self, follower: Node, leader: Node, name: TopicPartition) -> ReplicaFetcher | None:
        for fetcher in follower.fetchers():
            if fetcher.leader.id == leader.id and name in fetcher.states() and fetcher not in self.asking:
                return fetcher
        return None

    def _follow(self, follower: Node, leader: Node, name: TopicPartition) -> None:
        fetcher = self._fetcher(follower, leader, name)
        for _ in range(4 if fetcher is not None else 0):
            fetcher.do_work()

    def _lead_and_append(self, node: Node, name: TopicPartition) -> None:
        if node.id not in self.cluster.image.topics.get_topic("foo").partitions[name.partition].isr:
            return
        self.cluster.elect(name.partition, node.id)
        node.hear()
        value = self._new_value()
        self._produce(node, name, value, batch(value), 1)

    def cut(self) -> None:
        one, other = self.chance.sample(list(self.cluster.nodes), 2)
        self.cluster.cut.add((one, other))

    def mend(self) -> None:
        self.cluster.cut.clear()

    # what must always be so

    def check(self) -> None:
        """The invariants."""
        for number, state in self.cluster.partitions():
            name = TopicPartition("foo", number)
            committed = self.committed.setdefault(name, [])
            for node in self.cluster.nodes.values():
                log = node.log(name)
                if log is None or not node.up:
                    continue
                partition = node.manager.online_partition(name)
                if partition is not None and partition.is_leader and partition.log is not None:
                    self._check_leader(name, node, partition)
                data = [batch.data for batch in node.batches(log)[: log.high_watermark]]
                common = min(len(data), len(committed))
                assert data[:common] == committed[:common], f"{name}: broker {node.id} has other committed records"
            for id_ in state.isr:
                node = self.cluster.nodes[id_]
                if self.disks and (not node.up or node.logs.offline):
                    continue
                log = node.log(name)
                held = [] if log is None else [batch.data for batch in node.batches(log)[: len(committed)]]
                assert held == committed, (
                    f"{name}: broker {id_} may lead and has {len(held)} of {len(committed)} committed records"
                )

    def _check_leader(self, name: TopicPartition, node: Node, partition) -> None:
        epoch, log = partition.leader_epoch, partition.log
        known = self.leaders.setdefault((name, epoch), node.id)
        assert known == node.id, f"{name}: brokers {known} and {node.id} both lead in epoch {epoch}"
        incarnation = (name, epoch, node.epoch)
        before = self.high_watermarks.get(incarnation, 0)
        assert log.high_watermark >= before, f"{name}: high watermark fell from {before} to {log.high_watermark}"
        self.high_watermarks[incarnation] = log.high_watermark
        committed = self.committed[name]
        for one in node.batches(log)[len(committed) : log.high_watermark]:
            committed.append(one.data)

    # peace

    def _make_peace(self) -> None:
        self.loss = 0.0
        self.cluster.cut.clear()
        self.asleep.clear()
        for name in list(self.brief):
            self._delete(name)
        for node in self.cluster.nodes.values():
            if self.disks and node.up:
                self.end(node)
            if not node.up:
                self._start(node)
            elif self.cluster.image.cluster.brokers[node.id].fenced:
                self.cluster.unfence(node)
        for _ in range(SETTLING_ROUNDS):
            self._peaceful_round()
            self.check()
            if self._settled():
                break
        else:
            raise AssertionError(f"no peace: {self._describe()}")
        for (name, offset), value in self.acknowledged.items():
            held = self._held_at_last(name)
            assert offset < len(held), f"{name}: {value!r} at {offset} was acknowledged and is gone"
            assert value in held[offset].data, f"{name}: {value!r} at {offset} is another record now"
        for number, _ in self.cluster.partitions():
            name = TopicPartition("foo", number)
            values = [_VALUE.search(one.data).group() for one in self._held_at_last(name)]
            twice = {value for value in values if values.count(value) > 1} if len(set(values)) < len(values) else set()
            assert not twice, f"{name}: {twice} were appended twice"

    def _held_at_last(self, name: TopicPartition) -> Sequence[LogBatch]:
        node = self.cluster.nodes[1]
        return node.batches(node.log(name))

    def _peaceful_round(self) -> None:
        for _ in range(14):
            self._deliver()
        self.cluster.publish()
        self.cluster.advance(60)
        for node in self.cluster.nodes.values():
            node.manager.maybe_shrink_isr()
            self._copy(node)
            for fetcher in node.fetchers():
                if fetcher not in self.asking:
                    self._ask(node, fetcher)

    def _settled(self) -> bool:
        if any(node.assignments.waiting for node in self.cluster.nodes.values()):
            return False
        for number, state in self.cluster.partitions():
            nodes = list(self.cluster.nodes.values())
            logs = [node.log(TopicPartition("foo", number)) for node in nodes]
            if state.leader == NO_LEADER or len(state.isr) < len(self.cluster.nodes):
                return False
            if len({(log.log_end_offset, log.high_watermark) for log in logs}) > 1:
                return False
            held = [node.batches(log) for node, log in zip(nodes, logs, strict=True)]
            if any(one != held[0] for one in held) or any(log.high_watermark != log.log_end_offset for log in logs):
                return False
        return True

    def _describe(self) -> str:
        lines = [f"assignments { ({id_: node.assignments.waiting for id_, node in self.cluster.nodes.items()}) }"]
        for number, state in self.cluster.partitions():
            logs = {
                node.id: (log.log_end_offset, log.high_watermark, log.epochs)
                for node in self.cluster.nodes.values()
                if (log := node.log(TopicPartition("foo", number))) is not None
            }
            lines.append(f"foo-{number} {state}: {logs}")
        return "; ".join(lines)


_EVENTS = {
    Simulation.fetch: 40,
    Simulation.append: 14,
    Simulation.retry: 8,
    Simulation.consume: 3,
    Simulation.hear: 20,
    Simulation.pass_time: 10,
    Simulation.expire_isr: 6,
    Simulation.crash: 2,
    Simulation.restart: 4,
    Simulation.fall_asleep: 2,
    Simulation.lose_session: 2,
    Simulation.elect: 3,
    Simulation.move: 2,
    Simulation.come_and_go: 2,
    Simulation.copy: 12,
    Simulation.quarrel: 2,
    Simulation.answer_late: 2,
    Simulation.cut: 2,
    Simulation.mend: 2,
}
"""The events and their weights."""
_DISK_EVENTS = {tend: 6, lose_power: 3, fail_disk: 2}
