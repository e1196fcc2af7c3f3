"""A fault planted into production code: what is broken, how, and what the simulation says of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

CAUGHT_WITHIN = 60
"""The number of histories within which a planted fault is found."""

Change = tuple[Any, str, Any]
"""An object, the name of its attribute, and the faulty value."""


@attrs.frozen
class PlantedFault:
    """`what` is wrong then; `changes` makes it so."""

    what: str
    changes: Callable[[], list[Change]]
    breaks: str = attrs.field(default="", kw_only=True)
    """The property of the specification that is seen to be broken before anything else, "" for another invariant."""
    seed: int = attrs.field(default=1, kw_only=True)
    """The seed of a history that shows it; where code has changed since, another one may be the first."""
    hours: float = attrs.field(default=1.0, kw_only=True)
    """How long such a history has to be."""

    def is_shown_by(self, failure: str) -> bool:
        """Whether a history has failed by the property that the fault breaks, and not the faulty code by itself."""
        return failure.startswith(f"InvariantError: {self.breaks}")
