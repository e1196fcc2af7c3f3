"""What a user waits for, and how that compares with Kafka's own dump tool on the same files.

    python -m benchmarks [--runs N] [--json]

The dump tool is that of Kafka 4.3.1 (that of 4.4.0 was published without a part it needs), resolved once by Spark's
resolver. Everything is a whole process, start-up included, as a person at a terminal meets it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.processes import Timing, time_in_turn
from kraftlake.spark_jobs.jars import spark_jars
from kraftlake.spark_jobs.java import java_home

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "samples" / "kafka-4.4" / "log" / "__cluster_metadata-0"
CHECKPOINT = SAMPLE / "00000000000000004593-0000000002.checkpoint"
DUMP_TOOL = ("org.apache.kafka:kafka-tools:4.3.1", "org.apache.kafka:kafka-storage:4.3.1")
KRAFTLAKE = str(Path(sys.executable).with_name("kraftlake"))


def dump_tool(*files: Path) -> list[str]:
    import pyspark

    jars = [str(jar) for jar in spark_jars(DUMP_TOOL)]
    class_path = ":".join([*jars, str(Path(pyspark.__file__).parent / "jars" / "*")])
    names = ",".join(str(file) for file in files)
    main = "org.apache.kafka.tools.DumpLogSegments"
    return [str(java_home() / "bin" / "java"), "-cp", class_path, main, "--cluster-metadata-decoder", "--files", names]


def measure(runs: int) -> dict[str, Timing]:
    segments = sorted(SAMPLE.glob("*.log"))
    with tempfile.TemporaryDirectory() as scratch:
        lake = Path(scratch) / "lake"
        out = Path(scratch) / "out"
        commands = {
            "kraftlake --help": [KRAFTLAKE, "--help"],
            "kraftlake image FILE.checkpoint": [KRAFTLAKE, "image", str(CHECKPOINT)],
            "kraftlake image FILE.checkpoint --json": [KRAFTLAKE, "image", str(CHECKPOINT), "--json"],
            "Kafka's dump tool, the same file": dump_tool(CHECKPOINT),
            "kraftlake log DIRECTORY --json": [KRAFTLAKE, "log", str(SAMPLE), "--json"],
            "Kafka's dump tool, its segments": dump_tool(*segments),
            "kraftlake image DIRECTORY --json": [KRAFTLAKE, "image", str(SAMPLE), "--json"],
            "kraftlake import DIRECTORY LAKE (nothing new)": [KRAFTLAKE, "import", str(SAMPLE), str(lake)],
            "kraftlake image LAKE --json": [KRAFTLAKE, "image", str(lake), "--json"],
        }
        return time_in_turn(commands, runs, out)


RATIOS = (
    ("kraftlake image FILE.checkpoint --json", "Kafka's dump tool, the same file"),
    ("kraftlake log DIRECTORY --json", "Kafka's dump tool, its segments"),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=7, help="counted runs of each command")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    timings = measure(options.runs)
    ratios = {f"{ours} / {peer}": timings[ours].median / timings[peer].median for ours, peer in RATIOS}
    if options.json:
        rows = {
            name: {"median_s": t.median, "min_s": t.least, "cpu_median_s": t.median_cpu} for name, t in timings.items()
        }
        print(json.dumps({"timings": rows, "ratios": ratios}, indent=1))
        return
    print(f"{'whole process, seconds':50} {'median':>8} {'min':>8} {'cpu':>8}")
    for name, t in timings.items():
        print(f"{name:50} {t.median:8.3f} {t.least:8.3f} {t.median_cpu:8.3f}")
    print()
    for name, ratio in ratios.items():
        print(f"{ratio:6.2f}  {name}")


if __name__ == "__main__":
    main()
