"""A cluster as a user starts it, of processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.waiting import PATIENCE


@contextmanager
def cluster_up(folder: Path, *words: object) -> Iterator[dict[str, Any]]:
    """What `kraftlake cluster up --json` says when all nodes are up; it ends by Ctrl-C, in order."""
    command = [sys.executable, "-m", "kraftlake", "cluster", "up", folder / "lake", "--json", *words]
    with (
        (folder / "stderr").open("wb") as stderr,
        subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=stderr) as process,
    ):
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 0, (folder / "stderr").read_text()
        finally:
            process.kill()
