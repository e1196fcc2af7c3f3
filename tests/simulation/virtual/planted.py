"""Faults planted into production code, which the simulation of the whole cluster has to find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

PLANTED: dict[str, Callable[[], "patch"]] = {}


@contextmanager
def plant(name: str | None) -> Iterator[None]:
    """Break production code for a while; None breaks nothing."""
    if name is None:
        yield
        return
    raise KeyError(name)
