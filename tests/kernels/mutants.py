"""Damaged copies of the samples' logs and snapshots, which commands read by compiled code.

`python -m tests.kernels.mutants FIRST COUNT` ends with exit code 1 where a command finds a fault in kraftlake itself,
or a kernel that checks each index finds one outside of its buffer. Mutant number N is the same in each run.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kraftlake.cli.application import application
from tests.records.test_batch import signed

SAMPLES = sorted((Path(__file__).resolve().parents[2] / "samples").glob("*/log/__cluster_metadata-0"))
LENGTH_AT, RECORDS_AT = 8, 61
COMMANDS = (
    ("image", "{log}", "--json"),
    ("events", "{log}", "--json"),
    ("metrics", "{log}", "--json"),
    ("local-changes", "{log}", "--broker", "1", "--from", "0", "--json"),
    ("import", "{log}", "{lake}"),
    ("tables", "{lake}"),
    ("image", "{lake}", "--json"),
    ("verify", "{lake}"),
)


def batches_of(data: bytes) -> list[tuple[int, int]]:
    """Where the batches of a file begin and end."""
    found, at = [], 0
    while at + RECORDS_AT < len(data):
        end = at + 12 + int.from_bytes(data[at + LENGTH_AT : at + LENGTH_AT + 4], "big")
        if end > len(data):
            break
        found.append((at, end))
        at = end
    return found


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Other bytes in some batches, in half of them in records alone, mostly with a right checksum."""
    changed = bytearray(data)
    batches = batches_of(data)
    for _ in range(chance.choice((1, 1, 2, 5, 20))):
        begin, end = chance.choice(batches)
        first = begin + (RECORDS_AT if chance.random() < 0.5 and end > begin + RECORDS_AT else 12)
        for _ in range(chance.choice((1, 1, 1, 2, 8))):
            at = chance.randrange(first, end)
            changed[at] = chance.choice(
                (0, 1, 0x7F, 0x80, 0xFF, changed[at] ^ 1 << chance.randrange(8), chance.randrange(256))
            )
        if chance.random() < 0.9:
            changed[begin:end] = signed(bytes(changed[begin:end]))
    return bytes(changed if chance.random() < 0.9 else changed[: chance.randrange(len(changed))])


def mutant(number: int, folder: Path) -> Path:
    """A copy of a sample's directory with one of its files damaged."""
    chance = random.Random(number)
    log = folder / SAMPLES[0].name
    shutil.copytree(SAMPLES[number % len(SAMPLES)], log)
    whole = [path for path in sorted(log.iterdir()) if path.suffix in (".log", ".checkpoint") and path.stat().st_size]
    victim = chance.choice(whole)
    victim.write_bytes(mutated(victim.read_bytes(), chance))
    return log


def read(number: int) -> list[str]:
    """What went wrong with a mutant: the commands that found a fault in kraftlake itself."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        log = mutant(number, Path(folder))
        for command in COMMANDS:
            words = [word.format(log=log, lake=Path(folder) / "lake") for word in command]
            result = CliRunner().invoke(application, words, prog_name="kraftlake")
            if "a fault in kraftlake itself" in result.stderr or "Traceback" in result.stderr:
                wrong.append(f"mutant {number}: {' '.join(words)}: {result.stderr[-2000:]}")
    return wrong


def read_in_bulk(patch: pytest.MonkeyPatch) -> None:
    """Let compiled code read small logs, too."""
    for name in (
        "replay.reading.chunks.BULK_FROM",
        "replay.reading.chunks.BULK_SNAPSHOT_FROM",
        "replay.verify.verification.BULK_FROM",
    ):
        patch.setattr(f"kraftlake.{name}", 0)


def main(first: int, count: int) -> int:
    """Read mutants, one after another; the exit code."""

    def end(unraisable: Any) -> None:
        print(f"a kernel: {unraisable.exc_value!r}", flush=True)
        os._exit(1)

    sys.unraisablehook = end
    wrong = []
    with pytest.MonkeyPatch.context() as patch:
        read_in_bulk(patch)
        for number in range(first, first + count):
            print(f"mutant {number}", flush=True)
            wrong += read(number)
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
