"""How long after an append a record is in hand in another process: `python -m benchmarks.tail`.

A writer appends one record at a time, with fsync, each after a pause; two readers in processes of their own follow it
at the same time, ours by `MetadataLog.tail` and one that polls delta-rs as fast as it can. The clock is the machine's
monotonic one, which all processes share; the record carries the time of the call to `append`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kraftlake.metadata_log import MetadataLog
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import TopicRecord
from kraftlake.records.serde import ApiMessageAndVersion, decode_value
from kraftlake.records.uuid import Uuid


def read_ours(lake: str, count: int) -> None:
    with MetadataLog.open(lake).tail(0) as tailed:
        print("ready", flush=True)
        for _ in range(count):
            batch = next(tailed)
            tell(batch.base_offset, batch.values[0])


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
            tell(row["offset"], row["payload"])
            seen = row["offset"]


def tell(offset: int, value: bytes) -> None:
    now = time.monotonic_ns()
    called = int(decode_value(value).message.name)
    print(offset, now, now - called, flush=True)


def percentiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {"p50_ms": round(statistics.median(ordered), 2), "p99_ms": round(ordered[int(len(ordered) * 0.99)], 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--pause", type=float, default=0.02)
    parser.add_argument("--durability", choices=["fsync", "os"], default="fsync")
    parser.add_argument("--folder", type=Path, help="where the lake lies; by default among the temporary files")
    parser.add_argument("--read", nargs=2, metavar=("WHO", "LAKE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        who, lake = arguments.read
        (read_ours if who == "kraftlake" else read_delta_rs)(lake, arguments.count)
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        run(Path(scratch) / "lake", arguments.count, arguments.pause, arguments.durability)


def run(lake: Path, count: int, pause: float, durability: str) -> None:
    log = MetadataLog.create(lake, durability="os" if durability == "os" else "fsync")
    readers = {
        who: subprocess.Popen(
            [sys.executable, "-m", "benchmarks.tail", "--count", str(count), "--read", who, str(lake)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for who in ("kraftlake", "delta-rs")
    }
    for reader in readers.values():
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
    acknowledged = []
    for offset in range(count):
        time.sleep(pause)
        now = time.monotonic_ns()
        topic = TopicRecord(name=str(now), topic_id=Uuid.ZERO)
        log.append([RecordBatch.of(offset, 1, 1_700_000_000_000, [ApiMessageAndVersion(topic, 0)])])
        acknowledged.append((now, time.monotonic_ns()))
    for who, reader in readers.items():
        out, _ = reader.communicate()
        assert reader.returncode == 0
        lines = [[int(word) for word in line.split()] for line in out.splitlines()]
        assert [offset for offset, _, _ in lines] == list(range(count))
        from_call = percentiles([taken / 1e6 for _, _, taken in lines])
        from_commit = percentiles([(at - acknowledged[offset][1]) / 1e6 for offset, at, _ in lines])
        print(json.dumps({"reader": who, "from append call": from_call, "from acknowledgement": from_commit}))
    print(json.dumps({"append itself": percentiles([(done - now) / 1e6 for now, done in acknowledged])}))


if __name__ == "__main__":
    main()
