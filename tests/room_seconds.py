"""The seconds that each room's tests take, printed beside the room's budget at the end of a run.

A room over its budget fails nothing, for other work on the machine makes tests slower. What is over it on an idle
machine becomes cheaper, or its larger form moves to `make test-long`.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

BUDGET = {
    "api": 8,
    "cli": 180,
    "controller": 110,
    "delta": 15,
    "diagnosis": 90,
    "docs": 90,
    "fuzzing": 20,
    "generate": 8,
    "image": 20,
    "interop": 130,
    "kafka_files": 30,
    "kernels": 80,
    "metadata_log": 110,
    "ops": 20,
    "packaging": 90,
    "planted": 2,
    "protocol": 80,
    "publisher": 5,
    "records": 50,
    "replay": 140,
    "replica_manager": 55,
    "runtime": 20,
    "server": 230,
    "settings": 20,
    "simulation": 60,
    "spark_jobs": 310,
    "tables": 120,
    "tests": 30,
}
"""Seconds by room on an idle machine with two cores: 35 minutes in all are 12 with three workers."""


class RoomSeconds:
    """Sums what the tests of each room take; with workers, in the process that has their reports."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._tests: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase of a test."""
        room = room_of(report.nodeid)
        self._seconds[room] += report.duration
        self._tests[room] += report.when == "call"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a line for each room and their sum, where there are several."""
        if len(self._seconds) < 2:
            return
        terminalreporter.section("seconds of the rooms")
        for room, seconds in sorted(self._seconds.items()):
            terminalreporter.write_line(line(room, self._tests[room], seconds, BUDGET[room]))
        budget = sum(BUDGET[room] for room in self._seconds)
        terminalreporter.write_line(line("sum", self._tests.total(), sum(self._seconds.values()), budget))


def room_of(nodeid: str) -> str:
    """The folder of a test in `tests`; `tests` itself for the files beside the rooms."""
    below = nodeid.partition("::")[0].split("/")[1:]
    return below[0] if len(below) > 1 else "tests"


def line(room: str, tests: int, seconds: float, budget: int) -> str:
    """A line of the table, with a mark where the budget is not kept."""
    return f"{room:16} {tests:6,} tests {seconds:8.1f} s of {budget:5} s{'  over' if seconds > budget else ''}"
