"""Where the rooms log to: structlog, with bound context."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

_NOTHING: Mapping[str, Any] = MappingProxyType({})


def get_logger(*names: str) -> Any:
    """A structlog logger, which is made when it is first needed: structlog's import takes 60 ms.

    Who has not configured structlog gets warnings and errors on stderr, where they are in nobody's way: stdout, its own
    default, is for answers. Configuring it, before or later, decides otherwise.
    """
    return _LaterLogger(names)


@contextmanager
def without_logs() -> Iterator[None]:
    """Nothing is logged meanwhile but what is critical; then structlog is as it was before, be it that nobody chose."""
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
    """Stands for a structlog logger. What is below a warning wants no structlog that nobody has imported."""

    __slots__ = ("_context", "_names")

    def __init__(self, names: tuple[str, ...], context: Mapping[str, Any] = _NOTHING) -> None:
        self._names = names
        self._context = context

    def bind(self, **values: Any) -> _LaterLogger:
        """The same with more context."""
        return _LaterLogger(self._names, {**self._context, **values})

    def debug(self, *event: Any, **values: Any) -> None:
        """Log it, where somebody may want that."""
        if "structlog" in sys.modules:
            self._logger().debug(*event, **values)

    def info(self, *event: Any, **values: Any) -> None:
        """Log it, where somebody may want that."""
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
