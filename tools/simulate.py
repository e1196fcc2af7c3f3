"""Simulates a number of hours of clusters: `make simulate HOURS=10000`; a run ends after 90 minutes.

The hours of one tree of simulator/ and the rooms of kraftlake/ that it uses are kept, a line each, in
build/simulated/TREE.jsonl: the next run goes on with the seeds that are missing. The files of a history are in memory
where the machine has plenty of it. At the end stands how many states each tenth of the hours added to those before (see
simulator/states.py): where the last tenths add next to none, more hours of these faults will hardly show more.

`--adopt FILE` takes over the hours of an earlier tree, after a change that few histories notice: one in fifty of their
seeds is simulated again, of which nine in ten have to make the same history. The hours that were simulated again count
as those of this tree. Hours that failed there are simulated anew.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from random import Random
from tempfile import TemporaryFile
from threading import Lock, Timer
from typing import Any

from tests.files_in_memory import choose_files_in_memory

ROOT = Path(__file__).resolve().parents[1]
UNUSED_ROOMS = ("api", "cli", "diagnosis", "generate", "spark_jobs")
"""The rooms of kraftlake/ of which a history loads nothing."""
GROUP = 20
"""The seeds of one process, which begins with a second of imports."""
SIMULATOR = (sys.executable, "-m", "simulator")
REPEATED = 50
"""Of how many hours of an earlier tree one is repeated."""
SAME = 0.9
"""The least share of these that make the same history."""
SECONDS_AN_HOUR = 120
"""How long a simulated hour may take, which takes about six seconds of CPU on a busy machine."""
Take = Callable[[dict[str, Any]], bool]
"""Takes an hour, and says whether more are wanted."""


def main() -> int:
    """Run, keep and show; the exit code is 1 where an hour failed, and 3 where hours are left for the next run."""
    parser = argparse.ArgumentParser(prog="python -m tools.simulate", description=__doc__)
    parser.add_argument("hours", type=_count)
    parser.add_argument("--minutes", type=float, default=90.0, help="after which no more hours begin")
    parser.add_argument("--processes", type=_count, default=os.cpu_count(), help="at a time; by default one a core")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "simulated")
    parser.add_argument("--adopt", type=Path, metavar="FILE", help="take over the hours of an earlier tree")
    parser.add_argument("--length", type=float, default=1.0, help="of a history, in simulated hours")
    asked = parser.parse_args()
    if asked.adopt is not None and not asked.adopt.is_file():
        parser.error(f"--adopt: there is no file {asked.adopt}")
    kept = asked.folder / f"{tree()}.jsonl"
    kept.parent.mkdir(parents=True, exist_ok=True)
    choose_files_in_memory()
    done = read(kept)
    end = time.monotonic() + asked.minutes * 60
    writing = Lock()

    def take(hour: dict[str, Any]) -> bool:
        with writing:
            done[hour["seed"]] = hour
            lines.write(json.dumps(hour) + "\n")
            lines.flush()
            show_progress(len(done), asked.hours)
        return time.monotonic() < end

    def run(seeds: list[int]) -> None:
        if time.monotonic() < end:
            simulate(seeds, asked.length, take, (*SIMULATOR, "--dense"))

    with kept.open("a") as lines, ThreadPoolExecutor(asked.processes) as pool:
        if asked.adopt is not None:
            for hour in adopted(asked.adopt, asked.length, asked.processes):
                if hour["seed"] not in done:  # what this tree has simulated itself counts, a failure above all
                    take(hour)
        missing = [seed for seed in range(1, asked.hours + 1) if seed not in done]
        list(pool.map(run, [missing[at : at + GROUP] for at in range(0, len(missing), GROUP)]))
    if sys.stderr.isatty():
        print(file=sys.stderr)
    found = [done[seed] for seed in sorted(done) if seed <= asked.hours]
    print(summary(found, asked.hours, kept))
    return 1 if any("failure" in hour for hour in found) else 3 if len(found) < asked.hours else 0


def show_progress(done: int, wanted: int) -> None:
    """Show the number of hours that are done: on a terminal in one line, elsewhere a line for each hundred."""
    if sys.stderr.isatty():
        print(f"\r{done:,} of {wanted:,} hours", end="", file=sys.stderr, flush=True)
    elif done % 100 == 0:
        print(f"{done:,} of {wanted:,} hours", file=sys.stderr, flush=True)


def counts(hour: dict[str, Any]) -> bool:
    """Whether enough happened in an hour that did not fail."""
    return bool(hour["records"] >= 1_000 and sum(hour["faults"].values()) >= 20 and hour["leader_moves"] >= 5)


def _count(text: str) -> int:
    """A number of at least one."""
    if text.isdecimal() and int(text):
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")


def tree() -> str:
    """The name of what is simulated. Ends the program where it was changed since the last commit."""
    unused = [f"kraftlake/{room}" for room in UNUSED_ROOMS]
    if git("status", "--porcelain", "--", "kraftlake", "simulator", *(f":!{room}" for room in unused)):
        raise SystemExit(
            "kraftlake/ or simulator/ has changes that are not committed: their hours would count for nothing."
        )
    listed = git("ls-tree", "HEAD", "kraftlake/", "simulator").splitlines()
    return sha256("\n".join(one for one in listed if one.partition("\t")[2] not in unused).encode()).hexdigest()[:16]


def git(*words: str) -> str:
    """What git says of the repository."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def read(kept: Path) -> dict[int, dict[str, Any]]:
    """The hours of earlier runs by seed; a line that was cut off by the end of a run is none."""
    found = {}
    for line in kept.read_text().splitlines() if kept.exists() else ():
        if line.endswith("}"):
            hour = json.loads(line)
            found[hour["seed"]] = hour
    return found


