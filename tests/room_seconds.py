"""The seconds that each room's tests take, printed beside the room's budget at the end of a run.

A room over its budget fails nothing, for other work on the machine makes tests slower. What is over it on an idle
machine becomes cheaper, or its larger form moves to `make test-long`.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

BUDGET = {
    "api": 5,
    "cli": 90,
    "controller": 80,
    "delta": 20,
    "diagnosis": 50,
    "docs": 40,
    "generate": 15,
    "image": 15,
    "interop": 100,
    "kafka_files": 15,
    "kernels": 50,
    "metadata_log": 60,
    "packaging": 60,
    "planted": 2,
    "protocol": 50,
    "publisher": 10,
    "records": 10,
    "replay": 100,
    "replica_manager": 70,
    "runtime": 10,
    "server": 170,
    "settings": 15,
    "simulation": 40,
    "spark_jobs": 250,
    "tables": 90,
    "tests": 20,
}
"""Seconds of a worker by room on an idle machine with two cores: 24 minutes in all are 12 with two workers."""


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
