"""The replay of a long log as columns, for as long as nothing is wrong with it. Imports numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.kernels.partition_row import LEADER
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.log.broker_lists import BrokerLists
from kraftlake.replay.log.delta_chunk import DeltaChunk, batches_in
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.log.partition_changes import HAS
from kraftlake.replay.reading.chunks import Chunk, chunks_of, cut
from kraftlake.replay.reading.open_reader import LogReader
from kraftlake.replay.reading.progress import REPLAYING, Progress, with_progress


class SoundReplay:
    """Replays a log and checks its references until something is wrong; a replay by batch finds what that is.

    `replay` is the replay; `batches` and `records` count what was read.
    """

    def __init__(self, reader: LogReader, base: MetadataImage | None, check: Callable[[RecordBatch], object]) -> None:
        """Begin with an image, None for the empty one; `check` is called with each batch that was read alone."""
        self.replay = LogReplay()
        if base is not None:
            self.replay.begin(base)
        self.batches = self.records = 0
        self._reader = reader
        self._check = check
        self._registered = dict.fromkeys(() if base is None else base.cluster.brokers, True)

    def read(self, to_offset: int, progress: Progress | None) -> bool:
        """Replay up to an offset; whether every reference there is sound. Raises as `LogReplay.read`."""
        first = self.replay.last_offset + 1
        parts = with_progress(chunks_of(self._reader, first, to_offset), progress, REPLAYING, self._reader.end_offset)
        steps = self.replay.steps_of(self._cut(parts, first, to_offset))
        return all(self._is_sound(chunk) for chunks in steps for chunk in chunks)

    def _cut(self, parts: Iterable[Chunk], first: int, last: int) -> Iterator[Chunk]:
        """The parts, cut to a range, and counted; what begins before the range was counted before."""
        for part in parts:
            if part.base_offset >= first:
                self.batches += len(batches_in(part).epochs)
                self.records += part.record_count
                if isinstance(part, RecordBatch):
                    self._check(part)
            yield cut(part, first, last)

    def _is_sound(self, chunk: DeltaChunk) -> bool:
        """Whether leaders and ISRs are among the replicas, and these on brokers that are registered after the delta.

        A state that a delta has in between counts too.
        """
        changes = chunk.partitions.take(np.flatnonzero(chunk.partitions.flags & HAS))
        lists, leaders = changes.lists(changes.after), changes.after[:, LEADER]
        replicas, isr = (BrokerLists(*lists.flat(name)) for name in ("replicas", "isr"))
        led = BrokerLists(np.arange(len(changes) + 1, dtype=np.int32), leaders).without(replicas)
        if (led.members != NO_LEADER).any() or len(isr.without(replicas).members):
            return False
        deltas, known = np.repeat(changes.deltas, replicas.lengths), self._registrations(chunk)
        for id_ in {*replicas.members.tolist()}:
            turns, registered = zip(*known.get(id_, [(-1, False)]), strict=True)
            after = np.searchsorted(turns, deltas[replicas.members == id_], side="right") - 1
            if not np.array(registered)[after].all():
                return False
        return True

    def _registrations(self, chunk: DeltaChunk) -> dict[int, list[tuple[int, bool]]]:
        """For each broker the numbers of deltas after which it is registered, or is not; -1 is before the first."""
        known = {id_: [(-1, registered)] for id_, registered in self._registered.items()}
        for other in chunk.others:
            cluster = other.change.cluster_delta
            for id_, broker in cluster.changed_brokers.items() if cluster is not None else ():
                self._registered[id_] = broker is not None
                known.setdefault(id_, [(-1, False)]).append((other.delta, broker is not None))
        return known
