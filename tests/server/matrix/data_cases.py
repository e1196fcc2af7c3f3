"""Produce, ListOffsets, OffsetForLeaderEpoch, DeleteRecords and InitProducerId."""

from __future__ import annotations

from simulator.data_batches import batch
from tests.server.matrix.batches import packed
from tests.server.matrix.records import (
    DAY,
    NEW_PRODUCER,
    NOW,
    await_producer_ids,
    by_name,
    good,
    produced,
    read,
)
from tests.server.matrix.sides import Side, Sides


def produce(sides: Sides, side: Side) -> None:
    """Each version: right and wrong topics, partitions, acks; idempotent producers and what they do wrong."""
    for version in sides.versions("produce"):
        name = f"produced-{version}"
        side.create(name, [1], [2], [1], min_insync_replicas=1)
        side.create(f"strict-{version}", [1, 2], min_insync_replicas=2)
        side.create(f"too-strict-{version}", [1, 2], min_insync_replicas=3)
        usual = good()
        for label, values in {
            "good": produced(side, name, (0, usual)),
            "acks 1": produced(side, name, (0, usual), acks=1),
            "acks 2": produced(side, name, (0, usual), acks=2),
            "acks −2": produced(side, name, (0, usual), acks=-2),
            "other leader": produced(side, name, (1, usual)),
            "unknown partition": produced(side, name, (9, usual)),
            "partition −1": produced(side, name, (-1, usual)),
            "unknown topic": produced(side, "unknown", (0, usual)),
            "several": produced(side, name, (0, usual), (1, usual), (9, usual), (2, usual)),
            "a wrong one": produced(side, name, (0, usual), (2, usual + b"x")),
            "nothing": produced(side, name), "no topics": produced(side, name, topic_data=[]),
            "a transaction": produced(side, name, (0, usual), transactional_id="t"),
            "wrong checksum": produced(side, name, (0, usual[:-1] + b"\xff")),
            "wrong checksum, acks 1": produced(side, name, (0, usual[:-1] + b"\xff"), acks=1),
            "zstd": produced(side, name, (0, packed(usual, "zstd"))),
            "strict": produced(side, f"strict-{version}", (0, usual)),
            "too strict": produced(side, f"too-strict-{version}", (0, usual)),
            "too strict, acks 1": produced(side, f"too-strict-{version}", (0, usual), acks=1),
            "no time to wait": produced(side, name, (0, usual), timeout=0),
        }.items():  # fmt: skip
            side.call(label, "produce", version, **values)
        for label, data in (
            ("first", good(b"a", b"b", producer=7)),
            ("again", good(b"a", b"b", producer=7)),
            ("next", good(b"c", producer=7, sequence=2)),
            ("gap", good(b"c", producer=7, sequence=9)),
            ("old again", good(b"a", b"b", producer=7)),
            ("part of old", good(b"b", producer=7, sequence=1)),
            ("new epoch, wrong sequence", good(b"c", producer=7, epoch=1, sequence=3)),
            ("new epoch", good(b"c", producer=7, epoch=1)),
            ("old epoch", good(b"d", producer=7, sequence=3)),
            ("unknown producer", good(b"d", producer=8, sequence=3)),
        ):
            side.call(f"idempotent, {label}", "produce", version, **produced(side, name, (2, data)))
        _no_answer(side, version, name, usual)
        read(side, f"after v{version}", name, 0)
        read(side, f"after v{version}, of the idempotent", name, 2)


def _no_answer(side: Side, version: int, name: str, data: bytes) -> None:
    """acks=0: no answer, or the connection's end."""
    for label, values in {
        "good": produced(side, name, (0, data)), "unknown partition": produced(side, name, (9, data)),
        "other leader": produced(side, name, (1, data)),
        "unknown": produced(side, "unknown", (0, data)),
    }.items():  # fmt: skip
        wire = side.new_wire()
        wire.send(side.frame("produce", version, values | {"acks": 0}))
        try:
            answer = wire.ask("api_versions", 0, {})
        except OSError:
            answer = "closed"
        side.keep(f"produce v{version} acks 0, {label}", "goes on" if not isinstance(answer, str) else "closed")
        wire.close()


