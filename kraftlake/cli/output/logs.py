"""Logs on stderr: of a command with -v, and of one that runs as a service."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from typing import Any, TextIO, cast

from kraftlake.cli.output.visible import visible


def log_to_stderr(*, debug: bool) -> None:
    """Send the logs of the rooms to stderr, from INFO or DEBUG on."""
    import structlog

    level = logging.DEBUG if debug else logging.INFO
    logging.basicConfig(stream=sys.stderr, level=level, format="%(levelname)s %(name)s: %(message)s", force=True)
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def log_as_service(*, as_json: bool, debug: bool, colours: bool) -> None:
    """Send the logs of the rooms to stderr, a line for each event: as JSON, or as words with key=value.

    Text from a log or a peer can't break a line or steer a terminal. A line that can't be written is lost.
    """
    import structlog

    shown: tuple[Any, ...] = (
        (structlog.processors.JSONRenderer(),)
        if as_json
        else (_visible, structlog.dev.ConsoleRenderer(colors=colours, pad_event_to=10))
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *shown,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if debug else logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", _Unfailing(sys.stderr))),
    )


class _Unfailing:
    """A stream that drops text it can't write: the service outlives a full disk and a collector that has ended."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._stream.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


def _visible(_logger: object, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    return {key: visible(value) if isinstance(value, str) else value for key, value in event.items()}
