"""Whatever bytes come from outside, they are read or refused: kept inputs, a short run of the fuzzer, a long one."""

from __future__ import annotations

import base64
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fuzzing.corpus import FOLDER, kept_inputs
from tests.fuzzing.long_run import MINUTES, PLAIN, fuzz_target, run_fuzzer
from tests.fuzzing.target import Target
from tests.fuzzing.targets import OF_KERNELS, TARGETS
from tests.kernels.guarded_builds import GuardedBuild, build_guided
from tests.kernels.test_guarded_builds import BEYOND
from tests.wheel import REPOSITORY, made_once

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
needs_the_fuzzer = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="atheris has wheels for x86-64 alone, and builds with clang elsewhere"
)


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_kept_inputs_are_read_or_refused(name: str) -> None:
    inputs = [*TARGETS[name].seeds(), *kept_inputs(name)]
    assert inputs
    for data in inputs:
        TARGETS[name].check(data)


FOUND = [line.split() for line in (FOLDER / "found.txt").read_text("ascii").splitlines()]
"""Inputs that were once neither read nor refused: a target, and the bytes in base64."""


@pytest.mark.parametrize(("name", "data"), FOUND)
def test_what_was_found_stays_mended(name: str, data: str) -> None:
    TARGETS[name].check(base64.b64decode(data))


def test_an_input_that_takes_long_is_found_by_its_cpu_time_and_not_by_a_clock() -> None:
    def spin(data: bytes) -> None:
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass

    Target(lambda data: time.sleep(0.05), (), list, most_seconds=0.02).check(b"")
    with pytest.raises(AssertionError, match=r"0 bytes take 0\.0 CPU seconds"):
        Target(spin, (), list, most_seconds=0.02).check(b"")


@needs_the_fuzzer
@pytest.mark.skipif(LONG, reason="the long run of each target takes its place")
def test_a_short_run_of_all_targets_finds_nothing(tmp_path: Path) -> None:
    said = run_fuzzer(PLAIN, ",".join(TARGETS), "-seed=1", "-runs=5000", f"-artifact_prefix={tmp_path}/")
    assert "stat::number_of_executed_units" in said


@needs_the_fuzzer
def test_the_fuzzer_finds_a_fault_that_is_planted(tmp_path: Path) -> None:
    planted = (  # in the module that the door looks at first, so that no other one is imported
        "from tests.fuzzing import __main__ as door, of_logs\n"
        "from tests.fuzzing.target import Target\n"
        "def faulty(data):\n"
        "    assert data[:2] != b'\\1\\2'\n"
        "of_logs.TARGETS['batches'] = Target(faulty, (), lambda: [b'\\0\\0'])\n"
        f"door.fuzz(['batches'], ['-seed=1', '-runs=50000', '-artifact_prefix={tmp_path}/'])\n"
    )
    command = [sys.executable, "-c", planted]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 77, done.stdout + done.stderr
    (crash,) = tmp_path.glob("crash-*")
    assert crash.read_bytes()[:2] == b"\1\2"


@pytest.fixture(scope="session")
def guided_build(tmp_path_factory: pytest.TempPathFactory) -> GuardedBuild:
    return build_guided(made_once(tmp_path_factory, "guided", build_guided))


@needs_the_fuzzer
@pytest.mark.skipif(not LONG, reason="make test-long: other kernels are compiled")
def test_kernels_that_guide_end_a_process_that_reads_beyond_a_buffer(guided_build: GuardedBuild) -> None:
    assert "AddressSanitizer: heap-buffer-overflow" in guided_build.run("-c", BEYOND).stderr


@needs_the_fuzzer
@pytest.mark.skipif(not LONG, reason="make test-long: an hour")
@pytest.mark.parametrize("name", TARGETS)
def test_an_hour_finds_nothing(name: str, tmp_path: Path, guided_build: GuardedBuild) -> None:
    """Of CPU time, all targets together; where compiled code reads, its branches guide and sanitizers watch it."""
    figures = fuzz_target(name, 60 * MINUTES / len(TARGETS), tmp_path, guided_build)
    assert figures["executions"] > 100
    assert (figures["counters"] > 10_000) == (name in OF_KERNELS)


@pytest.mark.xdist_group("guarded builds")
def test_the_sanitizers_find_nothing_in_kept_inputs(sanitized_build: GuardedBuild) -> None:
    done = sanitized_build.run("-m", "tests.fuzzing.replay", ",".join(OF_KERNELS))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[:6000]
    assert done.stdout.endswith("inputs read\n")
