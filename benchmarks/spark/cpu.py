"""CPU seconds of a process and all that it has started: Spark's JVM, and the Python workers which that starts."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


def tree_cpu(root: int | None = None, *, alone: bool = False) -> float:
    """CPU seconds so far of `root` (this process) and its descendants, those that ended and were waited for too.

    `alone`: of the process itself.
    """
    root = root or os.getpid()
    tree = _tree(root)
    if alone:
        return sum(map(int, tree[root][11:13])) / _TICKS
    return sum(sum(map(int, fields[11:15])) for fields in tree.values()) / _TICKS


def processes() -> dict[int, str]:
    """The command lines of all processes, by PID."""
    found = {}
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found[int(line.parent.name)] = line.read_text("utf-8", "replace")
    return found


def cpu_by_process(root: int | None = None) -> dict[int, float]:
    """CPU seconds so far of `root` (this process) and its living descendants, each its own alone."""
    return {pid: sum(map(int, fields[11:13])) / _TICKS for pid, fields in _tree(root or os.getpid()).items()}


def cpu_since(before: dict[int, float]) -> float:
    """CPU seconds of the processes that live now since `before`; of one that has ended meanwhile nothing is known.

    For work of processes that stay: Spark's idle workers end when they like, and take with them what they had spent.
    """
    return sum(spent - before.get(pid, 0.0) for pid, spent in cpu_by_process().items())


def tree_memory(root: int | None = None) -> float:
    """GiB of memory that `root` and its descendants have now; what they share counts for each."""
    return sum(int(fields[21]) for fields in _tree(root or os.getpid()).values()) * _PAGE_KIB / (1 << 20)


def peak_memory(root: int | None = None) -> float:
    """The most GiB of memory that one process has had, of `root` and its living descendants."""
    peaks = [0]
    for pid in _tree(root or os.getpid()):
        with suppress(OSError):
            status = Path("/proc", str(pid), "status").read_text("utf-8", "replace")
            peaks += [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")]
    return max(peaks) / (1 << 20)


def _tree(root: int) -> dict[int, list[str]]:
    """The fields of /proc/PID/stat behind the name, of a process and its living descendants, by PID."""
    found: dict[int, list[str]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue
        found[int(stat.parent.name)] = fields
    tree: dict[int, list[str]] = {}
    new = {root}
    while new:
        tree |= {pid: found[pid] for pid in new if pid in found}
        new = {pid for pid, fields in found.items() if int(fields[1]) in new}
    return tree
