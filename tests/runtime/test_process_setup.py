"""The setup of a process that kraftlake starts."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from kraftlake.runtime import process_setup
assert not {"numpy", "pyarrow"} & set(sys.modules), "they would start threads at their import"
process_setup.CONFIGURE()
import os, pyarrow as pa
print("pandas" in sys.modules, pa.default_memory_pool().backend_name, len(os.listdir("/proc/self/task")))
"""


def printed(configure: str = "configure_process", **environment: str) -> list[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENBLAS", "ARROW", "MALLOC"))}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("CONFIGURE", configure)],
        env=kept | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


def test_a_service_may_have_many_files_open() -> None:
    _, highest = resource.getrlimit(resource.RLIMIT_NOFILE)
    lines = (
        f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (99, {highest}))",
        "from kraftlake.runtime import process_setup; process_setup.configure_service()",
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])",
    )
    ran = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert int(ran.stdout) == highest


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in Linux's /proc")
@pytest.mark.parametrize("configure", ["configure_process", "configure_service"])
def test_a_configured_process_imports_no_pandas_and_starts_no_threads(configure: str) -> None:
    pandas, pool, threads = printed(configure)
    assert pandas == "False"
    assert pool == "system" or platform.libc_ver()[0] != "glibc"
    chosen = printed(configure, OPENBLAS_NUM_THREADS="3", ARROW_DEFAULT_MEMORY_POOL="mimalloc")
    assert chosen[1] == "mimalloc"
    if len(os.sched_getaffinity(0)) > 1:
        assert int(chosen[2]) > int(threads)
