"""Samples of both sides, one after the other: Java, ours, Java, ours, …, so that a busy machine slows both."""

from __future__ import annotations

import gc
import statistics
import time

import attrs

from benchmarks.image.goals import Workload
from benchmarks.image.kafka_side import KafkaSide
from benchmarks.image.our_side import OurWorkload, numbers

WARM_UP_SECONDS = 2.0
WARM_UP_AT_LEAST = 2
CHAIN = 500
"""Calls before the results of small workloads are compared: each goes on from the one before."""


@attrs.frozen
class Samples:
    """Nanoseconds a call of each sample."""

    java: tuple[float, ...]
    ours: tuple[float, ...]
    java_cpu: tuple[float, ...]
    ours_cpu: tuple[float, ...]

    @property
    def least(self) -> float:
        return min(self.ours) / min(self.java)

    @property
    def median(self) -> float:
        return statistics.median(self.ours) / statistics.median(self.java)


class DifferentResultError(Exception):
    """The two sides did not compute the same."""


def compare(workload: Workload, java: KafkaSide, ours: OurWorkload) -> None:
    """Raises DifferentResultError unless both sides compute the same."""
    calls = 1 if workload.loops == 1 else CHAIN
    theirs = java.ask("check", workload.java, calls)
    for _ in range(calls - 1):
        ours.call()
    mine = numbers(ours.call())
    if mine != theirs:
        raise DifferentResultError(f"{workload.key}: Java computed {theirs}, we {mine}")


def measure(workload: Workload, java: KafkaSide, ours: OurWorkload, runs: int, seconds: float) -> Samples:
    """At most `runs` samples of each side, fewer (but three) when they take longer than `seconds` together."""
    warm = time.monotonic() + WARM_UP_SECONDS
    turn = 0
    while turn < WARM_UP_AT_LEAST or time.monotonic() < warm:
        java.ask("run", workload.java, workload.loops)
        turn += 1
    _sample(ours, workload.loops)
    end = time.monotonic() + seconds
    taken: list[tuple[float, float, float, float]] = []
    while len(taken) < 3 or (len(taken) < runs and time.monotonic() < end):
        theirs = java.ask("run", workload.java, workload.loops)
        wall, cpu = _sample(ours, workload.loops)
        taken.append((theirs["ns"], wall, theirs["cpu_ns"], cpu))
    java_ns, ours_ns, java_cpu, ours_cpu = zip(*taken, strict=True)
    return Samples(java_ns, ours_ns, java_cpu, ours_cpu)


def _sample(ours: OurWorkload, loops: int) -> tuple[float, float]:
    """Wall and CPU nanoseconds a call; what a call needs anew is made outside of the time."""
    gc.collect()
    run = ours.run
    wall = cpu = 0
    if ours.prepare is None:
        cpu, wall = time.process_time_ns(), time.perf_counter_ns()
        for _ in range(loops):
            run()
        wall, cpu = time.perf_counter_ns() - wall, time.process_time_ns() - cpu
    else:
        for _ in range(loops):
            prepared = ours.prepare()
            cpu_start, start = time.process_time_ns(), time.perf_counter_ns()
            run(prepared)
            wall += time.perf_counter_ns() - start
            cpu += time.process_time_ns() - cpu_start
    return wall / loops, cpu / loops
