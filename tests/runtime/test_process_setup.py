"""The setup of a process that kraftlake starts."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
from pathlib import Path

import pytest

TELL = """
import sys
from kraftlake.runtime import process_setup
assert not {"numpy", "pyarrow"} & set(sys.modules), "they would start threads at their import"
process_setup.CONFIGURE()
import os, pyarrow as pa
print("pandas" in sys.modules, pa.default_memory_pool().backend_name, len(os.listdir("/proc/self/task")))
"""


def told(configure: str = "configure_process", **environment: str) -> list[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENBLAS", "ARROW", "MALLOC"))}
    ran = subprocess.run(
        [sys.executable, "-c", TELL.replace("CONFIGURE", configure)],
        env=kept | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


def test_a_service_may_open_as_many_files_as_the_system_allows() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    program = (
        "import resource\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, (100, {most}))\n"
        "from kraftlake.runtime.process_setup import configure_service\n"
        "configure_service()\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) == most > 100


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in Linux's /proc")
@pytest.mark.parametrize("configure", ["configure_process", "configure_service"])
def test_a_configured_process_imports_no_pandas_and_starts_no_threads(configure: str) -> None:
    pandas, pool, threads = told(configure)
    assert pandas == "False"
    assert pool == "system" or platform.libc_ver()[0] != "glibc"
    chosen = told(configure, OPENBLAS_NUM_THREADS="3", ARROW_DEFAULT_MEMORY_POOL="mimalloc")
    assert chosen[1] == "mimalloc"
    if len(os.sched_getaffinity(0)) > 1:
        assert int(chosen[2]) > int(threads)
