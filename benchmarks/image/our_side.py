"""The same workloads on kraftlake's classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from mmap import mmap
from pathlib import Path
from typing import Any, TypeAlias

import attrs

from kraftlake.delta.topics.local_replica_changes import LocalReplicaChanges
from kraftlake.delta.topics.topics_delta import TopicsDelta
from kraftlake.image.diff import diff_images
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topic_table import SEARCHES
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.batch import RecordBatch, read_batches
from kraftlake.records.batch_values import BatchValues, read_values
from kraftlake.records.metadata_records import PartitionChangeRecord
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.runtime.prefetching import prefetch

Buffer: TypeAlias = bytes | mmap
PARTITIONS_PER_TOPIC = 10
REPLICATION_FACTOR = 3
REPLICAS_PER_BROKER = 10_000
NAMES = 4096


def brokers_of(topics: int) -> int:
    """How many brokers the generated cluster has."""
    brokers = topics * PARTITIONS_PER_TOPIC * REPLICATION_FACTOR // REPLICAS_PER_BROKER
    return max(3, brokers - brokers % 3)


def records_of(raw: bytes, name: str) -> list[Any]:
    """The records of a log as objects."""
    batches = (batch for batch in read_batches(raw, file=name) if not batch.control)
    return [record.message for batch in batches for record in batch.messages()]


def delta_of(image: TopicsImage, records: Iterable[Any]) -> TopicsDelta:
    """A delta with records replayed one by one."""
    delta = TopicsDelta(image)
    for record in records:
        delta.keep(record)
    return delta


def merged(delta: TopicsDelta) -> TopicsDelta:
    """The delta after it has made of its records what they say, as Java's does with each at once."""
    delta.merge()
    return delta


def load(raw: Buffer, base: TopicsImage) -> TopicsImage:
    """The image after a log's bytes, CRCs checked."""
    return loaded(raw, base).take_image().topics


def _asked(image: TopicsImage) -> TopicsImage:
    """The image, after it was asked for one topic by its name and by its id."""
    topic = image.get_topic("topic7")
    assert topic is not None
    assert image.get_topic_by_id(topic.id) is topic
    return image


def with_indexes(image: TopicsImage) -> TopicsImage:
    """The image, after so many questions that it has made its indexes."""
    for _ in range(SEARCHES + 1):
        _asked(image)
    return image


def loaded(raw: Buffer, base: TopicsImage) -> MetadataBatchLoader:
    """A loader that has gathered a log's bytes in one delta, as a replay does (`kraftlake.replay.loader.fold`)."""
    with prefetch(parts_of(raw)) as parts:
        return loaded_parts(parts, base)


def parts_of(raw: Buffer) -> Iterable[RecordBatch | BatchValues]:
    """A log's bytes as where the records lie in them: what the engine hands on, without an object a record."""
    return read_values(memoryview(raw), file="benchmark.log", position=0)


def loaded_parts(parts: Iterable[RecordBatch | BatchValues], base: TopicsImage) -> MetadataBatchLoader:
    """A loader that has gathered records."""
    loader = MetadataBatchLoader(attrs.evolve(MetadataImage.EMPTY, topics=base))
    for part in parts:
        if isinstance(part, RecordBatch):
            loader.load_batch(part)
        else:
            loader.load_values(part, to_offset=part.last_offset)
    return loader


def delta_from_wire(raw: bytes, base: TopicsImage) -> TopicsDelta:
    """The delta of a log's bytes, after it was applied, as it is where local changes are asked for."""
    loader = loaded(raw, base)
    delta = loader.delta.topics_delta
    assert delta is not None
    delta.apply()
    return delta


