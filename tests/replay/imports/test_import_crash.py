"""Imports that are killed, or run at once: the lake holds a whole prefix, which the next import completes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kraftlake.api import open_source
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.imports.new_lake import is_lake
from kraftlake.runtime.errors import LakeError
from tests.replay.sample_logs import directory_of

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
SAMPLE = directory_of("kafka-4.4")

KILLED = """
import os, signal, sys
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.metadata_log.append import log_commit as appending
from kraftlake.replay.imports.import_log import import_source

source, lake, calls = sys.argv[1], sys.argv[2], int(sys.argv[3])
left = calls

def counted(name):
    real = getattr(Disk, name)
    def call(self, *args):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self, *args)
    setattr(Disk, name, call)

for name in ("make_folder", "write", "fsync", "link", "unlink"):
    counted(name)
appending.MAX_COMMIT_ROWS = 1000
import_source(source, lake)
print("done")
"""

AT_ONCE = """
import sys
from kraftlake.metadata_log.append import log_commit as appending
from kraftlake.replay.imports.import_log import import_source
from kraftlake.runtime.errors import LakeError

appending.MAX_COMMIT_ROWS = 50
print("ready", flush=True)
sys.stdin.readline()
try:
    import_source(sys.argv[1], sys.argv[2])
except LakeError as error:
    print("LakeError:", error)
else:
    print("done")
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> MetadataLog:
    lake = tmp_path_factory.mktemp("whole") / "lake"
    import_source(SAMPLE, lake)
    return MetadataLog.open(lake)


def same(lake: Path, whole: MetadataLog) -> None:
    log = MetadataLog.open(lake)
    assert log.rows().equals(whole.rows())
    assert (log.committed_to, log.cluster_id) == (whole.committed_to, whole.cluster_id)
    assert [s.name for s in log.snapshots()] == [s.name for s in whole.snapshots()]


@pytest.mark.parametrize("calls", [1, 4, 9, 15, 22, 28, 36, 41, 47, 60] if LONG else [1, 9, 28, 47, 60])
def test_an_import_killed_at_any_write_leaves_a_whole_prefix_which_the_next_one_completes(
    calls: int, whole: MetadataLog, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(SAMPLE), str(lake), str(calls)], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    if is_lake(lake):
        log = MetadataLog.open(lake)
        assert log.rows().equals(whole.rows(0, log.end_offset - 1))
    elif lake.exists() and any(lake.iterdir()):
        with pytest.raises(LakeError, match=r"was begun and never finished.*make it again"):
            open_source(lake)
    import_source(SAMPLE, lake)
    same(lake, whole)


def test_an_import_that_another_one_overtakes_says_so(whole: MetadataLog, tmp_path: Path) -> None:
    lake = tmp_path / "lake"

    def overtake(phase: str, done: int, total: int) -> None:
        if not lake.exists():
            import_source(SAMPLE, lake)

    with pytest.raises(LakeError, match=r"Another import made the lake .* run it again, and it goes on"):
        import_source(SAMPLE, lake, progress=overtake)
    same(lake, whole)


def test_two_imports_at_once_give_one_sound_lake(whole: MetadataLog, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", AT_ONCE, str(SAMPLE), str(lake)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = []
    for process in running:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        said.append(out.splitlines()[-1])
    assert all(line == "done" or line.startswith("LakeError: ") for line in said), said
    log = MetadataLog.open(lake)
    assert log.rows().equals(whole.rows(0, log.end_offset - 1))
    import_source(SAMPLE, lake)
    same(lake, whole)
