"""Logs that grow step by step, as a test wants them to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from kraftlake.kafka_files.file_names import segment_name
from kraftlake.records.batch import RecordBatch, encode_batch
from tests.replay.made_logs import MadeLog


@attrs.define
class GrowingLog:
    """A live log in memory: each of its steps gives one of the `pieces`."""

    reader: MadeLog
    pieces: list[Sequence[RecordBatch]] = attrs.field(factory=list)
    trouble: str | None = None
    closed: bool = False

    @property
    def seen_to(self) -> int:
        return self.reader.end_offset

    def step(self) -> Sequence[RecordBatch]:
        return self.pieces.pop(0) if self.pieces else []

    def close(self) -> None:
        self.closed = True


def cut(batches: Sequence[RecordBatch], cuts: Sequence[int]) -> Iterator[Sequence[RecordBatch]]:
    """The batches in pieces, which end at the cuts and with the last batch."""
    begin = 0
    for end in [*sorted(cuts), len(batches)]:
        yield batches[begin:end]
        begin = max(begin, end)


def segment_bytes(batches: Sequence[RecordBatch]) -> bytes:
    return b"".join(map(encode_batch, batches))


def empty_directory(folder: Path, cluster_id: str = "of-the-tests") -> tuple[Path, Path]:
    """A metadata directory as a node begins it, and its segment, which is empty."""
    directory = folder / "__cluster_metadata-0"
    directory.mkdir()
    (folder / "meta.properties").write_text(f"version=1\ncluster.id={cluster_id}\nnode.id=1\n")
    segment = directory / segment_name(0)
    segment.touch()
    return directory, segment
