"""The executors' part of a job: the steps that they make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

import attrs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    ExecutorSteps: TypeAlias = Callable[[SparkSession, int], Iterator["ExecutorStep"]]
    """Updates the tables of a lake to an offset of the log, the end of a batch, step by step; the caller holds their
    locks.

    Tables that begin with a snapshot whose end is later are then at its end. Raises the errors of a replay, with the
    offset, LakeError if the lake can't be read or written, EnvironmentFaultError if Spark fails.
    """


@attrs.frozen(kw_only=True)
class ExecutorStep:
    """A step that executors have made: the tables cover `offset` now, and will cover the last one before `end`.

    `rows` are the numbers of rows that were added to each table, by name, and `executors` had the tasks; `topics` and
    `partitions` are the numbers of them after it, None where they are not known. `snapshots` are the end offsets of the
    snapshots written; `unwritable` is the reason if the newest image should have one and can't.
    """

    offset: int
    end: int
    rows: Mapping[str, int]
    executors: frozenset[str]
    topics: int | None = None
    partitions: int | None = None
    snapshots: tuple[int, ...] = ()
    unwritable: str | None = None
