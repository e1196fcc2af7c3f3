"""Images in a user's own stream: the published changes of a lake's log, folded in the driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.delta.from_empty import delta_from_empty
from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.storage.location import Location, fixed_location
from kraftlake.records.rows import LOG_SCHEMA, from_rows
from kraftlake.replay.loader.manifest import LoaderManifest, SnapshotManifest
from kraftlake.replay.queries.changes import ChangeFold
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.reading.replay_base import first_image_offset
from kraftlake.spark_jobs.source_faults import in_one_sentence
from kraftlake.spark_jobs.source_options import EARLIEST, LOG
from kraftlake.spark_jobs.stream_faults import as_exception

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

STEP_RECORDS: Final = 100_000
"""The default number of records in a step: the driver holds all of them."""

Receiver: TypeAlias = Callable[[MetadataDelta, MetadataImage, LoaderManifest], None]


def image_stream(
    spark: SparkSession,
    lake: str | Path,
    receive: Receiver,
    *,
    starting_offset: int | str = EARLIEST,
    max_records_per_trigger: int = STEP_RECORDS,
) -> DataStreamWriter:
    """A stream that calls `receive(delta, image, manifest)` with each published change of a lake's log, in order.

    A change is that of a log batch, or of a whole metadata transaction at its end; batches with no-op records only are
    not changes. `delta` led to `image`, whose last offset is `manifest.provenance.offset`. Spark's executors read the
    records; the driver holds the image, replays the records and calls `receive`, on a thread of Spark's.

    The first call is the load of the image before the stream's first record: a delta from the empty image, with a
    SnapshotManifest; an empty image is not loaded. A stream that starts at the log's end loads the image there at once,
    before there is any record. All other calls have a LogDeltaManifest.

    Delivery is at least once: after a restart from the checkpoint, an unfinished step is repeated with all its changes,
    so a receiver skips the offsets that it has. An error of `receive` fails the query, and its change is delivered
    again after a restart.

    The stream begins at `starting_offset` (an offset, "earliest" or "latest"), or at the start of its batch, and takes
    up to `max_records_per_trigger` records in a step. `.option("checkpointLocation", …)`, `.trigger(…)` and `.start()`
    are the caller's. Errors of the lake, of these options and of records fail the query in one sentence.
    """
    from kraftlake.spark_jobs.data_source import kraft_stream

    place = fixed_location(lake)
    options = {"startingOffset": starting_offset, "maxRecordsPerTrigger": max_records_per_trigger}
    steps = kraft_stream(spark, place, {"columns": LOG, "showSecrets": True, **options})
    return steps.writeStream.foreachBatch(ImageSteps(place, receive).take)


class ImageSteps:
    """Publishes the changes of a stream's steps, and keeps the image between two steps."""

    def __init__(self, lake: Location, receive: Receiver) -> None:
        self._lake = lake
        self._receive = receive
        self._fold: ChangeFold | None = None
        self._covered = self._next = -1

    def take(self, frame: DataFrame, step: int) -> None:
        """Publish the changes of a step; `step` counts from 0 with a new checkpoint."""
        with as_exception("the receiver"):
            self.take_rows(frame.toArrow(), is_first=step == 0)

    @in_one_sentence()
    def take_rows(self, rows: pa.Table, *, is_first: bool) -> None:
        """Publish the changes of a step, given as the rows of the log, in any order.

        A step that does not follow the last one begins with the image before it, from the lake. A first step without
        rows, of a stream that starts at the log's end, loads the image there: no later step knows whether it is loaded.
        """
        if not rows.num_rows:
            if is_first:
                reader = LakeReader(MetadataLog.open(self._lake))
                self._fold, self._next = self._begin(reader, reader.end_offset, is_first=True), reader.end_offset
            return
        rows = rows.select(LOG_SCHEMA.names).cast(LOG_SCHEMA).sort_by("offset")
        first, last = rows.column("offset")[0].as_py(), rows.column("offset")[-1].as_py()
        fold, self._fold = self._fold, None  # none is kept if the step fails
        if fold is None or first != self._next:
            reader = LakeReader(MetadataLog.open(self._lake))
            batch = rows.column("batch")[0].as_py()
            rows = pa.concat_tables([reader.log.rows(batch, first - 1), rows]) if batch < first else rows
            fold = self._begin(reader, batch, is_first=is_first)
        rows = rows.filter(pc.greater(rows.column("offset"), self._covered))
        for batch in from_rows(rows):
            for change in fold.take(batch):
                self._receive(change.delta, change.image, change.manifest)
        self._fold, self._next = fold, last + 1

    def _begin(self, reader: LakeReader, first: int, *, is_first: bool) -> ChangeFold:
        """The image before the batch at offset `first`; if that was trimmed away, the next one that exists."""
        self._covered = first - 1
        if first == 0:
            return ChangeFold.after(reader, -1)
        image_offset = first_image_offset(reader, first - 1)
        self._covered = first - 1 if image_offset is None else image_offset
        fold = _fold_behind(reader, self._covered)
        image = fold.loader.image
        if is_first and not image.is_empty():
            self._receive(delta_from_empty(image), image, SnapshotManifest(provenance=image.provenance))
        return fold


def _fold_behind(reader: LakeReader, covered: int) -> ChangeFold:
    """The changes after an offset; where a transaction is open there, the image is the one before its start.

    That image was published last: the next delta is the same whether or not a query has ended in between.
    """
    fold = ChangeFold.after(reader, covered, cluster_id=reader.cluster_id)
    begins = fold.loader.transaction_begin_offset
    if begins is not None:
        fold = ChangeFold.after(reader, begins - 1, cluster_id=reader.cluster_id)
        for batch in reader.batches(begins, covered):
            fold.take(batch)
    return fold
