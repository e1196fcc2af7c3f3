"""Logs of the rooms on stderr, for those who ask with -v."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def log_to_stderr(*, debug: bool) -> None:
    """Send what the rooms log to stderr, from INFO or DEBUG on."""
    import structlog

    level = logging.DEBUG if debug else logging.INFO
    logging.basicConfig(stream=sys.stderr, level=level, format="%(levelname)s %(name)s: %(message)s", force=True)
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


@contextmanager
def without_logs(*, unless: bool) -> Iterator[None]:
    """Keep quiet what the rooms log, for commands that show all of it themselves; `unless` somebody asked for it."""
    if unless:
        yield
        return
    import structlog

    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.configure(**before)
