"""Spark's errors during a run, as errors of kraftlake."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kraftlake.runtime.errors import EnvironmentFaultError, KraftlakeError

_AGAIN: Final = "run again, which goes on from there"
_INSTALL: Final = "install the same release there, and name that Python as PYSPARK_PYTHON"
_MEANINGS: Final = (
    (
        "Python worker exited unexpectedly",
        f"a Python worker of Spark's executors ended in the middle of its task (killed, or out of memory): {_AGAIN}",
    ),
    (
        "Python worker failed to connect back",
        "a Python of Spark's did not start within ten seconds: PYSPARK_PYTHON has to be a Python that has kraftlake "
        "and its packages, on a machine that has time for it",
    ),
    (r"(?s:.*)\bkraftlake(?:\.\w+)+Error: (.+)", r"\1"),
    (
        r"PYTHON_VERSION_MISMATCH\][^:]*: (\S+) than that in driver: ([\d.]*\d)",
        r"Python is \1 in Spark's workers and \2 where the job was started: PYSPARK_PYTHON has to name the same minor "
        "version",
    ),
    ("No module named 'kraftlake'", f"kraftlake is not installed in the Python of Spark's workers: {_INSTALL}"),
    ("No module named 'kraftlake", f"kraftlake is of another release in the Python of Spark's workers: {_INSTALL}"),
    (
        'Cannot run program "(.+?)"',
        r"Spark can't run \1: PYSPARK_PYTHON has to be a Python of this machine and of the executors",
    ),
)
"""What Spark may say, and what that means."""
_RAISED_IN_PYTHON: Final = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)*(\S.*)")
_DAEMON_ENDED: Final = re.compile(r"Error from python worker:\n((?: .*\n)+)PYTHONPATH was:")
_NO_MODULE: Final = re.compile(r"Error while finding module specification for \S+ \((.+)\)")
_MOST: Final = 300


def worded(fault: Exception) -> EnvironmentFaultError:
    """The error of a run as one sentence: the error that Python raised in a worker, or else Spark's first line."""
    gone = jvm_gone(fault)
    if gone is not None:
        return gone
    message = str(fault)
    for pattern, meaning in _MEANINGS:
        if found := re.search(pattern, message):
            return EnvironmentFaultError(found.expand(meaning))
    if server_gone(fault):
        return EnvironmentFaultError(f"the server of Spark Connect has ended or is out of reach: {_AGAIN}")
    raised = _RAISED_IN_PYTHON.findall(message)
    if ended := _DAEMON_ENDED.search(message):
        missing = _NO_MODULE.search(ended[1])
        raised = [missing[1] if missing else ended[1].rstrip().splitlines()[-1].strip()]
    return EnvironmentFaultError(f"Spark failed: {raised[-1][:_MOST] if raised else first_words(fault)}")


def first_words(fault: BaseException) -> str:
    """The first line of Spark's message, without the line that py4j puts before it."""
    lines = (line.strip().removeprefix(": ") for line in str(fault).splitlines())
    words = (line for line in lines if line and not line.startswith("An error occurred while calling "))
    return next(words, type(fault).__name__)[:_MOST]


def jvm_gone(fault: BaseException) -> EnvironmentFaultError | None:
    """The error for a JVM that has ended, from the errors that py4j then raises; None for any other fault."""
    from py4j.protocol import Py4JNetworkError

    if not isinstance(fault, (Py4JNetworkError, ConnectionError)):
        return None
    return EnvironmentFaultError(f"Spark's JVM ended in the middle of the run (killed, or out of memory): {_AGAIN}")


def server_gone(fault: BaseException | None) -> bool:
    """Whether a client of Connect has tried in vain to reach its server, for which it takes seconds each time."""
    return fault is not None and "StatusCode.UNAVAILABLE" in f"{fault} {fault.__cause__}"


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


@contextmanager
def as_exception(who: str) -> Iterator[None]:
    """Raise a RuntimeError for what is no Exception: Spark would wait forever for a thread that ends with it."""
    try:
        yield
    except Exception:
        raise
    except BaseException as fault:
        raise RuntimeError(f"{who} raised {type(fault).__name__}") from fault
