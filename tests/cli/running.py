"""The command as a user runs it: in this process, or in one of its own."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from kraftlake.cli.application import application

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"
SAMPLE = SAMPLES / "kafka-4.4"
DIRECTORY = SAMPLE / "log" / "__cluster_metadata-0"
TORN = SAMPLES / "crash-torn" / "log" / "__cluster_metadata-0"
LEGACY = SAMPLES / "legacy-33" / "log" / "__cluster_metadata-0"


def run(*words: object, code: int = 0, width: int | None = None, **environment: str) -> Result:
    """Run a command line in this process and hold its exit code against `code`."""
    variables: dict[str, str | None] = {"COLUMNS": None if width is None else str(width), **environment}
    result = CliRunner().invoke(application, [str(word) for word in words], env=variables, prog_name="kraftlake")
    assert result.exit_code == code, f"exit code {result.exit_code}\n{result.stderr}\n{result.stdout[:2000]}"
    assert "Traceback" not in result.stderr
    return result


def run_json(*words: object) -> Any:
    """The one JSON value that a command prints with --json."""
    return json.loads(run(*words, "--json").stdout)


def run_image(*words: object) -> dict[str, Any]:
    """What `image --json --show-secrets` prints, without what an image alone does not show: which cluster, and when."""
    printed = dict(run_json("image", *words, "--show-secrets"))
    del printed["clusterId"], printed["timestamp"]
    return printed


def fault(*words: object, code: int = 1) -> str:
    """The one sentence on stderr of a command that fails, with and without --json; nothing may be on stdout."""
    result = run(*words, code=code)
    as_json = run(*words, "--json", code=code)
    assert as_json.stdout == result.stdout == ""
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, result.stderr
    assert errors[0] in as_json.stderr
    return errors[0].removeprefix("error: ")


def process(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "kraftlake.cli", *map(str, words)],
        cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def unzipped_json(path: Path) -> Any:
    """The JSON in a .json.gz file."""
    return json.loads(gzip.decompress(path.read_bytes()))
