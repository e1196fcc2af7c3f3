"""The options of a job, and the result of a run."""

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
"""Compressed bytes of the log's files that a micro-batch takes by default; it takes at least one file."""

_INTERVAL = re.compile(r"\d+ (millisecond|second|minute|hour)s?")


def _bytes_or_default(given: int | None) -> int:
    return DEFAULT_BYTES_PER_TRIGGER if given is None else given


def _resolved(folder: str | Path) -> Path:
    return Path(path_text(folder)).resolve()


@attrs.frozen(kw_only=True)
class StreamOptions:
    """How a job runs; no option changes what the job writes.

    `trigger` is "available-now", which ends when everything that was there is in the tables, or an interval such as
    "2 seconds", which goes on until it is interrupted or has reached `until_offset`. A micro-batch takes at most
    `max_files` files of the log and about `max_bytes` of them, but always one file. A backlog is read without Spark
    unless `max_files` is given: the stream then brings all of it. `checkpoint` is the stream's own folder, by default
    in the lake's `_spark/`. `master` is the Spark master of a session that the run starts itself.
    """

    trigger: str = AVAILABLE_NOW
    max_files: int | None = None
    max_bytes: int = attrs.field(default=None, converter=_bytes_or_default)
    checkpoint: Path | None = attrs.field(default=None, converter=attrs.converters.optional(_resolved))
    until_offset: int | None = None
    master: str | None = None

    def check(self) -> None:
        """Raises UsageError for an option that is invalid."""
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
