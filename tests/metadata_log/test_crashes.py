from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from deltalake import DeltaTable

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import LOG_SCHEMA
from tests.metadata_log.doomed_writer import batches_at
from tests.metadata_log.log_batches import snapshot_batches

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
KILLS = 300 if LONG else 24
ROOT = Path(__file__).resolve().parents[2]
RACERS = 4
APPENDS = 200 if LONG else 25


def start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.metadata_log.doomed_writer", *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def started_together(lines: int, *commands: tuple[object, ...]) -> list[list[tuple[str, str]]]:
    """Run processes that wait for `lines` lines in all, given to all of them at once; what each of them said."""
    processes = [start(*command) for command in commands]
    for _ in range(lines):
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
    said = []
    for process in processes:
        out, _ = process.communicate()
        assert process.returncode == 0
        said.append([(line.split()[0], line.split()[1]) for line in out.splitlines()])
    return said


def killed_writers(path: Path, kills: int, seed: int) -> Iterator[list[tuple[str, str]]]:
    """Writers that kill themselves, one after the other; what each said before, given while none of them lives."""
    chance = random.Random(seed)
    with start("die", path) as nursery:
        assert nursery.stdin is not None
        assert nursery.stdout is not None
        for _ in range(kills):
            nursery.stdin.write(f"{chance.randrange(2**32)}\n")
            nursery.stdin.flush()
            said = []
            while not (line := nursery.stdout.readline()).startswith("dead"):
                assert line, "the writers' parent died"
                said.append((line.split()[0], line.split()[1]))
            assert line.split()[1] == str(int(signal.SIGKILL))
            yield said
        nursery.stdin.close()


def expected(offset: int, end_offset: int) -> list[RecordBatch]:
    """What lies between two offsets at which appends may begin."""
    batches: list[RecordBatch] = []
    while offset < end_offset:
        batches += batches_at(offset)
        offset = batches[-1].last_offset + 1
    assert offset == end_offset, "an append is there in part"
    return batches


def test_a_writer_killed_at_any_moment_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    acknowledged = checked = 0
    snapshots: set[int] = set()
    for said in killed_writers(tmp_path / "lake", KILLS, seed=11):
        for kind, end in said:
            if kind == "snapshot":
                snapshots.add(int(end))
            else:
                assert int(kind) >= acknowledged
                acknowledged = int(end)
        if not (tmp_path / "lake" / "log" / "_delta_log" / f"{0:020d}.json").exists():
            assert acknowledged == 0
            continue
        log = MetadataLog.open(tmp_path / "lake")
        assert log.end_offset >= acknowledged
        assert list(log.batches(checked)) == expected(checked, log.end_offset)
        checked = log.end_offset
    assert list(log.batches()) == expected(0, log.end_offset)
    kept = log.snapshots()
    assert snapshots <= {snapshot.end_offset for snapshot in kept}
    assert all(list(snapshot.batches()) == snapshot_batches(snapshot.end_offset % 9 + 1) for snapshot in kept)
    assert acknowledged > KILLS, "too few appends to show anything"
    assert snapshots
    rows = DeltaTable(tmp_path / "lake" / "log").to_pyarrow_table().cast(LOG_SCHEMA).sort_by("offset")
    assert rows.equals(MetadataLog.open(tmp_path / "lake").rows())


def test_of_racing_appenders_exactly_one_wins_each_version(tmp_path: Path) -> None:
    MetadataLog.create(tmp_path / "lake")
    said = started_together(1, *(("race", tmp_path / "lake", f"-racer{racer}", APPENDS) for racer in range(RACERS)))
    log = MetadataLog.open(tmp_path / "lake")
    assert log.version == RACERS * APPENDS
    won = {int(base): (int(end), racer) for racer, lines in enumerate(said) for base, end in lines}
    assert len(won) == RACERS * APPENDS
    found = list(log.batches())
    assert [(batch.base_offset, batch.last_offset + 1) for batch in found] == [
        (base, end) for base, (end, _) in sorted(won.items())
    ]
    for batch in found:
        assert f"-racer{won[batch.base_offset][1]}".encode() in batch.values[0]


def test_of_racing_creators_exactly_one_makes_the_lake(tmp_path: Path) -> None:
    attempts = 50 if LONG else 8
    commands = [("create", tmp_path, f"cluster-{racer}", attempts) for racer in range(RACERS)]
    said = started_together(attempts, *commands)
    winners = sorted(line for lines in said for line in lines)
    assert sorted(int(attempt) for attempt, _ in winners) == list(range(attempts))
    for attempt, name in winners:
        assert MetadataLog.open(tmp_path / f"lake{attempt}").cluster_id == name
