"""The daemon of Spark's Python workers, with what every task of kraftlake's needs already imported.

Spark starts a Python daemon for each executor, which forks a worker whenever a task finds none that is free. pyspark's
own daemon imports next to nothing, and so every worker spends a CPU second on imports. This one imports once, and its
workers share the memory of it. `spark_session` sets it as the session's `spark.python.daemon.module`.

A fork copies only the thread that forks, so no thread may run before: the libraries' threads are prevented, and
nothing opens a log or a store here.
"""

from __future__ import annotations

import gc
import os
from contextlib import suppress
from importlib import import_module
from typing import Final

MODULE: Final = "kraftlake.spark_jobs.worker_daemon"
"""The value of `spark.python.daemon.module`."""

_NO_THREADS: Final = {
    "OPENBLAS_NUM_THREADS": "1",  # numpy's matrix library, a thread for each core
    "OMP_NUM_THREADS": "1",  # as Spark sets it for workers; numexpr's threads, too
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # of jemalloc in Arrow, which starts one when it is loaded
}
_OF_TASKS: Final = (
    "pyspark.worker",
    "pyspark.sql.worker.plan_data_source_read",  # tasks that read a Python source call functions of this module
    "pyarrow.compute",
    "pyarrow.parquet",
    "kraftlake.kernels.compiled",
    "kraftlake.records.column_program",
    "kraftlake.records.value_columns",
    "kraftlake.spark_jobs.data_source",
    "kraftlake.spark_jobs.many_lakes",
    "kraftlake.spark_jobs.records",
    "kraftlake.spark_jobs.scan_parts",
    "kraftlake.spark_jobs.shard_run",
)
_WHERE_INSTALLED: Final = (
    "pandas",  # which Arrow imports at its first conversion of a Python object
    "pyspark.sql.streaming.datasource",
    "kraftlake.spark_jobs.log_stream",
)


def import_for_tasks() -> None:
    """Import what tasks need, without starting a thread; the garbage collector then leaves all of it alone.

    Its runs after each task would otherwise take a tenth of a second, and copy the pages that are shared.
    """
    for name, value in _NO_THREADS.items():
        os.environ.setdefault(name, value)
    for module in _OF_TASKS:
        import_module(module)
    for module in _WHERE_INSTALLED:
        with suppress(ImportError):
            import_module(module)
    from kraftlake.tables.catch_up.updating import writers_of
    from kraftlake.tables.jobs import TABLES

    writers_of(TABLES)
    gc.collect()
    gc.freeze()


def main() -> None:
    """Import, then fork workers for as long as Spark wants some."""
    from pyspark.daemon import manager

    import_for_tasks()
    manager()


if __name__ == "__main__":
    main()
