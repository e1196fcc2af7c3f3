"""What Kafka's own metadata shell printed of the samples' checkpoints."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

from tests.cli.running import SAMPLES

NAMES = ("kafka-4.4", "crash-torn")
_PROMPT = ">> "


def checkpoint(sample: str) -> Path:
    """The checkpoint that was asked."""
    (recorded,) = (SAMPLES / sample / "expected").glob("shell-find-*.gz")
    name = re.sub(r"shell-find-(.*)\.txt\.gz", r"\1", recorded.name)
    return SAMPLES / sample / "log" / "__cluster_metadata-0" / name


def _lines(sample: str, command: str) -> Iterator[str]:
    """The lines that a command printed, without the shell's own."""
    (recorded,) = (SAMPLES / sample / "expected").glob(f"shell-{command}-*.gz")
    lines = gzip.decompress(recorded.read_bytes()).decode().splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(_PROMPT))
    for line in lines[first:]:
        if shown := line.removeprefix(_PROMPT):
            yield shown


def found(sample: str) -> list[str]:
    """The paths that `find` printed."""
    return list(_lines(sample, "find"))


def texts(sample: str) -> dict[str, str]:
    """The values that `tree` printed, by the path of their leaf."""
    made: dict[str, str] = {}
    path: list[str] = []
    for line in _lines(sample, "tree"):
        depth = (len(line) - len(line.lstrip(" "))) // 2
        if line.endswith(":"):
            path[depth:] = [line.strip()[:-1]]
        else:
            assert depth == len(path), line
            made["/image/" + "/".join(path)] = line.strip()
    return made
