"""Produce and what is read of it: Fetch, ListOffsets, OffsetForLeaderEpoch, DeleteRecords; InitProducerId."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from kraftlake.records.batch_format import COMPRESSIONS
from tests.replica_manager.data_batches import batch, emptied, marker
from tests.server.matrix.batches import changed, packed, with_records
from tests.server.matrix.sides import LONG, Side, Sides

_UNKNOWN = UUID(int=77)
_QUICK = ("plain", "stamped", "compacted", "gzipped", "recent")
_NOW = int(time.time() * 1000)
_DAY = 86_400_000
_WITH_SESSIONS, _WITH_IDS = 7, 13
KEYED = b"\x00\x00\x00\x02k\x02v\x00"


def produced(side: Side, version: int, topic: str, *parts: tuple[int, bytes | None], **more: Any) -> dict[str, Any]:
    """The fields of a Produce request."""
    partitions = [{"index": index, "records": records} for index, records in parts]
    id_ = side.id_of(topic) if topic != "unknown" else _UNKNOWN
    return {
        "acks": -1, "timeout": 10_000,
        "topic_data": [{"name": topic, "topic_id": id_, "partition_data": partitions}], **more,
    }  # fmt: skip


def _good(*values: bytes, **more: Any) -> bytes:
    return batch(*(values or (b"a", b"b")), times=(_NOW,) * len(values or "ab"), **more)


def _batches() -> Mapping[str, bytes | None]:
    """What producers may send, and what none may: each to a partition of its own."""
    good = _good()
    record = b"\x00\x00\x00\x01\x02v\x00"  # attributes, two deltas, no key, a value of a byte, no headers
    return {
        "good": good, "no records": b"", "two batches": good + good, "cut off": good[:-1],
        "left over": good + b"x", "empty batch": emptied(good), "only a header": good[:61], "garbage": b"\x07" * 90,
        "magic 1": changed(good, magic=1), "magic 3": changed(good, magic=3), "wrong checksum": good[:-1] + b"\xff",
        "count 3": changed(good, count=3), "count 1": changed(good, count=1), "count 0": changed(good, count=0),
        "count −1": changed(good, count=-1), "last delta 5": changed(good, last_delta=5),
        "last delta −1": changed(good, last_delta=-1), "base offset 5": changed(good, base=5),
        "base offset −3": changed(good, base=-3), "leader epoch 9": changed(good, epoch=9),
        "control": marker(1, commit=True), "control without a transaction": changed(good, attributes=0x20),
        "transaction": _good(b"a", producer=900, transactional=True),
        "append time set": changed(good, attributes=0x08), "unknown bit": changed(good, attributes=0x80),
        "horizon bit": changed(good, attributes=0x40), "compression 5": changed(good, attributes=5),
        "compression 7": changed(good, attributes=7), "not gzip": changed(good, attributes=1),
        "not snappy": changed(good, attributes=2), "not lz4": changed(good, attributes=3),
        "not zstd": changed(good, attributes=4),
        **{codec: packed(good, codec) for codec in COMPRESSIONS[1:]},
        "no sequence": _good(b"a", producer=901, sequence=-1), "sequence 7": _good(b"a", producer=902, sequence=7),
        "epoch −1": changed(_good(b"a", producer=903), producer_epoch=-1),
        "sequence without a producer": changed(good, sequence=3), "producer −5": changed(good, producer=-5),
        "old": batch(b"a", times=(1000,)), "no time": batch(b"a", times=(-1,)), "time −5": batch(b"a", times=(-5,)),
        "future": batch(b"a", times=(_NOW + _DAY,)), "one is future": batch(b"a", b"b", times=(_NOW, _NOW + _DAY)),
        "future behind a lying header": changed(batch(b"a", b"b", times=(_NOW, _NOW + _DAY)), max_time=_NOW),
        "header says future": changed(good, max_time=_NOW + _DAY), "header says less": changed(good, max_time=_NOW - 9),
        "first time is future": changed(good, first_time=_NOW + _DAY),
        "large": _good(b"x" * 1_100_000), "just not too large": _good(b"x" * 1_000_000),
        "one record": with_records(good, record), "two for one": with_records(good, record + record, count=1),
        "length of a record too large": changed(_with_head(good, b"\x20" + record)),
        "length of a record too small": changed(_with_head(good, b"\x08" + record)),
        "length of a record −1": changed(_with_head(good, b"\x01" + record)),
        "length of a record zero": changed(_with_head(good, b"\x00" + record)),
        "attributes of a record": with_records(good, b"\x07" + record[1:]),
        "offset delta 5": with_records(good, record[:2] + b"\x0a" + record[3:]),
        "offset delta −1": with_records(good, record[:2] + b"\x01" + record[3:]),
        "key length −2": with_records(good, record[:3] + b"\x03\x02v\x00"),
        "key too long": with_records(good, record[:3] + b"\x40k\x02v\x00"),
        "value too long": with_records(good, record[:3] + b"\x01\x40v\x00"),
        "value length −2": with_records(good, record[:3] + b"\x01\x03\x00"),
        "no value": with_records(good, record[:3] + b"\x01\x01\x00"),
        "header count −1": with_records(good, record[:-1] + b"\x01"),
        "header missing": with_records(good, record[:-1] + b"\x02"),
        "header": with_records(good, record[:-1] + b"\x02\x02h\x02v"),
        "header without a value": with_records(good, record[:-1] + b"\x02\x02h\x01"),
        "header without a key": with_records(good, record[:-1] + b"\x02\x01\x02v"),
        "header key −1, no value": with_records(good, record[:-1] + b"\x02\x03\x01"),
        "more bytes in a record": with_records(good, record + b"x"),
        "bytes behind the records": _with_head(good, b"\x0e" + record + b"xyz"),
        "offset deltas swapped": with_records(good, record[:2] + b"\x02" + record[3:], record[:2] + b"\x00" + record[3:]),
        "offset deltas twice": with_records(good, record, record),
        "key": with_records(good, KEYED), "empty key": with_records(good, b"\x00\x00\x00\x00\x02v\x00"),
        "tombstone": with_records(good, b"\x00\x00\x00\x02k\x01\x00"),
    }  # fmt: skip


def _with_head(data: bytes, records: bytes) -> bytes:
    return with_records(data, whole=records, count=1)


def _kinds() -> Mapping[str, Mapping[str, object]]:
    """Configs of topics that change what is taken, and how."""
    return {
        "plain": {}, "stamped": {"message_timestamp_type": "LogAppendTime"}, "compacted": {"cleanup_policy": "compact"},
        "gzipped": {"compression_type": "gzip"}, "unpacked": {"compression_type": "uncompressed"},
        "zstd": {"compression_type": "zstd"}, "lz4": {"compression_type": "lz4"},
        "snappy": {"compression_type": "snappy"}, "stamped-lz4": {
            "message_timestamp_type": "LogAppendTime", "compression_type": "lz4",
        },
        "recent": {"message_timestamp_before_max_ms": 1000, "message_timestamp_after_max_ms": 1000},
        "small": {"max_message_bytes": 100}, "small-segments": {"segment_bytes": 1_048_576, "max_message_bytes": 5_000_000},
    }  # fmt: skip


def batches(sides: Sides, side: Side) -> None:
    """Each batch to each kind of topic, and what is read of it afterwards, and where its times are."""
    made = _batches()
    for kind, configs in _kinds().items():
        if not LONG and kind not in _QUICK:
            continue
        side.create(kind, *[[1]] * len(made), **configs)
        for index, (label, data) in enumerate(made.items()):
            side.call(f"{label} to {kind}", "produce", 12, **_by_name(kind, index, data))
            _read(side, f"{label} of {kind}", kind, index)
            for time_ in (-3, 0, _NOW):
                side.call(
                    f"{label} of {kind} at {'now' if time_ > 0 else time_}", "list_offsets", 10, replica_id=-1,
                    topics=[{"name": kind, "partitions": [
                        {"partition_index": index, "current_leader_epoch": -1, "timestamp": time_}
                    ]}],
                )  # fmt: skip


def _by_name(topic: str, index: int, data: bytes | None, **more: Any) -> dict[str, Any]:
    topic_data = [{"name": topic, "partition_data": [{"index": index, "records": data}]}]
    return {"acks": -1, "timeout": 10_000, "topic_data": topic_data, **more}


def fetched(side: Side, version: int, *topics: tuple[str, list[dict[str, Any]]], **more: Any) -> dict[str, Any]:
    """The fields of a Fetch request."""
    found = [
        {
            "topic": name, "topic_id": _UNKNOWN if name == "unknown" else side.id_of(name),
            "partitions": [
                {
                    "current_leader_epoch": -1, "last_fetched_epoch": -1, "log_start_offset": -1,
                    "partition_max_bytes": 1 << 20, **one,
                }
                for one in partitions
            ],
        }
        for name, partitions in topics
    ]  # fmt: skip
    return {
        "replica_id": -1, "max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 24, "isolation_level": 0, "session_id": 0,
        "session_epoch": -1, "topics": found, "forgotten_topics_data": [], "rack_id": "", **more,
    }  # fmt: skip


def _read(side: Side, label: str, topic: str, index: int) -> None:
    side.call(label, "fetch", 12, **fetched(side, 12, (topic, [{"partition": index, "fetch_offset": 0}])))


def produce(sides: Sides, side: Side) -> None:
    """Each version: right and wrong topics, partitions, acks; idempotent producers and what they do wrong."""
    for version in sides.versions("produce"):
        name = f"produced-{version}"
        side.create(name, [1], [2], [1], min_insync_replicas=1)
        side.create(f"strict-{version}", [1, 2], min_insync_replicas=2)
        side.create(f"too-strict-{version}", [1, 2], min_insync_replicas=3)
        good = _good()
        for label, values in {
            "good": produced(side, version, name, (0, good)), "acks 1": produced(side, version, name, (0, good), acks=1),
            "acks 2": produced(side, version, name, (0, good), acks=2),
            "acks −2": produced(side, version, name, (0, good), acks=-2),
            "other leader": produced(side, version, name, (1, good)),
            "unknown partition": produced(side, version, name, (9, good)),
            "partition −1": produced(side, version, name, (-1, good)),
            "unknown topic": produced(side, version, "unknown", (0, good)),
            "several": produced(side, version, name, (0, good), (1, good), (9, good), (2, good)),
            "a wrong one": produced(side, version, name, (0, good), (2, good + b"x")),
            "nothing": produced(side, version, name), "no topics": produced(side, version, name, topic_data=[]),
            "a transaction": produced(side, version, name, (0, good), transactional_id="t"),
            "wrong checksum": produced(side, version, name, (0, good[:-1] + b"\xff")),
            "wrong checksum, acks 1": produced(side, version, name, (0, good[:-1] + b"\xff"), acks=1),
            "zstd": produced(side, version, name, (0, packed(good, "zstd"))),
            "strict": produced(side, version, f"strict-{version}", (0, good)),
            "too strict": produced(side, version, f"too-strict-{version}", (0, good)),
            "too strict, acks 1": produced(side, version, f"too-strict-{version}", (0, good), acks=1),
            "no time to wait": produced(side, version, name, (0, good), timeout=0),
        }.items():  # fmt: skip
            side.call(label, "produce", version, **values)
        for label, data in (
            ("first", _good(b"a", b"b", producer=7)),
            ("again", _good(b"a", b"b", producer=7)),
            ("next", _good(b"c", producer=7, sequence=2)),
            ("gap", _good(b"c", producer=7, sequence=9)),
            ("old again", _good(b"a", b"b", producer=7)),
            ("part of old", _good(b"b", producer=7, sequence=1)),
            ("new epoch, wrong sequence", _good(b"c", producer=7, epoch=1, sequence=3)),
            ("new epoch", _good(b"c", producer=7, epoch=1)),
            ("old epoch", _good(b"d", producer=7, sequence=3)),
            ("unknown producer", _good(b"d", producer=8, sequence=3)),
        ):
            side.call(f"idempotent, {label}", "produce", version, **produced(side, version, name, (2, data)))
        _no_answer(side, version, name, good)
        _read(side, f"after v{version}", name, 0)
        _read(side, f"after v{version}, of the idempotent", name, 2)


def _no_answer(side: Side, version: int, name: str, good: bytes) -> None:
    """acks=0: no answer, or the connection's end."""
    for label, values in {
        "good": produced(side, version, name, (0, good)), "unknown partition": produced(side, version, name, (9, good)),
        "other leader": produced(side, version, name, (1, good)), "unknown": produced(side, version, "unknown", (0, good)),
    }.items():  # fmt: skip
        wire = side.new_wire()
        wire.send(side.frame("produce", version, values | {"acks": 0}))
        try:
            answer = wire.ask("api_versions", 0, {})
        except OSError:
            answer = "closed"
        side.keep(f"produce v{version} acks 0, {label}", "goes on" if not isinstance(answer, str) else "closed")
        wire.close()


