"""What Spark failed with under a run, as one of our errors."""

from __future__ import annotations

from kraftlake.runtime.errors import EnvironmentFaultError, KraftlakeError

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
    gone = jvm_gone(fault)
    if gone is not None:
        return gone
    text = str(fault)
    if any(sign in text for sign in _MOVED_UNDER_THE_STREAM):
        return MovedUnderTheStreamError(
            "files or versions of the lake were removed while the stream read them: run again"
        )
    return EnvironmentFaultError(f"Spark failed: {first_words(fault)}")


def first_words(fault: BaseException) -> str:
    """The first line of what Spark says of a fault; py4j puts one before it that names nothing but its own call."""
    lines = (line.strip().removeprefix(": ") for line in str(fault).splitlines())
    said = (line for line in lines if line and not line.startswith("An error occurred while calling "))
    return next(said, type(fault).__name__)[:300]


def jvm_gone(fault: BaseException) -> EnvironmentFaultError | None:
    """The sentence for what py4j raises where nobody answers any more; None for anything else."""
    from py4j.protocol import Py4JNetworkError

    if not isinstance(fault, (Py4JNetworkError, ConnectionError)):
        return None
    return EnvironmentFaultError(
        "Spark's JVM ended in the middle of the run (killed, or out of memory): run again, which goes on from there"
    )


def beneath(fault: BaseException) -> BaseException:
    """What ended a run whose JVM has gone.

    Then whatever is put in order on the way out fails as well, and hides an interrupt that both were sent.
    """
    if isinstance(fault, KraftlakeError):
        return fault
    chain = [fault]
    while chain[-1].__context__ is not None:
        chain.append(chain[-1].__context__)
    ends = (earlier for earlier in chain if isinstance(earlier, KeyboardInterrupt))
    return next(ends, None) or next(filter(None, map(jvm_gone, chain)), fault)
