"""What clients do to the simulated cluster, and what they remember of its answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.address import Address
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_error import NodeError
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.logs.log_batch import log_batches
from simulator.client import Client, milliseconds
from simulator.compacted_logs import COMPACTED, records_of
from simulator.data_batches import batch, keyed
from simulator.invariants import violated
from simulator.replica_watch import ReplicaWatch
from simulator.scheduler import SECOND, active
from simulator.specification import CONSISTENT_READ

PRODUCE_VERSIONS = range(9, 10)
FETCH_VERSIONS = range(12, 13)
_PAUSE_NS = 5 * SECOND
_METADATA_AGE_NS = 300 * SECOND
RACKS = ("a", "b")
"""The racks of brokers."""
_RACK = RACKS[0]
_KEYS = 40
_TOMBSTONES = 0.15
"""The number of keys in compacted topics, and the share of their records without a value."""


@attrs.define
class History:
    """The answers that clients got, for the checks at the end."""

    acknowledged: dict[tuple[Uuid, int, int], int] = attrs.field(factory=dict)
    """The checksum of the values of each acknowledged batch, by topic id, partition and base offset."""
    records: int = 0
    """The number of acknowledged records."""
    newest: tuple[str, int] | None = None
    """The partition of the last acknowledged batch."""
    read: dict[tuple[Uuid, int, int], int] = attrs.field(factory=dict)
    """The checksum of each batch that was read, by topic id, partition and base offset."""
    reads: int = 0
    follower_reads: int = 0
    """The number of answers with records from a follower."""
    created: dict[str, Uuid] = attrs.field(factory=dict)
    """The topics whose creation was acknowledged."""
    deleted: set[str] = attrs.field(factory=set)
    """The topics whose deletion was asked for."""
    errors: dict[str, int] = attrs.field(factory=dict)
    in_flight: dict[int, str] = attrs.field(factory=dict)
    """What each producer has sent, and has no answer to, by its number."""

    def count(self, what: str, error: ErrorCode) -> None:
        """Count an answer."""
        name = f"{what} {error.name}"
        self.errors[name] = self.errors.get(name, 0) + 1


class Producer:
    """An idempotent producer with acks=all, which sends a batch until it is acknowledged."""

    def __init__(
        self,
        number: int,
        topics: list[tuple[str, int]],
        history: History,
        watch: ReplicaWatch,
        bootstrap: list[Address],
    ) -> None:
        self.number, self.topics, self.history, self.watch = number, topics, history, watch
        self.client = Client(bootstrap)
        self.is_stopped: Callable[[], bool] = lambda: False
        self._id = self._epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}
        self._acknowledged_at: dict[tuple[str, int], int] = {}
        """The offset of the last acknowledged batch."""
        self._made = 0

    def run(self, pause_ns: int, size: int) -> None:
        """Produce until the end."""
        chance = active().process.chance
        while not self.is_stopped():
            if self._id < 0 and not self._register():
                active().sleep(_PAUSE_NS)
                continue
            self._produce(*chance.choice(self.topics), chance.randrange(1, 2 * size))
            active().sleep(chance.randrange(2 * pause_ns))

    def _register(self) -> bool:
        def make(module: Any) -> Any:
            return module.InitProducerIdRequest(
                transactional_id=None, transaction_timeout=milliseconds(60_000), producer_id=-1, producer_epoch=-1
            )

        if not self.client.brokers and not self.client.refresh():
            return False
        try:
            answer = self.client.ask_any("init_producer_id", range(3, 5), make)
        except NodeError:
            return False
        self.history.count("init_producer_id", answer.error_code)
        if answer.error_code != ErrorCode.NONE:
            return False
        self._id, self._epoch = int(answer.producer_id), int(answer.producer_epoch)
        return True

    def _produce(self, topic: str, partition: int, size: int) -> None:
        sequence = self._sequences.get((topic, partition), 0)
        values = []
        for _ in range(size):
            self._made += 1
            values.append(b"producer %d value %d" % (self.number, self._made))
        data = self._batch(topic, values, sequence & 0x7FFF_FFFF)
        pause_ns = 0
        while not self.is_stopped() or self.number in self.history.in_flight:
            topic_id = self.client.ids.get(topic)
            error, offset = self._send(topic, partition, data)
            if error == ErrorCode.NONE:
                self._sequences[topic, partition] = sequence + size
                self._acknowledged_at[topic, partition] = offset
                self._acknowledged(topic, partition, topic_id, offset=offset, size=size, data=data)
                return
            if error is not None:
                self.history.count("produce", error)
            asked, name = self.client.leaders.get((topic, partition), -1), TopicPartition(topic, partition)
            is_refused = error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            if is_refused and led_epoch(self.watch, asked, name) is not None:  # an old leader knows old batches only
                self._check_refusal(name, asked, sequence)
                self._id = -1  # as clients do, it begins anew; it does not write again what may be there
                self._sequences.clear()
                return
            pause_ns = min(pause_ns + _PAUSE_NS, 3 * _PAUSE_NS)
            active().sleep(active().process.chance.randrange(SECOND // 2, pause_ns))
            self.client.refresh()

    def _batch(self, topic: str, values: list[bytes], sequence: int) -> bytes:
        """A batch of values; for a compacted topic with keys, and some tombstones in place of values."""
        times = (active().time_ns() // 1_000_000,) * len(values)
        if topic not in COMPACTED:
            return batch(*values, times=times, producer=self._id, epoch=self._epoch, sequence=sequence)
        chance = active().process.chance
        records = [
            (b"key %d" % chance.randrange(_KEYS), None if chance.random() < _TOMBSTONES else value) for value in values
        ]
        return keyed(*records, times=times, producer=self._id, epoch=self._epoch, sequence=sequence)

    def _check_refusal(self, name: TopicPartition, leader: int, sequence: int) -> None:
        """A leader wants another batch: only if it has taken one anew of this producer, which it had forgotten."""
        node, topic_id = active().outside.extra["brokers"][leader], self.client.ids.get(name.topic)
        log, known = node.log(name), self._acknowledged_at.get((name.topic, name.partition), -1)
        if topic_id is None or log is None:
            return
        if not self.watch.producers.may_refuse((topic_id, name.partition), self._id, known, log):
            violated(f"{name}: broker-{leader} wants another batch of producer {self._id} than {sequence}")

    def _send(self, topic: str, partition: int, data: bytes) -> tuple[ErrorCode | None, int]:
        """The error of an answer (None without an answer) and the base offset."""
        in_flight = self.history.in_flight
        address = self.client.leader_of(topic, partition)
        if address is None:
            in_flight.pop(self.number, None)  # nobody is there to answer
            return None, -1
        in_flight.setdefault(self.number, f"{topic}-{partition} since {active().now_ns / SECOND:.3f} s")

        def make(module: Any) -> Any:
            one = module.PartitionProduceData(index=partition, records=data)
            asked = module.TopicProduceData(name=topic, partition_data=(one,))
            return module.ProduceRequest(
                transactional_id=None, acks=-1, timeout=milliseconds(30_000), topic_data=(asked,)
            )

        try:
            answer = self.client.ask(address, "produce", PRODUCE_VERSIONS, make)
        except NodeError:
            return None, -1
        del in_flight[self.number]
        result = answer.responses[0].partition_responses[0]
        return result.error_code, int(result.base_offset)

    def _acknowledged(
        self, topic: str, partition: int, topic_id: Uuid | None, *, offset: int, size: int, data: bytes
    ) -> None:
        if topic_id is None:
            return
        self.history.records += size
        self.history.newest = (topic, partition)
        known = self.history.acknowledged.setdefault((topic_id, partition, offset), checksum(data))
        if known != checksum(data):
            violated(f"{topic}-{partition} acknowledged offset {offset} of two batches")
        committed = self.watch.committed.get((topic_id, partition))
        end = -1 if committed is None else committed.batches.end
        if end < offset + size:
            violated(f"{topic}-{partition} acknowledged offset {offset}, and {end} are committed")
        if topic in COMPACTED and committed is not None:
            sent = {offset + at: record for at, record in records_of(log_batches(data)).items()}
            if problem := committed.compacted.problem(sent, offset, offset + size):
                violated(f"{topic}-{partition} acknowledged offset {offset}, and the producer {problem}")


class Consumer:
    """Reads partitions from their start, and what was read again now and then; from a follower that a leader names.

    As one that waits for news, it is soon where something was acknowledged, and where another broker leads.

    A leader names one in the consumer's rack (KIP-392). It is asked until it answers with an error, or for as long as
    a client's metadata may be old.
    """

    def __init__(
        self, topics: list[tuple[str, int]], history: History, watch: ReplicaWatch, bootstrap: list[Address]
    ) -> None:
        self.topics, self.history, self.watch = topics, history, watch
        self.client = Client(bootstrap)
        self.is_stopped: Callable[[], bool] = lambda: False
        self._positions: dict[tuple[Uuid, int], int] = {}
        self._led_by: dict[tuple[str, int], int] = {}
        """The leader of each partition when it was last read."""
        self._preferred: dict[tuple[str, int], tuple[int, int]] = {}
        """The follower to read a partition from, and until when (ns)."""

    def run(self, pause_ns: int) -> None:
        """Consume until the end."""
        chance = active().process.chance
        while not self.is_stopped():
            place = self._next()
            is_read = self.read(*place, again=chance.random() < 0.2)
            if is_read:
                self._led_by[place] = self.client.leaders.get(place, -1)
            if not is_read or chance.random() < 0.5:
                self.client.refresh()
            active().sleep(chance.randrange(_PAUSE_NS if self._moved() else 2 * pause_ns))

    def _moved(self) -> list[tuple[str, int]]:
        """The partitions that another broker leads than when they were read."""
        leaders = self.client.leaders
        return [place for place, leader in self._led_by.items() if leaders.get(place, leader) != leader]

    def _next(self) -> tuple[str, int]:
        """The partition to read: with another leader, or with news, or any."""
        chance, newest = active().process.chance, self.history.newest
        if moved := self._moved():
            return chance.choice(moved)
        return chance.choice(self.topics) if newest is None or chance.random() < 0.3 else newest

    def read(self, topic: str, partition: int, *, again: bool = False) -> bool:
        """Read some of what is next, or of what was read; returns whether a broker has answered."""
        asked, topic_id = self._broker_of(topic, partition), self.client.ids.get(topic)
        if asked not in self.client.brokers or topic_id is None:
            return False
        position = self._positions.get((topic_id, partition), 0)
        offset = active().process.chance.randrange(position + 1) if again else position
        name = TopicPartition(topic, partition)
        epoch = led_epoch(self.watch, asked, name)
        answer = self._fetch(asked, name, offset)
        if answer is None or answer.error_code != ErrorCode.NONE:
            self._preferred.pop((topic, partition), None)
        if answer is None:
            return False
        if answer.error_code != ErrorCode.NONE:
            self.history.count("fetch", answer.error_code)
            is_current = epoch is not None and epoch == led_epoch(self.watch, asked, name)
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and is_current:  # an old leader may end below it
                violated(f"{name}: broker-{asked} leads, and says that {offset} is out of range, of {position} read")
            return False
        if answer.preferred_read_replica >= 0:
            self._preferred[topic, partition] = int(answer.preferred_read_replica), active().now_ns + _METADATA_AGE_NS
            return answer.preferred_read_replica in self.client.brokers and self.read(topic, partition, again=again)
        data = bytes(answer.records or b"")
        self.history.follower_reads += bool(data) and asked != self.client.leaders.get((topic, partition))
        end = self._note(topic_id, name, data, int(answer.high_watermark))
        if topic in COMPACTED and end > offset:
            found = self.watch.committed[topic_id, partition].compacted
            if problem := found.problem(records_of(log_batches(data)), offset, end):
                violated(f"{name}: a consumer at {offset} {problem}", CONSISTENT_READ)
        if not again and end > position:
            self._positions[topic_id, partition] = end
        return True

    def _broker_of(self, topic: str, partition: int) -> int:
        """The broker to read from: the follower that was named, or the leader; −1 while that is not known."""
        follower, until_ns = self._preferred.get((topic, partition), (-1, 0))
        if follower in self.client.brokers and active().now_ns < until_ns:
            return follower
        self._preferred.pop((topic, partition), None)
        return self.client.leaders.get((topic, partition), -1)

    def _fetch(self, broker_id: int, name: TopicPartition, offset: int) -> Any:
        """The answer of a broker for a partition, None without one."""

        def make(module: Any) -> Any:
            one = module.FetchPartition(
                partition=name.partition, current_leader_epoch=-1, fetch_offset=offset, last_fetched_epoch=-1,
                log_start_offset=-1, partition_max_bytes=1 << 16,
            )  # fmt: skip
            asked = module.FetchTopic(topic=name.topic, partitions=(one,))
            return module.FetchRequest(
                max_wait=milliseconds(0), min_bytes=1, max_bytes=1 << 16, isolation_level=0, session_id=0,
                session_epoch=-1, topics=(asked,), forgotten_topics_data=(), rack_id=_RACK,
            )  # fmt: skip

        try:
            answer = self.client.ask(self.client.brokers[broker_id], "fetch", FETCH_VERSIONS, make)
        except NodeError:
            return None
        if answer.error_code != ErrorCode.NONE or not answer.responses:
            return None
        return answer.responses[0].partitions[0]

    def _note(self, topic_id: Uuid, name: TopicPartition, data: bytes, high_watermark: int) -> int:
        end = -1
        for one in log_batches(data):
            key = (topic_id, name.partition, one.base_offset)
            self.history.reads += 1
            if one.base_offset < end:
                violated(f"{name}: {one.base_offset} was read behind {end}", CONSISTENT_READ)
            if name.topic not in COMPACTED:
                known = self.history.read.setdefault(key, crc32(one.data))
                if known != crc32(one.data):
                    violated(f"{name}: {one.base_offset} was read as another batch", CONSISTENT_READ)
            end = one.last_offset + 1
            if end > high_watermark:
                violated(f"{name}: {end} was read above {high_watermark}", CONSISTENT_READ)
        committed = self.watch.committed.get((topic_id, name.partition))
        if end >= 0 and (committed is None or end > committed.batches.end):
            violated(f"{name}: {end} was read, and no leader has committed it", CONSISTENT_READ)
        return end


def led_epoch(watch: ReplicaWatch, broker_id: int, name: TopicPartition) -> int | None:
    """The epoch in which a broker leads a partition, None unless the newest metadata says so, too."""
    known = watch.newest.topics.get_topic(name.topic)
    broker = active().outside.extra["brokers"].get(broker_id)
    hosted = None if broker is None else broker.partition(name)
    if known is None or hosted is None:
        return None
    state = known.partitions[name.partition]
    is_current = (state.leader, state.leader_epoch) == (broker_id, hosted.leader_epoch)
    return int(state.leader_epoch) if is_current else None


def checksum(data: bytes) -> int:
    """The checksum of a batch but for what a leader writes into it: base offset, leader epoch."""
    return int.from_bytes(data[17:21], "big")
