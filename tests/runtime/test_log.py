"""What is logged without anybody having said where to."""

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


def test_who_configures_structlog_decides() -> None:
    stdout, stderr = said("import structlog; structlog.configure(logger_factory=structlog.PrintLoggerFactory())")
    assert stderr == ""
    assert "careful" in stdout