def workloads(folder: Path) -> dict[str, OurWorkload]:
    """Everything that `goals.WORKLOADS` names, over the logs of `folder`."""
    logs = {name: (folder / f"{name}.log").read_bytes() for name in ("snapshot", "outage", "broker", "changes")}
    ready = [*parts_of(logs["snapshot"])]
    snapshot = records_of(logs["snapshot"], "snapshot.log")
    broker = records_of(logs["broker"], "broker.log")
    singles = records_of((folder / "singles.log").read_bytes(), "singles.log")
    base = load(logs["snapshot"], TopicsImage.EMPTY)
    topics = len(base.topics_by_id())
    brokers = brokers_of(topics)
    changed = delta_of(base, singles[:1]).apply()
    shared = delta_of(base, snapshot[-1:]).apply()
    before, after = (attrs.evolve(MetadataImage.EMPTY, topics=image) for image in (base, changed))
    bulk, whole = delta_from_wire(logs["outage"], base), delta_from_wire(logs["snapshot"], TopicsImage.EMPTY)
    led_anew = (1 + 3 * (n % (brokers // 3)) for n in count())
    each_broker = (n % brokers for n in count())
    made = {
        "load_wire": OurWorkload(lambda: load(logs["snapshot"], TopicsImage.EMPTY)),
        "load_asked": OurWorkload(lambda: _asked(load(logs["snapshot"], TopicsImage.EMPTY))),
        "load_indexed": OurWorkload(lambda: with_indexes(load(logs["snapshot"], TopicsImage.EMPTY))),
        "load_ready": OurWorkload(lambda: loaded_parts(ready, TopicsImage.EMPTY).take_image().topics),
        "outage_wire": OurWorkload(lambda: load(logs["outage"], base)),
        "broker_apply": OurWorkload(lambda delta: delta.apply(), prepare=lambda: merged(delta_of(base, broker))),
        "bulk_local_changes": OurWorkload(lambda: _seen(bulk.local_changes(next(led_anew)))),
        "load_local_changes": OurWorkload(lambda: _seen(whole.local_changes(next(each_broker)))),
        "changes_wire": OurWorkload(lambda: load(logs["changes"], base)),
        "diff": OurWorkload(lambda: len(diff_images(before, after).changes)),
        "equality": OurWorkload(lambda: int(base == shared)),
    }
    return made | _small_workloads(base, singles, topics)


def _small_workloads(base: TopicsImage, singles: list[PartitionChangeRecord], topics: int) -> dict[str, OurWorkload]:
    names = [f"topic{n * 7919 % topics}" for n in range(NAMES)]
    last = len(singles) - 1
    chains = {"one": base, "local": base}
    turn = {key: count() for key in ("one", "local", "lookup", "iterate")}

    def one_change() -> TopicsImage:
        delta = TopicsDelta(chains["one"])
        delta.keep(singles[next(turn["one"]) & last])
        image = chains["one"] = delta.apply()
        return image

    def one_change_local_changes() -> LocalReplicaChanges:
        record = singles[next(turn["local"]) & last]
        delta = TopicsDelta(chains["local"])
        delta.keep(record)
        chains["local"] = delta.apply()
        return delta.local_changes(record.leader)

    def lookup() -> int:
        n = next(turn["lookup"]) & (NAMES - 1)
        topic = base.get_topic(names[n])
        assert topic is not None
        return topic.partitions[n % PARTITIONS_PER_TOPIC].leader

    def iterate_topic() -> int:
        topic = base.get_topic(names[next(turn["iterate"]) & (NAMES - 1)])
        assert topic is not None
        leaders = 0
        for partition in topic.partitions.values():
            leaders += partition.leader
        return leaders

    return {
        "one_change": OurWorkload(one_change),
        "one_change_local_changes": OurWorkload(one_change_local_changes),
        "lookup": OurWorkload(lookup),
        "iterate_topic": OurWorkload(iterate_topic),
    }


@attrs.frozen
class OurWorkload:
    """`run` is timed; what `prepare` makes anew before each call, untimed, is handed to it."""

    run: Callable[..., Any]
    prepare: Callable[[], Any] | None = None

    def call(self) -> Any:
        return self.run() if self.prepare is None else self.run(self.prepare())


def _seen(changes: LocalReplicaChanges) -> LocalReplicaChanges:
    """The changes, after their sizes were asked for: a lazy view is not let off with doing nothing."""
    for part in (changes.deletes, changes.elected_leaders, changes.leaders, changes.followers):
        len(part)
    len(changes.topic_ids)
    len(changes.directory_ids)
    return changes


def numbers(result: Any) -> dict[str, int]:
    """What `ImageBench.numbers` computes of the same result."""
    if isinstance(result, TopicsImage):
        return _image_numbers(result)
    if isinstance(result, LocalReplicaChanges):
        return _changes_numbers(result)
    return {"sum": int(result)}


def _image_numbers(image: TopicsImage) -> dict[str, int]:
    partitions = total = 0
    for topic_id, topic in image.topics_by_id().items():
        found = image.get_topic(topic.name)
        assert found is not None
        assert found.id == topic_id
        low = _low(topic_id)
        for partition_id, partition in topic.partitions.items():
            partitions += 1
            total += _sum(partition) + low * (partition_id + 1)
    return {"topics": len(image.topics_by_id()), "partitions": partitions, "sum": total}


def _changes_numbers(changes: LocalReplicaChanges) -> dict[str, int]:
    led = sum(_sum(info.partition) for info in changes.leaders.values())
    followed = sum(_sum(info.partition) for info in changes.followers.values())
    return {
        "deletes": len(changes.deletes),
        "electedLeaders": len(changes.elected_leaders),
        "leaders": len(changes.leaders),
        "followers": len(changes.followers),
        "topicIds": len(changes.topic_ids),
        "directoryIds": len(changes.directory_ids),
        "sum": led - followed + sum(map(_low, changes.directory_ids.values())),
    }


def _sum(partition: PartitionRegistration) -> int:
    total = 31 * partition.leader + 7 * partition.leader_epoch + partition.partition_epoch + 3 * len(partition.isr)
    for place, (replica, directory) in enumerate(zip(partition.replicas, partition.directories, strict=True), 1):
        total += 5 * place * replica + place * _low(directory)
    return total


def _low(uuid: Uuid) -> int:
    return int.from_bytes(bytes(uuid)[-2:], "big")
