"""One load in a process of its own: `python -m benchmarks.image.fresh time|memory SNAPSHOT.log`, `… columns LAKE`."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import mmap
import sys
import time
from pathlib import Path


def private_bytes() -> int:
    """Memory that is this process's alone, after giving back what is free."""
    from kraftlake.runtime.reused_memory import give_back

    gc.collect()
    give_back()
    with contextlib.suppress(OSError, AttributeError):  # another C library keeps what it keeps
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    for line in Path("/proc/self/smaps_rollup").read_text("ascii").splitlines():
        if line.startswith("Private_Dirty:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/smaps_rollup tells no Private_Dirty")


def main() -> None:
    start = time.perf_counter_ns()
    what, source = sys.argv[1:]
    if what == "columns":
        import kraftlake

        print(json.dumps({"topics": kraftlake.open(source).image().topics.topic_count}))
        return
    from benchmarks.image.our_side import load, with_indexes
    from kraftlake.image import TopicsImage

    imported = time.perf_counter_ns()
    if what == "memory":  # one load before, so that code, its compiled form and buffers are not counted
        with_indexes(load(Path(source).read_bytes(), TopicsImage.EMPTY))
        before = private_bytes()
        image = with_indexes(load(Path(source).read_bytes(), TopicsImage.EMPTY))
        print(json.dumps({"topics": len(image.topics_by_id()), "bytes": private_bytes() - before}))
        return
    with Path(source).open("rb") as file:  # mapped: Java reads its file piece by piece, too
        image = load(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), TopicsImage.EMPTY)
    loaded = time.perf_counter_ns()
    times = {"import_ns": imported - start, "load_ns": loaded - imported}
    print(json.dumps({"topics": len(image.topics_by_id())} | times))


if __name__ == "__main__":
    main()
