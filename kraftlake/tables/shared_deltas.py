"""The deltas of a log's rows, replayed once for all tables of a run. Imports numpy."""

from __future__ import annotations

import threading

import pyarrow as pa

from kraftlake.replay.log.delta_chunk import DeltaChunk, LogBegin
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.log.partition_store import PartitionStore
from kraftlake.replay.reading.open_reader import LakeReader


class SharedDeltas:
    """The LogReplay of those takers of a run that begin at the same offset: each of them gets the same chunks."""

    def __init__(self, *, bulk: bool = True, deltas: LogReplay | None = None, begin: LogBegin | None = None) -> None:
        """`bulk` is that of PartitionStore; `deltas` may have begun already, with `begin`."""
        self.deltas = deltas or LogReplay(bulk=bulk)
        self._begin = begin
        self._lock, self._making = threading.Lock(), threading.Lock()
        self._takers = 0
        self._made: dict[int, tuple[list[DeltaChunk], int]] = {}
        """By the last offset of rows the chunks, and how many takers are yet to get them."""
        self._fault: Exception | None = None

    @property
    def store(self) -> PartitionStore:
        """The partitions after the rows that were made last."""
        return self.deltas.store

    def open(self, reader: LakeReader, covers: int | None) -> LogBegin:
        """Begin for one more taker; see `LogReplay.open`."""
        self._takers += 1
        if self._begin is None:
            self._begin = self.deltas.open(reader, covers)
        return self._begin

    def take(self, rows: pa.Table) -> list[DeltaChunk]:
        """As `LogReplay.take`, on any thread; each taker takes the same rows once, and in order.

        The first to ask for rows makes the chunks, and does not keep the others from those of earlier rows.
        """
        last: int = rows.column("offset")[-1].as_py()
        chunks = self._waiting(last)
        if chunks is not None:
            return chunks
        with self._making:
            chunks = self._waiting(last)
            return self._make(rows, last) if chunks is None else chunks

    def _waiting(self, last: int) -> list[DeltaChunk] | None:
        with self._lock:
            if last not in self._made:
                return None
            chunks, waiting = self._made.pop(last)
            if waiting > 1:
                self._made[last] = chunks, waiting - 1
            return chunks

    def _make(self, rows: pa.Table, last: int) -> list[DeltaChunk]:
        self._begin = None  # its image is not kept alive
        if self._fault is not None:
            raise self._fault
        try:
            chunks = self.deltas.take(rows)
        except Exception as fault:
            self._fault = fault
            raise
        if self._takers > 1:
            with self._lock:
                self._made[last] = chunks, self._takers - 1
        return chunks


class RunDeltas:
    """The SharedDeltas of one run, by the offset that tables cover."""

    def __init__(self, *, bulk: bool = True, begun: SharedDeltas | None = None) -> None:
        """`bulk` is that of PartitionStore; `begun` are those of all tables of the run, wherever these say they are."""
        self._bulk = bulk
        self._begun = begun
        self._by_offset: dict[int | None, SharedDeltas] = {}

    def after(self, covers: int | None) -> SharedDeltas:
        """Those of the tables that cover offsets up to this one, None for nothing."""
        if self._begun is not None:
            return self._begun
        if covers not in self._by_offset:
            self._by_offset[covers] = SharedDeltas(bulk=self._bulk)
        return self._by_offset[covers]
