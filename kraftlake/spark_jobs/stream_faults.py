"""What a stream of Spark's over a lake's log failed with, as one of our errors."""

from __future__ import annotations

from kraftlake.runtime.errors import EnvironmentFaultError

_MOVED_UNDER_THE_STREAM = (
    "FileNotFoundException",
    "DELTA_VERSION_NOT_FOUND",
    "DELTA_SCHEMA_CHANGED",
    "INCOMPATIBLE_SCHEMA_CHANGE",
    "DELTA_VERSIONS_NOT_CONTIGUOUS",
    "failOnDataLoss",
)
"""What Spark says when files or versions went, or the schema changed, while a stream read them: it starts anew."""


class MovedUnderTheStreamError(Exception):
    """The log's table changed while a stream read it, as it may: the stream is to be started anew."""


def worded(fault: Exception) -> Exception:
    """What a stream failed with, as one sentence."""
    text = str(fault)
    if any(sign in text for sign in _MOVED_UNDER_THE_STREAM):
        return MovedUnderTheStreamError(
            "files or versions of the lake were removed while the stream read them: run again"
        )
    first = next((line.strip() for line in text.splitlines() if line.strip()), type(fault).__name__)
    return EnvironmentFaultError(f"Spark failed: {first[:300]}")
