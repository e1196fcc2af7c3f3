"""What importing a large log costs, beside Kafka's own dump tool reading the same file: whole processes, in turn.

    python -m benchmarks.bulk_import [--records N] [--runs N] [--mix controller|single] [--json]

The mix "controller" is what a controller of a growing cluster writes, by records: 70 % in batches of 100 that create a
topic with 99 partitions of three replicas, 10 % in batches of ten partition changes (a broker comes or goes), 5 % as
single partition changes, 15 % as single no-ops, in random order. "single" are no-ops and partition changes, one a
batch: the worst case. `kraftlake import` makes a new lake each time; the dump tool writes to a file.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.__main__ import KRAFTLAKE, dump_tool
from benchmarks.folders import made_folder
from benchmarks.processes import run_once
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.control_records import LeaderChangeMessage
from kraftlake.records.metadata_records import NoOpRecord, PartitionChangeRecord, PartitionRecord, TopicRecord
from kraftlake.records.serde import AnyMessage, ApiMessageAndVersion
from kraftlake.records.uuid import Uuid

TIME = 1_700_000_000_000
MIXES = {"controller": (("topic", 0.7), ("broker", 0.1), ("change", 0.05), ("no-op", 0.15)),
         "single": (("change", 0.5), ("no-op", 0.5))}  # fmt: skip
RECORDS = {"topic": 100, "broker": 10, "change": 1, "no-op": 1}


def messages(kind: str, topic_id: Uuid, number: int, chance: random.Random) -> list[AnyMessage]:
    """The records of one batch of a kind."""
    brokers = (number % 90, number % 90 + 1, number % 90 + 2)
    if kind == "no-op":
        return [NoOpRecord()]
    if kind == "topic":
        return [
            TopicRecord(name=f"topic-{number}", topic_id=topic_id),
            *(
                PartitionRecord(partition_id=partition, topic_id=topic_id, replicas=brokers, isr=brokers,
                                leader=brokers[0], leader_epoch=0, partition_epoch=0)
                for partition in range(RECORDS[kind] - 1)
            ),
        ]  # fmt: skip
    return [
        PartitionChangeRecord(partition_id=chance.randrange(99), topic_id=topic_id, leader=brokers[1], isr=brokers[1:])
        for _ in range(RECORDS[kind])
    ]


def batches(mix: str, records: int, seed: int = 1) -> Iterator[bytes]:
    """A log of about so many records, batch by batch, as its file has them."""
    chance = random.Random(seed)
    kinds = [kind for kind, share in MIXES[mix] for _ in range(round(records * share) // RECORDS[kind])]
    chance.shuffle(kinds)
    yield encode_batch(RecordBatch.control_of(0, 1, TIME, [LeaderChangeMessage(version=0, leader_id=1)]))
    offset = 1
    topic_id = Uuid(chance.randbytes(16))
    for number, kind in enumerate(kinds):
        if kind == "topic" or number % 100 == 0:
            topic_id = Uuid(chance.randbytes(16))
        made = [ApiMessageAndVersion(message, 0) for message in messages(kind, topic_id, number, chance)]
        yield encode_batch(RecordBatch.of(offset, 1, TIME + 5 * number, made))
        offset += len(made)


def measure(folder: Path, mix: str, records: int, runs: int) -> dict[str, dict[str, float]]:
    source = folder / "__cluster_metadata-0"
    source.mkdir()
    log = source / "00000000000000000000.log"
    with log.open("wb") as file:
        count = 0
        for batch in batches(mix, records):
            file.write(batch)
            count += 1
    taken: dict[str, list[tuple[float, float]]] = {"kraftlake import": [], "Kafka's dump tool": []}
    lake, out = folder / "lake", folder / "out"
    commands = {
        "kraftlake import": [KRAFTLAKE, "import", str(source), str(lake)],
        "Kafka's dump tool": dump_tool(log),
    }
    for turn in range(runs + 1):
        for name, command in commands.items():
            shutil.rmtree(lake, ignore_errors=True)
            seconds = run_once(command, out)
            if turn:  # the first one warms the file's cache
                taken[name].append(seconds)
            if lake.exists():
                size = sum(path.stat().st_size for path in lake.rglob("*") if path.is_file())
            say({"turn": turn, "what": name, "wall_s": round(seconds[0], 2), "cpu_s": round(seconds[1], 2)})
    rows = {}
    for name, values in taken.items():
        wall = [value for value, _ in values]
        rows[name] = {
            "median_s": statistics.median(wall),
            "least_s": min(wall),
            "cpu_s": min(cpu for _, cpu in values),
            "records_per_s": records / min(wall),
        }
    rows["kraftlake import"]["bytes_a_record"] = size / records
    rows["Kafka's dump tool"]["bytes_a_record"] = log.stat().st_size / records
    rows["kraftlake import"]["batches"] = count
    return rows


def say(what: object) -> None:
    print(json.dumps(what), file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bulk_import", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3, help="counted runs of each, after one that isn't")
    parser.add_argument("--mix", choices=MIXES, default="controller")
    parser.add_argument("--folder", type=made_folder, help="where it all lies; by default among the temporary files")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kraftlake-import-", dir=options.folder) as folder:
        begin = time.perf_counter()
        rows = measure(Path(folder), options.mix, options.records, options.runs)
        say({"all_s": round(time.perf_counter() - begin)})
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{options.records:,} records, mix {options.mix}, {rows['kraftlake import']['batches']:,.0f} batches")
    print(f"{'whole process':24} {'median s':>9} {'least s':>9} {'cpu s':>9} {'records/s':>12} {'bytes/record':>13}")
    for name, row in rows.items():
        print(f"{name:24} {row['median_s']:9.2f} {row['least_s']:9.2f} {row['cpu_s']:9.2f} "
              f"{row['records_per_s']:12,.0f} {row['bytes_a_record']:13.1f}")  # fmt: skip
    ours, theirs = rows.values()
    print(f"{ours['least_s'] / theirs['least_s']:6.2f}  kraftlake import / Kafka's dump tool, least")


if __name__ == "__main__":
    main()