def fetch(sides: Sides, side: Side) -> None:
    """Each version: offsets, epochs, limits, isolation, followers."""
    side.create("read", [1, 2], [2, 1], [1, 2])
    for number in range(5):
        side.ask("produce", 12, **_by_name("read", 0, _good(*[b"%d" % number * 100] * 3)))
    for version in sides.versions("fetch"):

        def one(offset: int, **more: Any) -> list[dict[str, Any]]:
            return [{"partition": more.pop("partition", 0), "fetch_offset": offset, **more}]

        for label, values in {
            "all": fetched(side, version, ("read", one(0))), "from the middle": fetched(side, version, ("read", one(4))),
            "from the end": fetched(side, version, ("read", one(15))),
            "behind the end": fetched(side, version, ("read", one(16))), "from −1": fetched(side, version, ("read", one(-1))),
            "a byte": fetched(side, version, ("read", one(0, partition_max_bytes=1))),
            "a byte in all": fetched(side, version, ("read", one(0)), max_bytes=1),
            "half of it": fetched(side, version, ("read", one(0, partition_max_bytes=900))),
            "no bytes": fetched(side, version, ("read", one(0, partition_max_bytes=0))),
            "many bytes": fetched(side, version, ("read", one(15)), min_bytes=1 << 20, max_wait=50),
            "other leader": fetched(side, version, ("read", one(0, partition=1))),
            "unknown partition": fetched(side, version, ("read", one(0, partition=9))),
            "unknown topic": fetched(side, version, ("unknown", one(0))),
            "unknown and known": fetched(side, version, ("unknown", one(0)), ("read", one(0))),
            "epoch 0": fetched(side, version, ("read", one(0, current_leader_epoch=0))),
            "epoch 5": fetched(side, version, ("read", one(0, current_leader_epoch=5))),
            "last epoch 0": fetched(side, version, ("read", one(0, last_fetched_epoch=0))),
            "last epoch 3": fetched(side, version, ("read", one(0, last_fetched_epoch=3))),
            "committed": fetched(side, version, ("read", one(0)), isolation_level=1),
            "isolation 9": fetched(side, version, ("read", one(0)), isolation_level=9),
            "rack": fetched(side, version, ("read", one(0)), rack_id="r"), "nothing": fetched(side, version),
            "empty": fetched(side, version, ("read", one(0, partition=2))),
            "of replica 3": fetched(side, version, ("read", one(0)), replica_id=3, replica_state={"replica_id": 3}),
            "of replica 9": fetched(side, version, ("read", one(0)), replica_id=9, replica_state={"replica_id": 9}),
            "of replica −2": fetched(side, version, ("read", one(0)), replica_id=-2, replica_state={"replica_id": -2}),
            "twice": fetched(side, version, ("read", [*one(0), *one(3)])), "max wait −1": fetched(
                side, version, ("read", one(15)), max_wait=-1,
            ),
        }.items():  # fmt: skip
            side.call(label, "fetch", version, **values)
        side.call("at a follower", "fetch", version, 2, **fetched(side, version, ("read", one(0))))
        side.call("at nobody", "fetch", version, 3, **fetched(side, version, ("read", one(0))))


