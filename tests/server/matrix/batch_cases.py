"""Batches that producers may send, and that none may, to topics of several kinds."""

from __future__ import annotations

from collections.abc import Mapping

from kraftlake.records.batch_header import COMPRESSIONS
from simulator.data_batches import batch, emptied, marker
from tests.server.matrix.batches import changed, packed, with_records
from tests.server.matrix.records import DAY, NOW, by_name, good, read
from tests.server.matrix.sides import LONG, Side, Sides

_QUICK = ("plain", "stamped-lz4", "compacted")
_KEYED = b"\x00\x00\x00\x02k\x02v\x00"


def _batches() -> Mapping[str, bytes | None]:
    """What producers may send, and what none may: each to a partition of its own."""
    usual = good()
    record = b"\x00\x00\x00\x01\x02v\x00"  # attributes, two deltas, no key, a value of a byte, no headers
    return {
        "good": usual, "no records": b"", "two batches": usual + usual, "cut off": usual[:-1],
        "left over": usual + b"x", "empty batch": emptied(usual), "only a header": usual[:61], "garbage": b"\x07" * 90,
        "magic 1": changed(usual, magic=1), "magic 3": changed(usual, magic=3), "wrong checksum": usual[:-1] + b"\xff",
        "count 3": changed(usual, count=3), "count 1": changed(usual, count=1), "count 0": changed(usual, count=0),
        "count −1": changed(usual, count=-1), "last delta 5": changed(usual, last_delta=5),
        "last delta −1": changed(usual, last_delta=-1), "base offset 5": changed(usual, base=5),
        "base offset −3": changed(usual, base=-3), "leader epoch 9": changed(usual, epoch=9),
        "control": marker(1, commit=True), "control without a transaction": changed(usual, attributes=0x20),
        "transaction": good(b"a", producer=900, transactional=True),
        "append time set": changed(usual, attributes=0x08), "unknown bit": changed(usual, attributes=0x80),
        "horizon bit": changed(usual, attributes=0x40), "compression 5": changed(usual, attributes=5),
        "compression 7": changed(usual, attributes=7), "not gzip": changed(usual, attributes=1),
        "not snappy": changed(usual, attributes=2), "not lz4": changed(usual, attributes=3),
        "not zstd": changed(usual, attributes=4),
        **{codec: packed(usual, codec) for codec in COMPRESSIONS[1:]},
        "no sequence": good(b"a", producer=901, sequence=-1), "sequence 7": good(b"a", producer=902, sequence=7),
        "epoch −1": changed(good(b"a", producer=903), producer_epoch=-1),
        "sequence without a producer": changed(usual, sequence=3), "producer −5": changed(usual, producer=-5),
        "old": batch(b"a", times=(1000,)), "no time": batch(b"a", times=(-1,)), "time −5": batch(b"a", times=(-5,)),
        "future": batch(b"a", times=(NOW + DAY,)), "one is future": batch(b"a", b"b", times=(NOW, NOW + DAY)),
        "future behind a lying header": changed(batch(b"a", b"b", times=(NOW, NOW + DAY)), max_time=NOW),
        "header says future": changed(usual, max_time=NOW + DAY), "header says less": changed(usual, max_time=NOW - 9),
        "first time is future": changed(usual, first_time=NOW + DAY),
        "large": good(b"x" * 1_100_000), "just not too large": good(b"x" * 1_000_000),
        "one record": with_records(usual, record), "two for one": with_records(usual, record + record, count=1),
        "length of a record too large": changed(_with_head(usual, b"\x20" + record)),
        "length of a record too small": changed(_with_head(usual, b"\x08" + record)),
        "length of a record −1": changed(_with_head(usual, b"\x01" + record)),
        "length of a record zero": changed(_with_head(usual, b"\x00" + record)),
        "attributes of a record": with_records(usual, b"\x07" + record[1:]),
        "offset delta 5": with_records(usual, record[:2] + b"\x0a" + record[3:]),
        "offset delta −1": with_records(usual, record[:2] + b"\x01" + record[3:]),
        "key length −2": with_records(usual, record[:3] + b"\x03\x02v\x00"),
        "key too long": with_records(usual, record[:3] + b"\x40k\x02v\x00"),
        "value too long": with_records(usual, record[:3] + b"\x01\x40v\x00"),
        "value length −2": with_records(usual, record[:3] + b"\x01\x03\x00"),
        "no value": with_records(usual, record[:3] + b"\x01\x01\x00"),
        "header count −1": with_records(usual, record[:-1] + b"\x01"),
        "header missing": with_records(usual, record[:-1] + b"\x02"),
        "header": with_records(usual, record[:-1] + b"\x02\x02h\x02v"),
        "header without a value": with_records(usual, record[:-1] + b"\x02\x02h\x01"),
        "header without a key": with_records(usual, record[:-1] + b"\x02\x01\x02v"),
        "header key −1, no value": with_records(usual, record[:-1] + b"\x02\x03\x01"),
        "more bytes in a record": with_records(usual, record + b"x"),
        "bytes behind the records": _with_head(usual, b"\x0e" + record + b"xyz"),
        "offset deltas swapped": with_records(usual, *(record[:2] + bytes((at,)) + record[3:] for at in (2, 0))),
        "offset deltas twice": with_records(usual, record, record),
        "key": with_records(usual, _KEYED), "empty key": with_records(usual, b"\x00\x00\x00\x00\x02v\x00"),
        "tombstone": with_records(usual, b"\x00\x00\x00\x02k\x01\x00"),
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
        "small": {"max_message_bytes": 100},
        "small-segments": {"segment_bytes": 1_048_576, "max_message_bytes": 5_000_000},
    }  # fmt: skip


def batches(sides: Sides, side: Side) -> None:
    """Each batch to each kind of topic, and what is read of it afterwards, and where its times are."""
    made = _batches()
    for kind, configs in _kinds().items():
        if not LONG and kind not in _QUICK:
            continue
        side.create(kind, *[[1]] * len(made), **configs)
        for index, (label, data) in enumerate(made.items()):
            side.call(f"{label} to {kind}", "produce", 12, **by_name(kind, index, data))
            read(side, f"{label} of {kind}", kind, index)
            times = (-3, 0, NOW)
            for time_ in times if LONG else times[index % 3 :][:1]:
                side.call(
                    f"{label} of {kind} at {'now' if time_ > 0 else time_}", "list_offsets", 10, replica_id=-1,
                    topics=[{"name": kind, "partitions": [
                        {"partition_index": index, "current_leader_epoch": -1, "timestamp": time_}
                    ]}],
                )  # fmt: skip


CASES = (batches,)