def adopted(
    earlier: Path, length: float, processes: int, program: Sequence[str] = (*SIMULATOR, "--dense")
) -> list[dict[str, Any]]:
    """The hours of an earlier tree that did not fail, each with its `tree`, and in place of some those of this tree.

    Ends the program where this tree makes too many other histories of the seeds in the sample, and where the file has
    other lines.
    """
    try:
        hours = {seed: hour for seed, hour in read(earlier).items() if "failure" not in hour}
        traces = {seed: hour["trace"] for seed, hour in hours.items()}
    except (ValueError, KeyError, TypeError):
        raise SystemExit(f"{earlier} has lines that are no simulated hours: name the .jsonl of a tree.") from None
    sample = Random(earlier.stem).sample(sorted(hours), -(-len(hours) // REPEATED))
    again: dict[int, dict[str, Any]] = {}

    def take(hour: dict[str, Any]) -> bool:
        again[hour["seed"]] = hour
        return True

    with ThreadPoolExecutor(processes) as pool:
        parts = [sample[at::processes] for at in range(processes)]
        list(pool.map(lambda part: simulate(part, length, take, program), parts))
    others = sorted(seed for seed, hour in again.items() if hour.get("trace") != traces[seed])
    differing = f"{len(others):,} of {len(again):,} hours that were simulated again make another history"
    print(f"{differing}{f', the first of seed {others[0]}' if others else ''}", file=sys.stderr)
    if len(again) - len(others) < SAME * len(again):
        raise SystemExit(f"{differing} than in {earlier}: none of its hours is taken over.")
    return [again.get(seed) or {"tree": earlier.stem} | hour for seed, hour in hours.items()]


def simulate(
    seeds: Sequence[int],
    length: float,
    take: Take,
    program: Sequence[str] = SIMULATOR,
    seconds: float = SECONDS_AN_HOUR,
) -> None:
    """Simulate hours in a process of their own, one after the other, while `take`, which gets each hour, is true.

    A process that hangs, crashes or simulates other hours is a failure of the hour that was due, or of the last one.
    `seconds` is how long an hour may take.
    """
    left = list(seeds)
    has_failed = False

    def take_next(hour: dict[str, Any]) -> bool:
        nonlocal has_failed
        if not left or hour.get("seed") != left[0]:
            raise ValueError(f"the hour of seed {hour.get('seed')} was not due")
        left.pop(0)
        has_failed |= "failure" in hour
        return take(hour)

    while left:
        has_failed = False
        options = ["--hours", str(length), *map(str, left)]
        code, why = run_process(options, take_next, program=program, seconds=seconds * len(left))
        if code is None or (not left and code == has_failed):
            return
        seed = left.pop(0) if left else seeds[-1]
        if not take({"seed": seed, "failure": f"the process: exit code {code}: {why}"}):
            return


def run_process(
    options: Sequence[str], take: Take, *, seconds: float, program: Sequence[str] = SIMULATOR
) -> tuple[int | None, str]:
    """Run a simulator, which is killed after some seconds, and give each of its hours to `take`, as long as it is true.

    Returns the exit code, None where `take` was not true, and the end of the errors of the process and of `take`.
    """
    with (
        TemporaryFile("w+") as errors,
        subprocess.Popen(
            [*program, "--json", *options], cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdout is not None
        watch = Timer(seconds, process.kill)
        watch.start()
        fault_words = ""
        try:
            for line in process.stdout:
                if not line.endswith("}\n"):
                    break  # cut off
                if not take(json.loads(line)):
                    return None, ""
            process.wait()
        except ValueError as fault:
            fault_words = str(fault)
        finally:
            watch.cancel()
            process.kill()
        process.wait()
        errors.seek(0)
        return process.returncode or int(bool(fault_words)), errors.read()[-2000:] + fault_words


def summary(hours: Sequence[dict[str, Any]], wanted: int, kept: Path) -> str:
    """What came of the hours, and how many new states each tenth of them has."""
    failed = [hour for hour in hours if "failure" in hour]
    lines = [f"{len(hours):,} of {wanted:,} hours are done, {len(failed)} failed ({kept})"]
    lines += [f"seed {hour['seed']}: {hour['failure'].splitlines()[0]}" for hour in failed]
    lines.append(
        f"{sum('failure' not in hour and counts(hour) for hour in hours):,} of them had enough happen to count"
    )
    ended = sum(bool(hour.get("ended_early")) for hour in hours)
    if ended:
        lines.append(f"{ended:,} ended early, where Kafka promises nothing any more")
    earlier = sum("tree" in hour for hour in hours)
    if earlier:
        lines.append(
            f"{earlier:,} are of earlier trees; one in {REPEATED} was simulated again, to compare the histories"
        )
    seconds = [hour["cpu_seconds"] for hour in hours if "cpu_seconds" in hour]
    if seconds:
        lines.append(f"{sum(seconds) / len(seconds):.1f} CPU seconds an hour")
    known: set[int] = set()
    for part in range(10):
        some = hours[len(hours) * part // 10 : len(hours) * (part + 1) // 10]
        before = len(known)
        known |= states(some)
        if some:
            lines.append(f"seeds {some[0]['seed']:>6,} to {some[-1]['seed']:>6,}: {len(known) - before:>6,} new states")
    return "\n".join(lines)


def states(hours: Iterable[dict[str, Any]]) -> set[int]:
    """All states of some hours."""
    return {state for hour in hours for state in hour.get("states", ())}


if __name__ == "__main__":
    sys.exit(main())
