"""The folder of temporary files in memory, where the machine has plenty of it.

An fsync takes milliseconds on a disk, and the tests make a hundred thousand of them. What a killed process has written
is still there for the next one, as on a disk; only a power cut tells them apart, which the tests make up themselves.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ENOUGH = 8 << 30  # bytes: a run has 2 GB of files at once, and its JVMs need 4


def choose_files_in_memory() -> None:
    """Put temporary files of this process and of those that it starts there, unless TMPDIR says where they belong.

    They are removed when it ends: memory is not for keeping what a killed process has left.
    """
    if "TMPDIR" not in os.environ and is_large():
        folder = tempfile.mkdtemp(prefix="kraft-", dir=MEMORY)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["TMPDIR"] = folder
        tempfile.tempdir = None  # what was found before


def is_large() -> bool:
    """Whether files there can be written and run, and memory is left for them."""
    try:
        place = os.statvfs(MEMORY)
    except OSError:
        return False
    can_run = os.access(MEMORY, os.W_OK) and not place.f_flag & os.ST_NOEXEC
    return can_run and place.f_bavail * place.f_frsize >= ENOUGH and memory_available() >= ENOUGH


def memory_available() -> int:
    """The bytes of memory that can be had without swapping; 0 where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), 0)
