"""Logs on stderr, with -v."""

from __future__ import annotations

import logging
import sys


def log_to_stderr(*, debug: bool) -> None:
    """Send what the rooms log to stderr, from INFO or DEBUG on."""
    import structlog

    level = logging.DEBUG if debug else logging.INFO
    logging.basicConfig(stream=sys.stderr, level=level, format="%(levelname)s %(name)s: %(message)s", force=True)
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
