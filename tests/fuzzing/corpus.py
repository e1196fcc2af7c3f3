"""Inputs that reach code which the seeds do not, found by fuzzing: a file for each target, an input a line, in base64.

`python -m tests.fuzzing.corpus TARGET FOLDER` adds inputs of a folder that the fuzzer wrote. `found.txt` has those by
which a fault was found, each behind the name of its target.
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"
MOST, LONGEST = 60, 600
"""The number of inputs that are kept of a target, and their longest, in bytes."""


def kept_inputs(target: str) -> list[bytes]:
    """The kept inputs of a target."""
    path = FOLDER / f"{target}.txt"
    return [base64.b64decode(line) for line in path.read_text("ascii").split()] if path.exists() else []


def keep_inputs(target: str, folder: Path) -> None:
    """Add inputs of a folder of the fuzzer's, each of which reached new code, to those that are kept."""
    found = {*kept_inputs(target), *(path.read_bytes() for path in folder.iterdir())}
    chosen = sorted((data for data in found if len(data) <= LONGEST), key=lambda data: (len(data), data))[:MOST]
    lines = "".join(f"{base64.b64encode(data).decode()}\n" for data in chosen)
    (FOLDER / f"{target}.txt").write_text(lines, "ascii")


if __name__ == "__main__":
    keep_inputs(sys.argv[1], Path(sys.argv[2]))
