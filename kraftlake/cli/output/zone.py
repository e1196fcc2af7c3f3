"""The time zone that a command shows times in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo

from kraftlake.runtime.moments import iso

_ZONE: ContextVar[tzinfo | None] = ContextVar("zone", default=UTC)


@contextmanager
def shown_in(zone: tzinfo | None) -> Iterator[None]:
    """Show times in `zone` as long as the context lasts; None is the zone of this machine."""
    token = _ZONE.set(zone)
    try:
        yield
    finally:
        _ZONE.reset(token)


def in_zone(time: datetime) -> str:
    """An aware time as ISO 8601 in the zone, to the millisecond: `2026-11-21 08:46:16.256+01:00`, `…Z` in UTC."""
    return iso(time, _ZONE.get())
