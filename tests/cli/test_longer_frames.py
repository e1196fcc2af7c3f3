"""A log whose records have longer frames than Kafka writes: their numbers count, not how many bytes they take."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import attrs
import pytest

import kraftlake
from kraftlake.records.batch import encode_batch, read_batches
from tests.cli.running import DIRECTORY, run

QUESTIONS = {
    "doctor": 3, "events --all": 0, "metrics": 0, "log --type partition_change": 0,
    "blame topic/t-22-3h4/partition/3/isr --all": 0, "local-changes --broker 3 --from 100 --to 5000": 0,
}  # fmt: skip
"""Commands, LOG behind their names, and their exit codes."""


def longer(value: bytes, place: int) -> bytes:
    """A value one of the three numbers of whose frame takes two bytes."""
    return value[:place] + bytes((value[place] | 0x80, 0)) + value[place + 1 :]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The segments of a sample, and the same with longer frames."""
    plain, odd = (tmp_path_factory.mktemp(name) / DIRECTORY.name for name in ("plain", "odd"))
    for folder in (plain, odd):
        folder.mkdir()
    for segment in sorted(DIRECTORY.glob("*.log")):
        shutil.copy(segment, plain)
        written = bytearray()
        for batch in read_batches(segment.read_bytes(), file=segment.name):
            values = tuple(longer(value, at % 3) for at, value in enumerate(batch.values, start=batch.base_offset))
            written += encode_batch(batch if batch.control else attrs.evolve(batch, values=values))
        (odd / segment.name).write_bytes(written)
    return plain, odd


def test_the_images_are_the_same(logs: tuple[Path, Path]) -> None:
    plain, odd = map(kraftlake.open, logs)
    assert plain.image() == odd.image()
    assert plain.image(2026) == odd.image(2026)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answers_are_the_same(logs: tuple[Path, Path], question: str) -> None:
    name, *options = shlex.split(question)
    plain, odd = (run(name, log, *options, "--json", code=QUESTIONS[question]).stdout for log in logs)
    assert plain
    assert odd.replace(str(logs[1]), str(logs[0])) == plain
