"""How long after an append a record is in hand in another process: `python -m benchmarks.tail`.

A writer appends one record at a time, with fsync, each after a pause; a reader in a process of its own follows it: ours
by `MetadataLog.tail`, and one that polls delta-rs as fast as it can, in turn, each with a new lake, whose first record
does not count. The clock is the machine's monotonic one, which all processes share; the record carries the time of the
call to `append`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import attrs

from benchmarks.folders import made_folder
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import TopicRecord
from kraftlake.records.serde import ApiMessageAndVersion, decode_value
from kraftlake.records.uuid import Uuid

OURS = "kraftlake"


def read_ours(lake: str, count: int) -> None:
    with MetadataLog.open(lake).tail(0) as tailed:
        print("ready", flush=True)
        for _ in range(count):
            batch = next(tailed)
            print_arrival(batch.base_offset, batch.values[0])


def read_delta_rs(lake: str, count: int) -> None:
    from deltalake import DeltaTable

    table = DeltaTable(f"{lake}/log")
    print("ready", flush=True)
    seen = -1
    while seen < count - 1:
        before = table.version()
        table.update_incremental()
        if table.version() == before:
            continue
        rows = table.to_pyarrow_table(columns=["offset", "payload"], filters=[("offset", ">", seen)])
        for row in sorted(rows.to_pylist(), key=lambda row: row["offset"]):
            print_arrival(row["offset"], row["payload"])
            seen = row["offset"]
    os._exit(0)  # pyarrow's threads, which read ahead, sometimes abort a process that ends as others do


def print_arrival(offset: int, value: bytes) -> None:
    now = time.monotonic_ns()
    called = int(decode_value(value).message.name)
    print(offset, now, now - called, flush=True)


def percentiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {"p50_ms": round(statistics.median(ordered), 2), "p99_ms": round(ordered[int(len(ordered) * 0.99)], 2)}


@attrs.define
class Taken:
    """Milliseconds from the call of an append until the record was in hand, from its acknowledgement, and of itself."""

    from_call: list[float] = attrs.field(factory=list)
    from_acknowledgement: list[float] = attrs.field(factory=list)
    append: list[float] = attrs.field(factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="appends that each reader follows")
    parser.add_argument("--rounds", type=int, default=5, help="turns in which they do")
    parser.add_argument("--pause", type=float, default=0.02)
    parser.add_argument("--durability", choices=["fsync", "os"], default="fsync")
    parser.add_argument("--folder", type=made_folder, help="where the lake lies; by default among the temporary files")
    parser.add_argument("--read", nargs=2, metavar=("WHO", "LAKE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        who, lake = arguments.read
        (read_ours if who == OURS else read_delta_rs)(lake, arguments.count)
        return
    taken = {OURS: Taken(), "delta-rs": Taken()}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        for number in range(arguments.rounds):
            for who, times in taken.items():
                lake = Path(scratch) / f"{who}-{number}"
                count = -(-arguments.count // arguments.rounds) + 1
                run(MetadataLog.create(lake, durability=arguments.durability), who, count, arguments.pause, times)
    for who, times in taken.items():
        print(
            json.dumps(
                {
                    "reader": who,
                    "from append call": percentiles(times.from_call),
                    "from acknowledgement": percentiles(times.from_acknowledgement),
                    "append itself": percentiles(times.append),
                }
            )
        )


def run(log: MetadataLog, who: str, count: int, pause: float, taken: Taken) -> None:
    """Append to a new lake while a reader follows it."""
    command = [sys.executable, "-m", "benchmarks.tail", "--count", str(count), "--read", who, str(log.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
        called, acknowledged = [], []
        for offset in range(count):
            time.sleep(pause)
            called.append(time.monotonic_ns())
            topic = TopicRecord(name=str(called[-1]), topic_id=Uuid.ZERO)
            log.append([RecordBatch.of(offset, 1, 1_700_000_000_000, [ApiMessageAndVersion(topic, 0)])])
            acknowledged.append(time.monotonic_ns())
            if offset == 0:
                out = reader.stdout.readline()  # the reader has imported what it needs
        out += reader.communicate()[0]
    assert reader.returncode == 0, f"the reader by {who} ended with {reader.returncode}"
    lines = [[int(word) for word in line.split()] for line in out.splitlines()]
    assert [offset for offset, _, _ in lines] == list(range(count))
    taken.from_call += [after / 1e6 for _, _, after in lines[1:]]
    taken.from_acknowledgement += [(at - acknowledged[offset]) / 1e6 for offset, at, _ in lines[1:]]
    taken.append += [(end - begin) / 1e6 for begin, end in zip(called[1:], acknowledged[1:], strict=True)]


if __name__ == "__main__":
    main()
