"""Kafka's controller counts after each record of a log. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.reading.open_reader import LogReader
from kraftlake.tables.metrics.cluster_counts import ClusterCounter, topic_counts


class CountsAfter(NamedTuple):
    """The counts after each record that changes one of them.

    The columns are the offsets (int64[n], ascending) of these records, their times (epoch ms, -1 for none), and the
    counts after each (int64[n, 7], as ClusterCounts).
    """

    offsets: Any
    times: Any
    counts: Any


def count_changes(reader: LogReader, begin: MetadataImage, at: int, *, lenient: bool = False) -> Iterator[CountsAfter]:
    """The changes of the counts after an image, up to and including the offset `at`; the first is the image's own.

    A record within a metadata transaction counts from the transaction's end on. Raises the errors of `LogReplay.read`.
    """
    start, replay = begin.provenance, LogReplay(lenient=lenient, by_offset=True)
    counter = ClusterCounter(replay.begin(begin))
    yield CountsAfter(np.array([start.offset]), np.array([start.timestamp]), counter.counts[None])
    for chunk in replay.read(reader, at):
        ends, growth = chunk.boundaries, topic_counts(chunk.partitions, len(chunk.boundaries))
        changed, counts = counter.take(ends.offsets, growth, chunk.others, with_first=False)
        yield CountsAfter(ends.offsets[changed], ends.times[changed], counts[:, : len(counter.counts)])
