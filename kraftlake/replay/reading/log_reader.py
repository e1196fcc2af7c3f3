"""The protocol of a source of a metadata log; Kafka's files and lakes implement it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from kraftlake.records.batch import RecordBatch


class SnapshotReader(Protocol):
    """A snapshot: the image after the offsets below `end_offset`, as records."""

    @property
    def name(self) -> str:
        """Its name in messages: the name of its file."""

    @property
    def end_offset(self) -> int:
        """The first offset that is not in it."""

    @property
    def epoch(self) -> int:
        """The epoch of the last offset in it."""

    @property
    def named(self) -> bool:
        """Whether its end offset and epoch are known: Kafka writes them in the file's name only."""

    @property
    def finished(self) -> bool:
        """Whether it has a footer; one without is a leftover of an interrupted write."""

    @property
    def bootstrap(self) -> bool:
        """Whether it is `0…0-0000000000.checkpoint`: input of the first controller, never a base to replay on."""

    @property
    def last_contained_log_timestamp(self) -> int:
        """The batch time of the last offset in it, epoch milliseconds."""

    @property
    def size_in_bytes(self) -> int:
        """The size of its file as Kafka wrote it, 0 where there never was one."""

    def batches(self) -> Iterator[RecordBatch]:
        """All of its batches, control batches too; offsets inside count from 0."""

    def damage(self) -> str | None:
        """Why it must not be used, None for a sound one, as far as is known without decoding its records."""


class LogReader(Protocol):
    """A metadata log and the snapshots beside it. Offsets are Kafka's; `end_offset` is exclusive."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id, None where nothing beside the log names it."""

    @property
    def start_offset(self) -> int:
        """The first offset of the log."""

    @property
    def end_offset(self) -> int:
        """The first offset after the last whole batch."""

    @property
    def snapshots(self) -> tuple[SnapshotReader, ...]:
        """Every snapshot by end offset, unfinished and bootstrap ones too."""

    def batches(self, from_offset: int = 0, to_offset: int | None = None) -> Iterator[RecordBatch]:
        """The whole batches that hold any offset in [from_offset, to_offset], in order."""
