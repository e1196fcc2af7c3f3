"""How a simulation ends where something does not hold."""

from __future__ import annotations

from typing import Final, NoReturn

from simulator.scheduler import active

PROMISES_NOTHING: Final = "promises_nothing"
"""Whether Kafka promises nothing of what is committed, in the `extra` of the process outside of all nodes."""


class InvariantError(AssertionError):
    """An invariant of the cluster does not hold."""


class NothingPromisedError(Exception):
    """An invariant does not hold where Kafka promises nothing: the history ends there, and has not failed."""


def violated(what: str, of: str = "") -> NoReturn:
    """End the simulation, also where production code handles what a call raises; `of` is the broken property's name."""
    words = f"{of}: {what}" if of else what
    if PROMISES_NOTHING in active().outside.extra:
        nothing_promised(words)
    _end(InvariantError(words))


def nothing_promised(what: str) -> NoReturn:
    """End the simulation without a failure, for what does not hold in a cluster of Kafka's either."""
    _end(NothingPromisedError(what))


def _end(fault: Exception) -> NoReturn:
    scheduler = active()
    scheduler.fault = scheduler.fault or fault
    raise fault