def sessions(sides: Sides, side: Side) -> None:
    """Fetch sessions: whole, incremental, with partitions that are forgotten and come back, with wrong epochs."""
    side.create("in-session", [1], [1], [1])
    for version in (one for one in sides.versions("fetch") if one >= _WITH_SESSIONS):

        def ask(label: str, session: int, epoch: int, *partitions: int, offset: int = 0, **more: Any) -> int:
            topics = (
                [("in-session", [{"partition": one, "fetch_offset": offset} for one in partitions])]
                if partitions
                else []
            )
            answer = side.call(
                f"session, {label}", "fetch", version,
                **fetched(side, version, *topics, session_id=session, session_epoch=epoch, **more),
            )  # fmt: skip
            return int(answer.session_id)

        def forgets(*partitions: int) -> list[dict[str, Any]]:
            return [{"topic": "in-session", "topic_id": side.id_of("in-session"), "partitions": partitions}]

        session = ask("whole", 0, 0, 0, 1, 2)
        ask("first step", session, 1)
        side.ask("produce", 12, **_by_name("in-session", 1, _good()))
        ask("one has records", session, 2)
        ask("again", session, 3)
        ask("another offset", session, 4, 1, offset=2)
        ask("nothing new", session, 5)
        ask("forgets", session, 6, forgotten_topics_data=forgets(1, 9))
        side.ask("produce", 12, **_by_name("in-session", 1, _good()))
        ask("forgotten", session, 7)
        ask("comes back", session, 8, 1)
        ask("adds and forgets", session, 9, 1, forgotten_topics_data=forgets(1))
        ask("adds an unknown one", session, 10, 9)
        ask("has an unknown one", session, 11)
        ask("old epoch", session, 5)
        ask("later epoch", session, 20)
        ask("unknown session", 12345, 1)
        ask("right after wrong", session, 12)
        ask("other whole", session, 0, 0, 1)
        ask("of the session that was", session, 13)
        ask("no session", 0, -1, 1)
        session = ask("whole again", 0, 0, 0)
        ask("closes", session, -1, 0)
        ask("closed", session, 1)
        ask("whole of nothing", 0, 0)
        ask("first step without a session", 0, 1)
        session = ask("whole with an unknown one", 0, 0, 0, 9)
        ask("unknown one in it", session, 1)
        if version >= _WITH_IDS:
            answer = side.call(
                "session, unknown id", "fetch", version,
                **fetched(side, version, ("unknown", [{"partition": 0, "fetch_offset": 0}]), ("in-session", [{"partition": 0, "fetch_offset": 0}]), session_epoch=0),
            )  # fmt: skip
            side.call(
                "session, unknown id in it", "fetch", version,
                **fetched(side, version, session_id=answer.session_id, session_epoch=1),
            )  # fmt: skip


