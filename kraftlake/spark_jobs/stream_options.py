"""How a job runs, and what a run did."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import attrs

from kraftlake.runtime.arguments import path_text, text, whole, whole_or_none
from kraftlake.runtime.errors import UsageError
from kraftlake.tables.catch_up.table_run import RunResult

AVAILABLE_NOW: Final = "available-now"
DEFAULT_BYTES_PER_TRIGGER: Final = 16 * 1024 * 1024
"""Compressed bytes of the log's files that a micro-batch takes unless told otherwise; one file is the least."""

_INTERVAL = re.compile(r"\d+ (millisecond|second|minute|hour)s?")


@attrs.frozen(kw_only=True)
class StreamOptions:
    """How a job runs; nothing of it shows in what it writes.

    `trigger` is "available-now", which ends when everything that was there is in the tables, or an interval such as
    "2 seconds", which goes on until it is interrupted or has reached `until_offset`. A micro-batch takes at most
    `max_files` files of the log and about `max_bytes` of them, but always one file. A backlog is read without Spark
    unless `max_files` is given: the stream then brings all of it. `checkpoint` is the stream's own
    folder, by default in the lake's `_spark/`. `master` is where a session that the run starts itself connects to.
    """

    trigger: str = AVAILABLE_NOW
    max_files: int | None = None
    max_bytes: int = DEFAULT_BYTES_PER_TRIGGER
    checkpoint: Path | None = None
    until_offset: int | None = None
    master: str | None = None

    @classmethod
    def of(
        cls,
        *,
        trigger: str = AVAILABLE_NOW,
        max_files: int | None = None,
        max_bytes: int | None = None,
        checkpoint: str | Path | None = None,
        until_offset: int | None = None,
        master: str | None = None,
    ) -> StreamOptions:
        """From what a user gave, None for what was not given."""
        return cls(
            trigger=trigger,
            max_files=max_files,
            max_bytes=DEFAULT_BYTES_PER_TRIGGER if max_bytes is None else max_bytes,
            checkpoint=None if checkpoint is None else Path(path_text(checkpoint)).resolve(),
            until_offset=until_offset,
            master=master,
        )

    def check(self) -> None:
        """Raises UsageError for what makes no sense."""
        if text(self.trigger, "a trigger") != AVAILABLE_NOW and not _INTERVAL.fullmatch(self.trigger):
            raise UsageError(f'a trigger is "{AVAILABLE_NOW}" or an interval such as "2 seconds", not {self.trigger!r}')
        whole_or_none(self.max_files, "a number of files for a micro-batch", least=1)
        whole(self.max_bytes, "a number of bytes for a micro-batch", least=1)
        whole_or_none(self.until_offset)


@attrs.frozen(kw_only=True)
class StreamResult(RunResult):
    """What a run did; `micro_batches` counts those of the stream."""

    micro_batches: int

    def to_json(self) -> dict[str, Any]:
        """The machine form, without the image."""
        return {**super().to_json(), "microBatches": self.micro_batches}
