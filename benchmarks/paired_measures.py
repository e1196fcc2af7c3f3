"""What `benchmarks.paired` measures, in one process of either tree: a program, given a group and the inputs' folder."""

from __future__ import annotations

import gc
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

Measures = dict[str, Callable[[], Any]]

SINGLE: Final = "single.log"
"""A log with a record in each batch."""
ENDED: Final = "long-"
"""Logs whose names begin so are read to their ends only."""
BUSY: Final = "busy"

SECONDS = 1.5
AT_LEAST = 3
SHORT = 0.02
IMAGE = (
    "load_wire", "load_indexed", "load_ready", "outage_wire", "changes_wire", "bulk_local_changes",
    "load_local_changes", "diff", "one_change",
)  # fmt: skip


def image(folder: Path) -> Measures:
    """The workloads of `benchmarks.image`."""
    from benchmarks.image.our_side import workloads

    made = workloads(folder)
    return {key: made[key].call for key in IMAGE}


def read(folder: Path) -> Measures:
    """Batches found and checked, large ones and small ones."""
    from benchmarks.image.our_side import parts_of
    from kraftlake.kafka_files.segments.segment import find_log_end
    from kraftlake.kafka_files.stored_file import DiskFile

    made: Measures = {}
    for name in ("snapshot.log", SINGLE):
        content, long = (folder / name).read_bytes(), folder / f"{ENDED}{name}"
        file = DiskFile(path=str(long), name=long.name, size=long.stat().st_size)
        made[f"values of {name}"] = lambda content=content: len(list(parts_of(content)))  # type: ignore[misc]
        made[f"end of {name}"] = lambda file=file: find_log_end(file, 0)  # type: ignore[misc]
    return made


def written(folder: Path) -> Measures:
    """Batches encoded, and an image written as a file and as a snapshot of a lake."""
    from benchmarks.image.our_side import load, parts_of
    from benchmarks.snapshots import file_in_bulk, lake_in_bulk
    from kraftlake.image.topics.topics_image import TopicsImage
    from kraftlake.metadata_log.log import MetadataLog
    from kraftlake.records.batch_values import BatchValues
    from kraftlake.records.encoded_batches import encode_batches
    from kraftlake.replay.loader.fold import image_at
    from kraftlake.replay.reading.open_reader import LakeReader

    made: Measures = {}
    for name in ("snapshot.log", SINGLE):
        parts = [part for part in parts_of((folder / name).read_bytes()) if isinstance(part, BatchValues)]
        made[f"batches of {name} encoded"] = lambda parts=parts: [  # type: ignore[misc]
            len(batch) for part in parts for batch in encode_batches(part)
        ]
    lake = folder / f"{BUSY}-timed"
    log = MetadataLog.open(lake)
    whole = image_at(LakeReader(log), log.end_offset - 1, from_snapshot=False).image
    topics = load((folder / "snapshot.log").read_bytes(), TopicsImage.EMPTY)
    import attrs

    large = attrs.evolve(whole, topics=topics)
    with tempfile.NamedTemporaryFile(delete=False) as file:
        target = Path(file.name)
    made["image written as a file"] = lambda: file_in_bulk(log, large, target)

    def as_snapshot() -> None:
        with tempfile.TemporaryDirectory() as scratch:
            lake_in_bulk(MetadataLog.create(Path(scratch) / "lake", durability="os"), whole, target)

    made["image written into a lake"] = as_snapshot
    return made


def partition_logs(_: Path) -> Measures:
    """A broker's batches: those of a follower's fetches, and a client's records."""
    from benchmarks.partition_log import fetches, ours
    from kraftlake.kernels.batches.batch_columns import HEADER_SIZE
    from kraftlake.replica_manager.logs.batch_run import find_batches
    from kraftlake.replica_manager.logs.client_records import RecordRules, check_records
    from kraftlake.replica_manager.logs.log_batch import log_batches
    from simulator.data_batches import batch

    made: Measures = {}
    for size in (1_000, 16_000):
        chunks = fetches(16, size)
        made[f"fetched batches of {size:,} bytes found"] = lambda chunks=chunks: [  # type: ignore[misc]
            len(find_batches(chunk)[0]) for chunk in chunks
        ]

        def append(chunks: list[bytes] = chunks) -> None:
            with tempfile.TemporaryDirectory() as folder:
                ours(Path(folder), chunks)

        made[f"the same appended and recovered, {size:,}"] = append
    for count in (10, 10_000):
        (whole,) = log_batches(batch(*[b"x" * 100] * count, times=(1_700_000_000_000,) * count))
        data, calls = bytes(whole.data), 20_000 // count
        made[f"{count:,} records of a client checked"] = lambda data=data, count=count, calls=calls: [  # type: ignore[misc]
            check_records(data, HEADER_SIZE, count, 1_700_000_000_000, RecordRules()) for _ in range(calls)
        ]
    return made


def sources(folder: Path) -> Measures:
    """Questions to a lake: typed columns, verify, local changes of one broker."""
    import kraftlake
    from kraftlake.metadata_log.log import MetadataLog
    from kraftlake.records.typed_rows import typed_rows, typed_schema

    lake = folder / f"{BUSY}-timed"
    rows, end = MetadataLog.open(lake).rows(), MetadataLog.open(lake).end_offset
    return {
        "typed columns, all types": lambda: typed_rows(rows, typed_schema()),
        "typed columns, changes": lambda: typed_rows(
            rows, typed_schema("PARTITION_CHANGE_RECORD"), "PARTITION_CHANGE_RECORD"
        ),
        "local changes of a broker, of a lake": lambda: kraftlake.open(lake).local_changes(1, -1, end - 1),
        "image of a lake's log": lambda: kraftlake.open(lake).image(from_snapshot=False),
        "verify of a lake": lambda: kraftlake.open(folder / f"{BUSY}-warm").verify(),
    }


def tables(folder: Path) -> Iterator[tuple[str, float, float]]:
    """The tables of each job, once, after a small lake's."""
    from benchmarks.tables import WHATS, run

    for what, text in WHATS.items():
        for lake in (f"{BUSY}-warm", f"{BUSY}-timed"):
            with tempfile.TemporaryDirectory() as scratch:
                copy = Path(scratch) / "lake"
                copy.mkdir()
                shutil.copytree(folder / lake / "log", copy / "log")
                gc.collect()
                cpu, wall = time.process_time(), time.perf_counter()
                run(what, copy)
                cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        yield f"tables: {text}", cpu, wall


def best(run: Callable[[], Any]) -> tuple[float, float]:
    """The least CPU and wall seconds of a call."""
    start = time.perf_counter()
    run()
    first = time.perf_counter() - start
    start = time.perf_counter()
    run()
    calls = max(1, int(SHORT / min(first, time.perf_counter() - start)))
    taken = []
    end = time.perf_counter() + SECONDS
    while len(taken) < AT_LEAST or time.perf_counter() < end:
        gc.collect()
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(calls):
            run()
        taken.append((time.process_time() - cpu, time.perf_counter() - wall))
    cpus, walls = zip(*taken, strict=True)
    return min(cpus) / calls, min(walls) / calls


GROUPS: Final = ("image", "read", "written", "partition_logs", "sources", "tables")


def main(group: str, folder: Path) -> None:
    from kraftlake.runtime.process_setup import configure_process

    configure_process()
    made = globals()[group](folder)
    if isinstance(made, dict):
        made = ((name, *best(run)) for name, run in made.items())
    print(json.dumps({name: times for name, *times in made}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
