"""Another checkout and this one, in turn: `python -m benchmarks.paired OTHER [--only GROUP …] [--rounds N] [--json]`.

Each group of `paired_measures.GROUPS` is a process of its own in each tree, in turn, round by round; a process warms
each measure up and gives its best of some runs. A ratio is of CPU time, this tree / the other: below 1, this one is
faster. What this tree's kernels are compiled into has to be built before.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.bulk_import import batches
from benchmarks.folders import made_folder
from benchmarks.image.kafka_side import KafkaSide
from benchmarks.lakes import lake_of
from benchmarks.paired_measures import BUSY, ENDED, GROUPS, SINGLE
from benchmarks.processes import as_installed

ROOT = Path(__file__).resolve().parents[1]
MEASURES = Path(__file__).with_name("paired_measures.py")
LARGE_LOG = 80 << 20
"""Bytes of the logs whose ends are found."""


def make_inputs(folder: Path, topics: int, records: int) -> None:
    """The logs and lakes that the measures read, made where they are not there."""
    if not (folder / "snapshot.log").exists():
        with KafkaSide("6g") as java:
            java.ask_once("gen", topics, records, folder)
    if not (folder / SINGLE).exists():
        (folder / SINGLE).write_bytes(b"".join(batches("single", records)))
    for name in ("snapshot.log", SINGLE):
        file = folder / f"{ENDED}{name}"
        if not file.exists():
            content = (folder / name).read_bytes()
            file.write_bytes(content * (1 + LARGE_LOG // len(content)))
    for name, size in (("warm", 20_000), ("timed", records)):
        lake = lake_of("busy", folder, size, size // 10)
        link = folder / f"{BUSY}-{name}"
        if not link.exists():
            link.symlink_to(lake.name)


def run_group(tree: Path, group: str, folder: Path, scratch: Path) -> dict[str, list[float]]:
    """CPU and wall seconds of each measure of a group, of the code in a tree."""
    environment = os.environ | as_installed(scratch / tree.name) | {"PYTHONPATH": str(tree)}
    command = [sys.executable, "-P", str(MEASURES), group, str(folder)]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{group} failed in {tree}: {done.stderr[-2000:]}")
    seconds: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return seconds


def summary(rounds: list[tuple[dict[str, list[float]], dict[str, list[float]]]]) -> list[dict[str, Any]]:
    """A row for each measure of a group: the least seconds of both trees, and the ratios."""
    rows = []
    for name in rounds[0][0]:
        others, ours = ([each[side][name][0] for each in rounds] for side in (0, 1))
        walls = [min(each[side][name][1] for each in rounds) for side in (0, 1)]
        ratios = [mine / other for mine, other in zip(ours, others, strict=True)]
        rows.append(
            {
                "measure": name, "other_s": min(others), "ours_s": min(ours), "ratio_of_least": min(ours) / min(others),
                "median_ratio": statistics.median(ratios), "wall_ratio": walls[1] / walls[0],
            }
        )  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paired", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("other", type=Path, help="the other checkout")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS), help="some groups")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--topics", type=int, default=12_500, help="of the image, 10 partitions each")
    parser.add_argument("--records", type=int, default=300_000, help="of the other logs")
    parser.add_argument("--folder", type=made_folder, help="where logs and lakes are kept")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or made_folder(f"{scratch}/inputs")
        make_inputs(folder, options.topics, options.records)
        trees = (options.other.resolve(), ROOT)
        for group in options.only:
            rounds = []
            for _ in range(options.rounds):
                other, ours = (run_group(tree, group, folder, Path(scratch)) for tree in trees)
                rounds.append((other, ours))
            rows += summary(rounds)
            print(f"{group} measured", file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'ms of CPU':50} {'other':>9} {'ours':>9} {'ratio':>6} {'median':>7} {'of wall':>8}")
    for row in rows:
        times = f"{row['other_s'] * 1e3:9.3f} {row['ours_s'] * 1e3:9.3f}"
        ratios = f"{row['ratio_of_least']:6.2f} {row['median_ratio']:7.2f} {row['wall_ratio']:8.2f}"
        print(f"{row['measure']:50} {times} {ratios}")
    print(f"{'median of the ratios':70} {statistics.median(row['ratio_of_least'] for row in rows):6.2f}")


if __name__ == "__main__":
    main()
