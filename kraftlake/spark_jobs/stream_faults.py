"""Spark's errors during a run, as errors of kraftlake."""

from __future__ import annotations

from kraftlake.runtime.errors import EnvironmentFaultError, KraftlakeError


def worded(fault: Exception) -> Exception:
    """The error of a stream as one sentence."""
    gone = jvm_gone(fault)
    if gone is not None:
        return gone
    return EnvironmentFaultError(f"Spark failed: {first_words(fault)}")


def first_words(fault: BaseException) -> str:
    """The first line of Spark's message, without the line that py4j puts before it."""
    lines = (line.strip().removeprefix(": ") for line in str(fault).splitlines())
    said = (line for line in lines if line and not line.startswith("An error occurred while calling "))
    return next(said, type(fault).__name__)[:300]


def jvm_gone(fault: BaseException) -> EnvironmentFaultError | None:
    """The error for a JVM that has ended, of what py4j raises then; None for any other fault."""
    from py4j.protocol import Py4JNetworkError

    if not isinstance(fault, (Py4JNetworkError, ConnectionError)):
        return None
    return EnvironmentFaultError(
        "Spark's JVM ended in the middle of the run (killed, or out of memory): run again, which goes on from there"
    )


def cause_of(fault: BaseException) -> BaseException:
    """The error that ended a run whose JVM has ended.

    Cleaning up then fails as well, and its error hides an interrupt that both processes got.
    """
    if isinstance(fault, KraftlakeError):
        return fault
    chain = [fault]
    while chain[-1].__context__ is not None:
        chain.append(chain[-1].__context__)
    ends = (earlier for earlier in chain if isinstance(earlier, KeyboardInterrupt))
    return next(ends, None) or next(filter(None, map(jvm_gone, chain)), fault)
