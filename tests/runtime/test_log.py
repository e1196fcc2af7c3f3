"""Logging without a configuration of structlog."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from kraftlake.runtime.log import get_logger
logger = get_logger("room")
{before}
logger = logger.bind(offset=7)
logger.info("unasked")
logger.warning("careful")
"""


def said(before: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before)], capture_output=True, text=True, check=True
    )
    return done.stdout, done.stderr


def test_warnings_go_to_stderr_and_nothing_to_stdout() -> None:
    stdout, stderr = said("")
    assert stdout == ""
    assert "careful" in stderr
    assert "offset" in stderr
    assert "unasked" not in stderr


def test_an_existing_configuration_of_structlog_has_precedence() -> None:
    stdout, stderr = said("import structlog; structlog.configure(logger_factory=structlog.PrintLoggerFactory())")
    assert stderr == ""
    assert "careful" in stdout


def test_structlog_is_imported_at_the_first_warning() -> None:
    count = "import sys\ndef there(): print('structlog' in sys.modules)\n"
    printed = said(count + "there(); logger.debug('unasked'); logger.bind(epoch=1).info('unasked'); there()")[0]
    assert printed.split() == ["False", "False"]
    assert "epoch" in said("logger.bind(epoch=1).warning('careful')")[1]
    assert "ValueError" in said("try:\n    int('x')\nexcept ValueError:\n    logger.exception('careful')")[1]


def test_a_later_configuration_of_structlog_enables_events_below_a_warning() -> None:
    before = "bound = logger.bind(epoch=3)\nimport structlog\nstructlog.configure()\nbound.info('asked', at=9)"
    stdout, _ = said(before)
    assert all(word in stdout for word in ("asked", "epoch", "at", "unasked"))


def test_without_logs_restores_the_previous_configuration() -> None:
    quiet = "with without_logs():\n    logger.error('unheard')\n"
    stdout, stderr = said("from kraftlake.runtime.log import without_logs\n" + quiet)
    assert stdout == ""
    assert "careful" in stderr
    assert "un" not in stderr
    chosen = "import structlog; structlog.configure(logger_factory=structlog.PrintLoggerFactory())\n"
    stdout, stderr = said(chosen + "from kraftlake.runtime.log import without_logs\n" + quiet)
    assert stderr == ""
    assert all(word in stdout for word in ("unasked", "careful"))
    assert "unheard" not in stdout
