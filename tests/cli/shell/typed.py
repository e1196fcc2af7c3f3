"""The shell as a script has it, in this process."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from kraftlake.cli.application import application
from tests.cli.running import DIRECTORY


def typed(*lines: str, source: object = DIRECTORY, code: int = 0, options: tuple[str, ...] = ()) -> Result:
    """What the shell of a source says to lines on its stdin; its exit code is held against `code`."""
    words = ["shell", str(source), *options]
    script = "".join(f"{line}\n" for line in lines)
    variables = {"COLUMNS": None}  # as wide as a pipe, whatever runs the tests
    result = CliRunner(env=variables).invoke(application, words, input=script, prog_name="kraftlake")
    assert result.exit_code == code, f"exit code {result.exit_code}\n{result.stderr}\n{result.stdout[:2000]}"
    assert "Traceback" not in result.stderr
    assert "a fault in kraftlake" not in result.stderr
    return result


def typed_json(*lines: str, source: object = DIRECTORY, options: tuple[str, ...] = ()) -> list[Any]:
    """The JSON lines of the shell with --json."""
    printed = typed(*lines, source=source, options=("--json", *options)).stdout
    return [json.loads(line) for line in printed.splitlines()]
