"""Where the rooms log to: structlog, with bound context."""

from __future__ import annotations

import logging
import sys
from typing import Any


def get_logger(*names: str) -> Any:
    """A structlog logger.

    Who has not configured structlog gets warnings and errors on stderr, where they are in nobody's way: stdout, its own
    default, is for answers. Configuring it, before or later, decides otherwise.
    """
    import structlog  # 60 ms that most commands never need

    if not structlog.is_configured():
        structlog.configure(
            wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
            logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        )
    return structlog.get_logger(*names)
