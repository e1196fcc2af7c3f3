"""What compaction costs, beside Kafka's own cleaner: python -m benchmarks.compaction [--records N] [--keys N]

A log of keyed records in batches of about 16 kB is cleaned from its first record on, by the broker's cleaner and by
Kafka's Cleaner, each with 128 MiB for keys, in turn, on copies of one folder: megabytes of the log a second, by the
clock and by CPU of the thread that does it. Kafka's runs in a JVM that has done it before
(tests/interop/KafkaLogs.java). What is left has to have the same size, but for what two compressors make of it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from random import Random

from benchmarks.lakes import number
from kraftlake.replica_manager.logs.cleaning.cleanable import log_to_clean
from kraftlake.replica_manager.logs.cleaning.log_cleaning import LogCleaning
from kraftlake.replica_manager.logs.cleaning.offset_map import SLOT_SIZE, OffsetMap
from kraftlake.replica_manager.logs.disk.files import DiskFiles
from kraftlake.replica_manager.logs.disk.log_loader import StoredState, load_log
from kraftlake.replica_manager.logs.log_batch import log_batches
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.runtime.clock import SystemClock
from simulator.data_batches import keyed
from tests.interop.kafka_classes import KafkaClasses
from tests.interop.kafka_logs import measured_kafka_logs
from tests.replica_manager.brokers import FOO
from tests.replica_manager.logs.disk.opened import PARTITION

CONFIGS = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.bytes": str(64 << 20)}
KEYS_BYTES = 128 << 20
BATCH = 16_000
VALUE = 80
"""Bytes of a value."""


def make(folder: Path, records: int, keys: int, codec: str) -> tuple[int, int]:
    """Fill the log in a folder; returns its end, and the bytes that can be cleaned."""
    chance, time_ms = Random(1), SystemClock().milliseconds() - records
    log = load_log(DiskFiles(), str(folder), PARTITION, LogConfig().overridden(CONFIGS), SystemClock(), topic_id=FOO)
    count = max(1, BATCH // (VALUE + 20))
    for base in range(0, records, count):
        batch = keyed(
            *[(b"key-%09d" % chance.randrange(keys), chance.randbytes(VALUE)) for _ in range(count)],
            times=tuple(range(time_ms + base, time_ms + base + count)),
            codec=codec,
        )
        (made,) = log_batches(batch)
        log.append_as_follower(bytes(made.placed(base, 0).data), 0)
    log.roll()
    log.flush()
    log.close()
    return log.log_end_offset, log.size


def ours(folder: Path, end: int) -> tuple[float, float, int]:
    """Seconds by the clock and of CPU, and the bytes left."""
    stored = StoredState(clean=True, recovery_point=end)
    config = LogConfig().overridden(CONFIGS)
    log = load_log(DiskFiles(), str(folder), PARTITION, config, SystemClock(), topic_id=FOO, stored=stored)
    log.update_high_watermark(log.log_end_offset)
    wall, cpu, now = time.perf_counter(), time.thread_time(), SystemClock().milliseconds()
    cleaning = LogCleaning(
        to_clean=log_to_clean(log, None, now), offset_map=OffsetMap(KEYS_BYTES // SLOT_SIZE, 0.9, (1, 2)),
        now_ms=now, guard=nullcontext,
    )  # fmt: skip
    for _ in cleaning.steps():
        pass
    took = time.perf_counter() - wall, time.thread_time() - cpu
    left = log.size
    log.close_files()
    return *took, left


def kafkas(kafka: KafkaClasses, folder: Path, end: int) -> tuple[float, float, int]:
    """The same of Kafka."""
    theirs = {name.replace("segment.bytes", "internal.segment.bytes"): value for name, value in CONFIGS.items()}
    answer = kafka.ask("compact", folder / "foo-0", json.dumps(theirs), FOO, end, KEYS_BYTES // SLOT_SIZE)
    return answer["took"][0] / 1e9, answer["took"][1] / 1e9, answer["left"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compaction", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--records", type=number, default=10_000_000)
    parser.add_argument("--keys", type=number, default=1_000_000)
    parser.add_argument("--codec", default="none", help="none, gzip, snappy, lz4 or zstd")
    parser.add_argument("--rounds", type=int, default=3, help="of which the best counts, after one to warm up")
    options = parser.parse_args()
    kafka = measured_kafka_logs()
    runs = []
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "log"
        log.mkdir()
        end, size = make(log, options.records, options.keys, options.codec)
        try:
            for _ in range(options.rounds + 1):
                took = []
                for clean in (ours, lambda folder, end: kafkas(kafka, folder, end)):
                    copy = Path(scratch) / "copy"
                    shutil.copytree(log, copy)
                    took.append(clean(copy, end))
                    shutil.rmtree(copy)
                runs.append(took)
        finally:
            kafka.close()
    assert all(abs(mine[2] - theirs[2]) < size / 1000 for mine, theirs in runs) or options.codec != "none", runs
    for at, unit in enumerate(("clock", "CPU")):
        mine, theirs = (min(run[side][at] for run in runs[1:]) for side in (0, 1))
        spread = statistics.median(run[1][at] / run[0][at] for run in runs[1:])
        line = {
            "of": unit, "MB/s": round(size / 1e6 / mine), "Kafka MB/s": round(size / 1e6 / theirs),
            "ratio": round(theirs / mine, 2), "median of pairs": round(spread, 2), "goal": 0.5,
        }  # fmt: skip
        sys.stdout.write(f"{size / 1e6:.0f} MB, {options.keys:,} keys, {options.codec}: {json.dumps(line)}\n")


if __name__ == "__main__":
    main()
