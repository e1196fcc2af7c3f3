"""Where numba is missing or broken, records are replayed as objects: the same answers, and what is wrong is said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings

from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.serde import ApiMessageAndVersion
from tests.histories import histories

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
HISTORIES = max(10, settings.default.max_examples // 10)
TIME = 1_700_000_000_000

ANSWERS = """
import json, sys
if sys.argv[1] == "missing":
    sys.modules["numba"] = None
if sys.argv[1] == "can't compile":
    sys.modules["kraftlake.kernels.aot.compiler"] = None
import kraftlake
from kraftlake.image import image_to_json
from kraftlake.replay.reading import chunks
from kraftlake.runtime.errors import KraftlakeError

chunks.BULK_FROM = chunks.BULK_SNAPSHOT_FROM = 0
for path in sys.argv[2:]:
    try:
        source = kraftlake.open(path)
        middle, last = source.last_image_offset // 2, source.last_image_offset
        told = [image_to_json(source.image(at), show_secrets=True) for at in (middle, last)]
        told += [source.local_changes(broker, middle, last).to_json() for broker in range(1, 5)]
        told.append(source.diff(middle, last).to_json())
    except KraftlakeError as fault:
        told = str(fault)
    print(json.dumps(told, sort_keys=True, default=str))
print("bulk" if "kraftlake.delta.topics.bulk_change" in sys.modules else "objects")
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The samples, and random histories as log files."""
    folder = tmp_path_factory.mktemp("histories")
    files = [path.parent for path in sorted(SAMPLES.glob("**/00000000000000000000.log"))]

    @settings(max_examples=HISTORIES, database=None)
    @given(histories())
    def write(records: list[ApiMessageAndVersion]) -> None:
        file = folder / str(len(files)) / "00000000000000000000.log"
        file.parent.mkdir()
        batches = (RecordBatch.of(at, 1, TIME + at, records[at : at + 5]) for at in range(0, len(records), 5))
        file.write_bytes(b"".join(map(encode_batch, batches)))
        files.append(file)

    write()
    assert len(files) > HISTORIES
    return list(map(str, files))


def answers(how: str, logs: list[str], **environment: str) -> tuple[list[str], str]:
    """What a process of its own says of each log and of the way it went, and its stderr."""
    command = [sys.executable, "-W", "error", "-c", ANSWERS, how, *logs]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


@pytest.fixture(scope="module")
def compiled_answers(logs: list[str]) -> list[str]:
    told, _ = answers("as it is", logs)
    assert told.pop() == "bulk"
    assert len(told) == len(logs)
    return told


def test_without_numba_all_answers_are_the_same(logs: list[str], compiled_answers: list[str]) -> None:
    note = "kraftlake replays without compiled code, slower: pip install 'kraftlake[fast]' brings it.\n"
    assert answers("missing", logs) == ([*compiled_answers, "objects"], note)


@pytest.mark.parametrize("module", ["numba", "llvmlite"])
def test_with_a_broken_numba_all_answers_are_the_same(
    tmp_path: Path, logs: list[str], compiled_answers: list[str], module: str
) -> None:
    (tmp_path / "packages" / module).mkdir(parents=True)
    (tmp_path / "packages" / module / "__init__.py").write_text("raise OSError('no such library: libllvm')")
    broken = {"PYTHONPATH": str(tmp_path / "packages"), "KRAFTLAKE_CACHE": str(tmp_path / "cache")}
    told, said = answers("as it is", logs, **broken)
    assert told == [*compiled_answers, "objects"]
    assert said.count("slower: numba ") == said.count("no such library: libllvm") == 1


def test_with_a_numba_that_cannot_compile_all_answers_are_the_same(
    tmp_path: Path, logs: list[str], compiled_answers: list[str]
) -> None:
    told, said = answers("can't compile", logs, KRAFTLAKE_CACHE=str(tmp_path))
    assert told == [*compiled_answers, "objects"]
    assert said.count("numba can't compile probe") == 1
