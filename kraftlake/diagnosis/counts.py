"""Kafka's controller counts, and those of what is not as it should be, after each record of a log. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.reading.open_reader import LogReader
from kraftlake.tables.metrics.cluster_counts import COUNTS, ClusterCounter
from kraftlake.tables.metrics.count_changes import CountChanges


class CountsAfter(NamedTuple):
    """The counts after each record that changes one of them.

    The columns are the offsets (int64[n], ascending) of these records, their times (epoch ms, -1 for none), and the
    counts after each (int64[n, 13], as `tables.metrics.cluster_counts.COUNTS`).
    """

    offsets: Any
    times: Any
    counts: Any


def count_changes(reader: LogReader, begin: MetadataImage, at: int, *, lenient: bool = False) -> Iterator[CountsAfter]:
    """The changes of the counts after an image, up to and including the offset `at`; the first is the image's own.

    A record within a metadata transaction counts from the transaction's end on. Raises the errors of `LogReplay.read`.
    """
    start, replay = begin.provenance, LogReplay(lenient=lenient, by_offset=True)
    counter = ClusterCounter(replay.begin(begin).image)
    yield CountsAfter(np.array([start.offset]), np.array([start.timestamp]), counter.counts[None])
    for chunk in replay.read(reader, at):
        changed, counts = counter.take(CountChanges.of_chunk(chunk), chunk.others, with_first=False)
        yield CountsAfter(chunk.boundaries.offsets[changed], chunk.boundaries.times[changed], counts[:, : len(COUNTS)])
