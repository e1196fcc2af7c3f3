"""How a simulation ends where something does not hold."""

from __future__ import annotations

from typing import NoReturn

from simulator.scheduler import active


class InvariantError(AssertionError):
    """An invariant of the cluster does not hold."""


def violated(what: str, of: str = "") -> NoReturn:
    """End the simulation, also where production code handles what a call raises; `of` is the broken property's name."""
    fault = InvariantError(f"{of}: {what}" if of else what)
    scheduler = active()
    scheduler.fault = scheduler.fault or fault
    raise fault