def list_offsets(sides: Sides, side: Side) -> None:
    """Each version: each kind of time, epochs, isolation, wrong partitions."""
    side.create("times", [1, 2], [2, 1], [1, 2])
    for number in range(4):
        data = batch(b"a", b"b", times=(NOW - 9000 + number * 1000, NOW - 9500 + number * 1000))
        side.ask("produce", 12, **by_name("times", 0, data))
    for version in sides.versions("list_offsets"):
        for label, parts in {
            "latest": [(0, -1, -1)], "earliest": [(0, -2, -1)], "largest time": [(0, -3, -1)], "local": [(0, -4, -1)],
            "tiered": [(0, -5, -1)], "pending": [(0, -6, -1)], "−7": [(0, -7, -1)], "time 0": [(0, 0, -1)],
            "in the middle": [(0, NOW - 7600, -1)], "between": [(0, NOW - 8200, -1)],
            "far": [(0, NOW + 9 * DAY, -1)],
            "epoch 0": [(0, -1, 0)], "epoch 5": [(0, -1, 5)], "other leader": [(1, -1, -1)], "unknown": [(9, -1, -1)],
            "twice": [(0, -1, -1), (0, -2, -1)], "empty": [(2, -3, -1), (2, -1, -1)], "empty, time": [(2, 5, -1)],
            "empty, earliest": [(2, -2, -1)], "empty, local": [(2, -4, -1)],
        }.items():  # fmt: skip
            for replica, isolation in ((-1, 0), (-1, 1), (2, 0), (-2, 0), (-1, 9)):
                side.call(
                    f"{label}, replica {replica}, isolation {isolation}", "list_offsets", version, replica_id=replica,
                    isolation_level=isolation, timeout=1000,
                    topics=[{"name": "times", "partitions": [
                        {"partition_index": index, "timestamp": time_, "current_leader_epoch": epoch}
                        for index, time_, epoch in parts
                    ]}],
                )  # fmt: skip
        for name in ("unknown", "a b", ""):
            side.call(
                f"of {name!r}", "list_offsets", version, replica_id=-1,
                topics=[{"name": name, "partitions": [
                    {"partition_index": 0, "timestamp": -1, "current_leader_epoch": -1}
                ]}],
            )  # fmt: skip
        side.call("of nothing", "list_offsets", version, replica_id=-1, topics=[])


def offset_for_leader_epoch(sides: Sides, side: Side) -> None:
    """Each version: epochs there are, were and will be."""
    side.create("epochs", [1, 2], [2, 1])
    side.ask("produce", 12, **by_name("epochs", 0, good()))
    for version in sides.versions("offset_for_leader_epoch"):
        for label, topic, index, epoch, current in (
            ("0", "epochs", 0, 0, -1), ("5", "epochs", 0, 5, -1), ("−1", "epochs", 0, -1, -1),
            ("current 0", "epochs", 0, 0, 0), ("current 5", "epochs", 0, 0, 5), ("other leader", "epochs", 1, 0, -1),
            ("unknown partition", "epochs", 9, 0, -1), ("unknown topic", "unknown", 0, 0, -1),
        ):  # fmt: skip
            for replica in (-1, -2, 2):
                side.call(
                    f"{label}, replica {replica}", "offset_for_leader_epoch", version, replica_id=replica,
                    topics=[{"topic": topic, "partitions": [
                        {"partition": index, "leader_epoch": epoch, "current_leader_epoch": current}
                    ]}],
                )  # fmt: skip


def delete_records(sides: Sides, side: Side) -> None:
    """Each version: below, at and behind the high watermark, of topics that allow it or not."""
    for version in sides.versions("delete_records"):
        name = f"shortened-{version}"
        side.create(name, [1, 2], [2, 1])
        side.create(f"kept-{version}", [1], cleanup_policy="compact")
        for _ in range(4):
            side.ask("produce", 12, **by_name(name, 0, good()))
        for label, topic, index, offset in (
            ("3", name, 0, 3),
            ("2", name, 0, 2),
            ("9", name, 0, 9),
            ("−5", name, 0, -5),
            ("all", name, 0, -1),
            ("other leader", name, 1, -1),
            ("unknown partition", name, 9, 0),
            ("unknown topic", "unknown", 0, 0),
            ("compacted", f"kept-{version}", 0, 0),
        ):
            side.call(
                label, "delete_records", version, timeout=10_000,
                topics=[{"name": topic, "partitions": [{"partition_index": index, "offset": offset}]}],
            )  # fmt: skip
        side.call("nothing", "delete_records", version, timeout=10_000, topics=[])
        side.call(
            f"earliest after deletion v{version}", "list_offsets", 9, replica_id=-1, isolation_level=0,
            topics=[{"name": name, "partitions": [
                {"partition_index": 0, "timestamp": -2, "current_leader_epoch": -1}
            ]}],
        )  # fmt: skip
        read(side, f"after deletion v{version}", name, 0)


def init_producer_id(sides: Sides, side: Side) -> None:
    """Each version: a new producer, one that has an id, and transactional ones."""
    await_producer_ids(side)
    for version in sides.versions("init_producer_id"):
        for label, values in {
            "new": {}, "another": {}, "has an id": {"producer_id": 5, "producer_epoch": 0},
            "id without an epoch": {"producer_id": 5, "producer_epoch": -1}, "empty": {"transactional_id": ""},
        }.items():  # fmt: skip
            side.call(label, "init_producer_id", version, **{**NEW_PRODUCER, **values})


CASES = (produce, list_offsets, offset_for_leader_epoch, delete_records, init_producer_id)
