"""The bounds for checkpoints, clean-up, compaction and vacuum of a lake's tables, and the declared stream lag."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kraftlake.runtime.errors import LakeError, UsageError

MAX_STREAM_LAG = "kraftlake.max_stream_lag_ms"
"""The table property in which a lake declares the maximum lag of its slowest stream."""

DEFAULT_MAX_STREAM_LAG_MS = 6 * 60 * 60 * 1000

LONGEST_COMMIT_MS = 15 * 60 * 1000
"""The maximum duration of a commit in a slow object store: two puts, each tried three times and read back, with up to
four requests of 20 seconds each time."""

_MEGABYTE = 1024 * 1024


@attrs.frozen(kw_only=True)
class UpkeepPolicy:
    """The bounds of upkeep; each suits a log of 200,000 versions, a day of an idle controller.

    A checkpoint is due after `checkpoint_after` commits, and one more for each `files_a_commit` files in the table, so
    that the work on checkpoints stays in proportion to what is committed. `keep_commits` commits before the newest
    checkpoint stay, whatever their age. Files below half of `small_bytes` and `small_rows` are compacted,
    `compact_from` of them or more at a time, into files of up to that size. A file that no version names is vacuumed at
    `orphan_age_ms`, at least `LONGEST_COMMIT_MS`: a younger one may belong to a commit that is being made. The age may
    be lower only with `exclusive`, which means that no other process writes to the lake during the upkeep. Raises
    UsageError for other values.
    """

    checkpoint_after: int = 100
    files_a_commit: int = 200
    keep_commits: int = 100
    compact_from: int = 64
    small_bytes: int = 16 * _MEGABYTE
    small_rows: int = 200_000
    orphan_age_ms: int = 60 * 60 * 1000
    exclusive: bool = False

    def __attrs_post_init__(self) -> None:
        least = 0 if self.exclusive else LONGEST_COMMIT_MS
        if self.orphan_age_ms < least:
            minutes = LONGEST_COMMIT_MS // 60_000
            raise UsageError(
                f"orphan_age_ms can't be {self.orphan_age_ms}: a file of less than {minutes} minutes may belong to a "
                f"commit that is being made, which would lose its rows. Where no other process writes to "
                f"the lake meanwhile, say so with exclusive=True."
            )

    def checkpoint_is_due(self, commits: int, files: int) -> bool:
        """Whether a table with `files` files, and `commits` commits since its checkpoint, needs the next checkpoint."""
        return commits >= self.checkpoint_after + files // self.files_a_commit


def max_stream_lag_ms(configuration: Mapping[str, str]) -> int:
    """The maximum lag of a stream, in ms.

    Data that a stream may still have to read is neither trimmed, vacuumed nor cleaned up. Raises LakeError for a
    property that is no number.
    """
    declared = configuration.get(MAX_STREAM_LAG)
    if declared is None:
        return DEFAULT_MAX_STREAM_LAG_MS
    if not declared.isdecimal():
        raise LakeError(f"The table property {MAX_STREAM_LAG} is {declared!r}; it must be a number of milliseconds.")
    return int(declared)
