"""A process that kraftlake starts keeps freed memory."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

# Rounds of arrays as a job makes them; prints how many pages the kernel had to give for them after the first round.
ROUNDS = """
import resource, sys
import numpy as np, pyarrow as pa
from kraftlake.runtime.process_setup import keep_freed_memory
kept = keep_freed_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def round_of_work():
    some = [np.ones(900_000) for _ in range(4)]
    return pa.array(some[0]).filter(pa.array(some[1] > 0)).nbytes
round_of_work()
before = faults()
for _ in range(10):
    round_of_work()
print(kept, faults() - before, pa.default_memory_pool().backend_name)
"""

GLIBC = platform.libc_ver()[0] == "glibc"


def measured(**environment: str) -> tuple[bool, int, str]:
    chosen = {
        name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_", "ARROW_", "MIM"))
    }
    chosen["NUMPY_MADVISE_HUGEPAGE"] = "0"  # or a fault is of two megabytes where the machine has such pages
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", ROUNDS],
        env=chosen | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    kept, faults, pool = ran.stdout.split()
    return kept == "True", int(faults), pool


def test_arrays_take_the_memory_of_those_before_them() -> None:
    kept, faults, pool = measured()
    assert kept == GLIBC
    assert pool == ("system" if GLIBC else pool)
    assert faults < 20_000 or not GLIBC


@pytest.mark.parametrize("name", ["MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"])
def test_settings_of_the_user_have_precedence(name: str) -> None:
    value = "1048576" if name.startswith("MALLOC") else "glibc.malloc.trim_threshold=1048576"
    kept, faults, pool = measured(**{name: value})
    assert not kept
    assert faults > 50_000, "else the test before this one proves nothing"
    assert pool != "system"


def test_the_pool_that_the_user_has_chosen_for_arrow_stays() -> None:
    assert measured(ARROW_DEFAULT_MEMORY_POOL="mimalloc")[::2] == (GLIBC, "mimalloc")


# Frees a hundred megabytes below something that stays, and prints how many pages the process has before and after.
GIVEN_BACK = """
from kraftlake.runtime.process_setup import return_freed_memory
pages = lambda: int(open("/proc/self/statm").read().split()[1])
parts = [bytearray(2_000) for _ in range(50_000)]
del parts[:-1]
before = pages()
return_freed_memory()
print(before - pages())
"""


@pytest.mark.skipif(not GLIBC, reason="it is glibc that keeps freed memory")
def test_freed_memory_goes_back_to_the_system_when_a_service_says_so() -> None:
    ran = subprocess.run([sys.executable, "-c", GIVEN_BACK], capture_output=True, text=True, timeout=120, check=True)
    assert int(ran.stdout) * os.sysconf("SC_PAGE_SIZE") > 50_000_000
