"""The executors' part of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kraftlake.tables.catch_up.table_run import Progress


@attrs.frozen(kw_only=True)
class StepTotals:
    """The result of executors for a part of the log.

    `rows` are the numbers of rows that were added to each table, by name, in `steps` steps; `topics` and `partitions`
    are the numbers of them after it, None where they are not known. `executors` is the number of those that had the
    tasks of a step. `snapshots` are the end offsets of the snapshots
    written; `unwritable` is the reason if the newest image should have one and can't.
    """

    rows: dict[str, int]
    steps: int
    topics: int | None = None
    partitions: int | None = None
    executors: int = 0
    snapshots: tuple[int, ...] = ()
    unwritable: str | None = None


class ExecutorTables(Protocol):
    """Tables of a lake whose rows executors make."""

    def advance(self, spark: SparkSession, last: int, on_step: Progress) -> StepTotals:
        """Update the tables to offset `last` of the log, the end of a batch; the caller holds their locks.

        Tables that begin with a snapshot whose end is later are then at its end.

        `on_step` is called after each step with its last offset and the end of the last one. Raises the errors of a
        replay, with the offset, LakeError if the lake can't be read or written, EnvironmentFaultError if Spark fails.
        """
