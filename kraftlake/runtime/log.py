"""Loggers of structlog, with bound context."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

_NOTHING: Mapping[str, Any] = MappingProxyType({})


def get_logger(*names: str) -> Any:
    """Return a structlog logger that is created on first use, since the import of structlog takes 60 ms.

    If structlog is not configured, warnings and errors go to stderr; its own default, stdout, is for results. Any
    configuration of structlog, before or after, has precedence.
    """
    return _LaterLogger(names)


@contextmanager
def without_logs() -> Iterator[None]:
    """Log only critical events within the context, and restore the configuration of structlog after it."""
    import structlog

    before = structlog.get_config() if structlog.is_configured() else None
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.reset_defaults()
        if before is not None:
            structlog.configure(**before)


class _LaterLogger:
    """A proxy of a structlog logger. Events below a warning are dropped while structlog is not imported."""

    __slots__ = ("_context", "_names")

    def __init__(self, names: tuple[str, ...], context: Mapping[str, Any] = _NOTHING) -> None:
        self._names = names
        self._context = context

    def bind(self, **values: Any) -> _LaterLogger:
        """Return the logger with more context."""
        return _LaterLogger(self._names, {**self._context, **values})

    def debug(self, *event: Any, **values: Any) -> None:
        """Log the event if structlog is imported."""
        if "structlog" in sys.modules:
            self._logger().debug(*event, **values)

    def info(self, *event: Any, **values: Any) -> None:
        """Log the event if structlog is imported."""
        if "structlog" in sys.modules:
            self._logger().info(*event, **values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._logger(), name)

    def _logger(self) -> Any:
        import structlog

        if not structlog.is_configured():
            structlog.configure(
                wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
                logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
            )
        return structlog.get_logger(*self._names).bind(**self._context)
