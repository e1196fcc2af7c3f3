"""The streams of the source `kraft` in Spark 4.2, which limits the size of their steps."""

from __future__ import annotations

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from kraftlake.spark_jobs.lake_stream import LakeStream, Position
from kraftlake.spark_jobs.source_faults import in_one_sentence
from kraftlake.spark_jobs.source_options import OFFSETS


class LogStream(LakeStream, SupportsTriggerAvailableNow):  # type: ignore[misc] # pyspark has no types here
    """Steps of whole batches of a lake's log: their records, or their offsets alone."""

    _until: int | None = None

    def _check_columns(self) -> None:
        if self._asked.columns != OFFSETS:
            self._scan()

    @in_one_sentence()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's names, as below
        """Fix the end of the stream."""
        self._until = self._log.end_offset

    @in_one_sentence()
    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The size of a step."""
        most = self._asked.max_records
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    @in_one_sentence()
    def latestOffset(  # type: ignore[override] # Spark 4.2 calls it so  # noqa: N802
        self, start: Position, limit: ReadLimit
    ) -> Position:
        """The end of the step that begins at `start`: the last whole batch within the limit, or the first one."""
        self._log.refresh()
        first = self._checked(start)
        end = self._log.end_offset
        if isinstance(limit, ReadMaxRows):
            end = self._log.batches_end(first, limit.max_rows)
        return self._position(end if self._until is None else min(end, self._until))

    def reportLatestOffset(self) -> Position:  # noqa: N802
        """The end of the log, for the progress of the query."""
        return self._position(self._log.end_offset)
