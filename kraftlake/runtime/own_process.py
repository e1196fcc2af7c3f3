"""What a process of kraftlake's own that works through columns sets up before all else."""

from __future__ import annotations

import os

from kraftlake.runtime.kept_memory import keep_freed_memory
from kraftlake.runtime.pandas_unseen import leave_pandas_out


def settle_in() -> None:
    """Keep freed memory, leave pandas out, and have numpy start no threads that nobody has work for.

    Its library for matrices, of which there are none here, has a thread for each further core wait for work in a loop,
    at the cost of those that have some. What the environment says of that goes before; so does numpy, where it is
    imported already. Called by commands and benchmarks before they import numpy or pyarrow and start threads.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    keep_freed_memory()
    leave_pandas_out()