def list_offsets(sides: Sides, side: Side) -> None:
    """Each version: each kind of time, epochs, isolation, wrong partitions."""
    side.create("times", [1, 2], [2, 1], [1, 2])
    for number in range(4):
        data = batch(b"a", b"b", times=(_NOW - 9000 + number * 1000, _NOW - 9500 + number * 1000))
        side.ask("produce", 12, **_by_name("times", 0, data))
    for version in sides.versions("list_offsets"):
        for label, parts in {
            "latest": [(0, -1, -1)], "earliest": [(0, -2, -1)], "largest time": [(0, -3, -1)], "local": [(0, -4, -1)],
            "tiered": [(0, -5, -1)], "pending": [(0, -6, -1)], "−7": [(0, -7, -1)], "time 0": [(0, 0, -1)],
            "in the middle": [(0, _NOW - 7600, -1)], "between": [(0, _NOW - 8200, -1)], "far": [(0, _NOW + 9 * _DAY, -1)],
            "epoch 0": [(0, -1, 0)], "epoch 5": [(0, -1, 5)], "other leader": [(1, -1, -1)], "unknown": [(9, -1, -1)],
            "twice": [(0, -1, -1), (0, -2, -1)], "empty": [(2, -3, -1), (2, -1, -1)], "empty, time": [(2, 5, -1)],
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
                topics=[{"name": name, "partitions": [{"partition_index": 0, "timestamp": -1, "current_leader_epoch": -1}]}],
            )  # fmt: skip
        side.call("of nothing", "list_offsets", version, replica_id=-1, topics=[])


def offset_for_leader_epoch(sides: Sides, side: Side) -> None:
    """Each version: epochs there are, were and will be."""
    side.create("epochs", [1, 2], [2, 1])
    side.ask("produce", 12, **_by_name("epochs", 0, _good()))
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
            side.ask("produce", 12, **_by_name(name, 0, _good()))
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
        _read(side, f"after deletion v{version}", name, 0)


def init_producer_id(sides: Sides, side: Side) -> None:
    """Each version: a new producer, one that has an id, and transactional ones."""
    new = {"transactional_id": None, "transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1}
    side.wait_for(lambda: not side.ask("init_producer_id", 4, **new).error_code, "producer ids")
    for version in sides.versions("init_producer_id"):
        for label, values in {
            "new": {}, "another": {}, "has an id": {"producer_id": 5, "producer_epoch": 0},
            "id without an epoch": {"producer_id": 5, "producer_epoch": -1}, "empty": {"transactional_id": ""},
        }.items():  # fmt: skip
            side.call(label, "init_producer_id", version, **{**new, **values})


CASES = (
    batches, produce, fetch, sessions, list_offsets, offset_for_leader_epoch, delete_records, init_producer_id,
)  # fmt: skip
