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
    scheduler = active()
    is_promised = PROMISES_NOTHING not in scheduler.outside.extra
    fault = InvariantError(words) if is_promised else NothingPromisedError(words)
    scheduler.fault = scheduler.fault or fault
    raise fault
