"""One load in a process of its own: `python -m benchmarks.image.fresh time SOURCE`, `… memory SNAPSHOT.log`.

`time` goes through the door that users call, whatever the source is: a directory, a file, a lake.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import sys
import time
from pathlib import Path


def private_bytes() -> int:
    """Memory that is this process's alone, after giving back what is free."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # another C library keeps what it keeps
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    for line in Path("/proc/self/smaps_rollup").read_text("ascii").splitlines():
        if line.startswith("Private_Dirty:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/smaps_rollup tells no Private_Dirty")


def main() -> None:
    start = time.perf_counter_ns()
    what, source = sys.argv[1:]
    if what == "memory":  # one load before, so that code and buffers are not counted
        from benchmarks.image.our_side import load, with_indexes
        from kraftlake.image.topics.topics_image import TopicsImage

        with_indexes(load(Path(source).read_bytes(), TopicsImage.EMPTY))
        before = private_bytes()
        image = with_indexes(load(Path(source).read_bytes(), TopicsImage.EMPTY))
        print(json.dumps({"topics": len(image.topics_by_id()), "bytes": private_bytes() - before}))
        return
    import kraftlake

    opened = kraftlake.open(source)
    opened_at = time.perf_counter_ns()
    topics = opened.image().topics.topic_count
    times = {"open_ns": opened_at - start, "load_ns": time.perf_counter_ns() - opened_at}
    print(json.dumps({"topics": topics} | times))


if __name__ == "__main__":
    main()
