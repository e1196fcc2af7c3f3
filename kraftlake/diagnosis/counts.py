"""Kafka's controller counts, and those of what is not as it should be, after each record of a log. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.cluster_health import ClusterHealth
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.publisher.health_counter import HealthCounter
from kraftlake.replay.loader.manifest import LogDeltaManifest
from kraftlake.replay.loader.record_faults import RECORD_FAULTS
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


def health_changes(
    reader: LogReader, begin: MetadataImage, at: int, *, lenient: bool = False
) -> Iterator[tuple[int, int, ClusterHealth]]:
    """The offset, the time (epoch ms, -1 for none) and the health where it changes; the first is the image's own.

    As `count_changes`, but by an image after each record, since the counts depend on configs, brokers and partitions
    together.
    """
    image, counter, replay = begin, HealthCounter(begin), LogReplay(lenient=lenient, by_offset=True)
    replay.begin(begin)
    yield begin.provenance.offset, begin.provenance.timestamp, counter.health
    for chunk in replay.read(reader, at):
        records = chunk.records
        places = np.flatnonzero(~records.are_no_ops()).tolist()
        for offset, group in groupby(places, key=records.effective.__getitem__):
            delta, before = MetadataDelta(image, of_log=True), counter.health
            for place in group:
                with suppress(*(RECORD_FAULTS if lenient else ())):  # those that the replay leaves out
                    delta.replay(records.message(place), int(records.offsets[place]))
            image = delta.apply(image.provenance)
            manifest = LogDeltaManifest(provenance=image.provenance, base_offset=offset, num_batches=1, num_bytes=0)
            counter.on_metadata_update(delta, image, manifest)
            if counter.health != before:
                yield int(offset), int(records.times[place]), counter.health
