"""What a follower's log costs, beside Kafka's own: python -m benchmarks.partition_log [--batch BYTES] [--rounds N]

A log is appended as a follower gets it, by fetches of about 1 MB of whole batches (CRC checked, offset and time index,
leader epoch and producer's state written), and made durable at the end. Then it is closed as by a crash and recovered
from its first byte. Kafka's UnifiedLog does the same in turn with ours, on one thread of a JVM that has done it before
(tests/interop/KafkaLogs.java). CPU seconds are those of the thread that does it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from kraftlake.replica_manager.logs.disk.files import DiskFiles
from kraftlake.replica_manager.logs.disk.log_loader import StoredState, load_log
from kraftlake.replica_manager.logs.log_batch import log_batches
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.runtime.clock import SystemClock
from simulator.data_batches import batch
from tests.interop.kafka_classes import KafkaClasses
from tests.interop.kafka_logs import measured_kafka_logs
from tests.replica_manager.brokers import FOO
from tests.replica_manager.logs.disk.opened import PARTITION

FETCH = 1 << 20
STEPS = {"append": "appended by fetches of 1 MB", "recover": "recovered after a crash"}


def fetches(megabytes: int, batch_bytes: int) -> list[bytes]:
    """What a follower gets: whole batches of an idempotent producer, in chunks."""
    now = SystemClock().milliseconds()
    count = max(1, batch_bytes // 1000)
    (made,) = log_batches(batch(*[b"x" * 980] * count, times=(now,) * count, producer=7))
    chunks: list[bytes] = []
    offset = 0
    while sum(map(len, chunks)) < megabytes << 20:
        chunk = []
        for _ in range(max(1, FETCH // made.size)):
            chunk.append(made.placed(offset, 0).data)
            offset += count
        chunks.append(b"".join(chunk))
    return chunks


def ours(folder: Path, chunks: list[bytes]) -> dict[str, tuple[float, float]]:
    """Wall and CPU seconds of each step."""
    config, stored = LogConfig(), StoredState()
    log = load_log(DiskFiles(), str(folder), PARTITION, config, SystemClock(), topic_id=FOO, stored=stored)
    wall, cpu = time.perf_counter(), time.thread_time()
    for chunk in chunks:
        log.append_as_follower(chunk, 0)
    log.flush()
    seconds = {"append": (time.perf_counter() - wall, time.thread_time() - cpu)}
    log.close_files()
    wall, cpu = time.perf_counter(), time.thread_time()
    again = load_log(DiskFiles(), str(folder), PARTITION, config, SystemClock(), topic_id=FOO, stored=stored)
    seconds["recover"] = (time.perf_counter() - wall, time.thread_time() - cpu)
    assert again.log_end_offset == log.log_end_offset
    again.close_files()
    return seconds


def kafkas(kafka: KafkaClasses, folder: Path, chunks: list[bytes]) -> dict[str, tuple[float, float]]:
    """The same of Kafka."""
    data = folder / "fetched"
    data.write_bytes(b"".join(chunks))
    nanoseconds = kafka.ask("bench", folder / "foo-0", FOO, data, len(chunks[0]))
    return {step: (nanoseconds[step][0] / 1e9, nanoseconds[step][1] / 1e9) for step in STEPS}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.partition_log", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--batch", type=int, default=16_000, help="bytes of a batch, records of 1 kB")
    parser.add_argument("--rounds", type=int, default=5, help="of which the median counts, after one to warm up")
    options = parser.parse_args()
    chunks = fetches(options.megabytes, options.batch)
    size = sum(map(len, chunks)) / 1e6
    runs: list[tuple[dict[str, tuple[float, float]], dict[str, tuple[float, float]]]] = []
    kafka = measured_kafka_logs()
    try:
        for _ in range(options.rounds + 1):
            with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as two:
                runs.append((ours(Path(one), chunks), kafkas(kafka, Path(two), chunks)))
    finally:
        kafka.close()
    for step, text in STEPS.items():
        for at, unit in enumerate(("clock", "CPU")):
            mine, theirs = (statistics.median(run[side][step][at] for run in runs[1:]) for side in (0, 1))
            line = {
                "step": step, "of": unit, "MB/s": round(size / mine), "Kafka MB/s": round(size / theirs),
                "ratio": round(theirs / mine, 2),
            }  # fmt: skip
            sys.stdout.write(f"{text}, {size:.0f} MB: {json.dumps(line)}\n")


if __name__ == "__main__":
    main()
