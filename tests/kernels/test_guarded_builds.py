"""The kernels stay within their buffers, whatever bytes come: their tests and damaged samples on guarded builds."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.kernels.guarded_builds import GuardedBuild

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
MUTANTS = 60 if LONG else 5
MUTANTS_A_PROCESS = 50  # a sanitized process keeps 10 MB of each
CALLERS = (
    "tests/records",
    "tests/delta/topics",
    "tests/image/topics",
    "tests/kafka_files/segments",
    "tests/replica_manager/logs",
    "tests/tables/events",
    "tests/tables/history",
    "tests/tables/local_changes",
    "tests/tables/metrics",
)
BEYOND = """
from array import array
from kraftlake.kernels import compiled
one, out = array("q", [0]), array("q", [0])
compiled.measure_sections(one, one, one, array("q", [100_000]), out)
"""
# A sanitizer writes what it found to file descriptor 2 and ends the process, so that pytest must not capture that.
PYTEST = (
    *("-m", "pytest", "-q", "-p", "no:cacheprovider", "--capture=sys", "--ignore-glob", "tests/kernels/test_*.py"),
    *("-m", "not spark"),  # a JVM does not start with a sanitizer's library before it
)

pytestmark = pytest.mark.xdist_group("guarded builds")


def passes(done: subprocess.CompletedProcess[str], at_least: str) -> None:
    # A sanitizer says first what it found, then where: a stack of a hundred lines.
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[:6000] + done.stderr[6000:][-3000:]
    assert at_least in done.stdout


def passes_with_damaged_samples(build: GuardedBuild) -> None:
    for first in range(0, MUTANTS, MUTANTS_A_PROCESS):
        count = min(MUTANTS_A_PROCESS, MUTANTS - first)
        passes(build.run("-m", "tests.kernels.mutants", first, count), f"mutant {first + count - 1}\n")


def test_the_sanitizers_end_a_process_that_reads_beyond_a_buffer(sanitized_build: GuardedBuild) -> None:
    done = sanitized_build.run("-c", BEYOND)
    assert done.returncode != 0
    assert "AddressSanitizer: heap-buffer-overflow" in done.stderr


def test_the_sanitizers_find_nothing_in_the_kernels_tests(sanitized_build: GuardedBuild) -> None:
    done = sanitized_build.run(*PYTEST, "tests/kernels")
    passes(done, " passed")


def test_the_sanitizers_find_nothing_in_damaged_samples(sanitized_build: GuardedBuild) -> None:
    passes_with_damaged_samples(sanitized_build)


@pytest.mark.skipif(not LONG, reason="make test-long: the sanitizers look for the same in make test")
class TestChecked:
    def test_an_index_beyond_a_buffer_is_an_error(self, checked_build: GuardedBuild) -> None:
        assert "IndexError: Out of bounds" in checked_build.run("-c", BEYOND).stderr

    def test_no_test_of_the_kernels_or_their_callers_finds_one(self, checked_build: GuardedBuild) -> None:
        passes(
            checked_build.run(*PYTEST, "tests/kernels", *CALLERS),
            " passed",
        )

    def test_no_damaged_sample_finds_one(self, checked_build: GuardedBuild) -> None:
        passes_with_damaged_samples(checked_build)
