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
from kraftlake.metadata_log.maintenance.checkpointing import checkpoint_if_due
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import LeaderChangeMessage
from kraftlake.records.metadata_records import TopicRecord
from kraftlake.records.rows import LOG_SCHEMA
from tests.metadata_log.delta_protocol import check_commits
from tests.metadata_log.doomed_writer import batches_at, reign_batches
from tests.metadata_log.log_batches import snapshot_batches

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
KILLS = 90 if LONG else 9
"""Of the writers; `maintenance/test_upkeep_crashes.py` kills compactions and upkeep."""
CHECKPOINT_EVERY = 10
ROOT = Path(__file__).resolve().parents[2]
RACERS = 4
APPENDS = 60 if LONG else 10
MANY_RACERS, MANY_APPENDS = (10, 200) if LONG else (4, 20)
CLAIMANTS = 3
CLAIMS = 60 if LONG else 12


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
            go(process)
    return [said_to_the_end(process) for process in processes]


def go(process: subprocess.Popen[str]) -> None:
    """Give a process a line."""
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def said_to_the_end(process: subprocess.Popen[str]) -> list[tuple[str, str]]:
    """What a process says from now on until it ends."""
    out, _ = process.communicate()
    assert process.returncode == 0
    return [(line.split()[0], line.split()[1]) for line in out.splitlines()]


def killed_writers(path: Path, kills: int, seed: int, how: str = "die") -> Iterator[list[tuple[str, str]]]:
    """Writers that kill themselves, one after the other; what each said before, given while none of them lives."""
    chance = random.Random(seed)
    with start(how, path) as nursery:
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
    for number, said in enumerate(killed_writers(tmp_path / "lake", KILLS, seed=11)):
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
        if number % CHECKPOINT_EVERY == 0:
            checkpoint_if_due(log.path / "log", Disk("os"), UpkeepPolicy(), force=True)
    assert list(log.batches()) == expected(0, log.end_offset)
    kept = log.snapshots()
    assert snapshots <= {snapshot.end_offset for snapshot in kept}
    assert all(list(snapshot.batches()) == snapshot_batches(snapshot.end_offset % 9 + 1) for snapshot in kept)
    assert acknowledged > KILLS, "too few appends to show anything"
    assert snapshots
    rows = DeltaTable(tmp_path / "lake" / "log").to_pyarrow_table().cast(LOG_SCHEMA).sort_by("offset")
    assert rows.equals(MetadataLog.open(tmp_path / "lake").rows())
    check_commits(tmp_path / "lake" / "log")


def test_a_claimant_killed_at_any_moment_loses_nothing_and_the_next_goes_on_with_the_next_epoch(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    MetadataLog.create(lake, "cluster", "controlled")
    acknowledged: dict[int, int] = {}
    claimed: list[int] = []
    for number, said in enumerate(killed_writers(lake, KILLS, seed=13, how="reign")):
        if number % CHECKPOINT_EVERY == 0:
            checkpoint_if_due(lake / "log", Disk("os"), UpkeepPolicy(), force=True)
        for first, second in said:
            if second == "claimed":
                claimed.append(int(first))
            else:
                acknowledged[int(first)] = int(second)
    log = MetadataLog.open(lake)
    offset, epoch = 0, 0
    for batch in (found := iter(log.batches())):
        assert batch.base_offset == offset
        if batch.control:
            epoch += 1
            assert batch.epoch == epoch
            offset += 1
            continue
        whole = [batch, next(found)]
        assert whole == reign_batches(offset, epoch), "an append is there in part"
        end = whole[-1].last_offset + 1
        assert acknowledged.pop(offset, end) == end
        offset = end
    assert not acknowledged, "something acknowledged is not there"
    assert claimed == sorted(set(claimed))
    assert log.epoch == epoch >= claimed[-1]
    assert len(claimed) > KILLS // 4, "too few claims to show anything"
    check_commits(lake / "log")


def test_three_claimants_in_a_loop_never_append_at_an_older_epoch_after_a_newer_claim(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    MetadataLog.create(lake, "cluster", "controlled")
    claimants = [start("lead", lake, node, CLAIMS) for node in range(CLAIMANTS)]
    events = []
    for claimant in claimants:  # the first claims are made before any append: all but the last are fenced
        go(claimant)
        assert claimant.stdout is not None
        epoch, what = claimant.stdout.readline().split()
        events.append((epoch, what))
    for claimant in claimants:
        go(claimant)
    for claimant in claimants:
        events += said_to_the_end(claimant)
    assert {("1", "fenced"), ("2", "fenced")} <= {*events}
    assert check_reigns(lake, events) == CLAIMANTS * CLAIMS


def test_three_claimants_killed_again_and_again_never_append_at_an_older_epoch(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    MetadataLog.create(lake, "cluster", "controlled")
    chance = random.Random(17)
    nurseries = [start("usurp", lake, node) for node in range(CLAIMANTS)]
    events = []
    for nursery in nurseries:  # all of them live and die at the same time
        assert nursery.stdin is not None
        nursery.stdin.write("".join(f"{chance.randrange(2**32)}\n" for _ in range(KILLS // CLAIMANTS)))
        nursery.stdin.flush()
    for nursery in nurseries:
        out, _ = nursery.communicate()
        said = [(line.split()[0], line.split()[1]) for line in out.splitlines()]
        assert said.count(("dead", str(int(signal.SIGKILL)))) == KILLS // CLAIMANTS
        events += [event for event in said if event[0] != "dead"]
    assert check_reigns(lake, events) >= len({epoch for epoch, what in events if what == "claimed"}) > KILLS // 4


def check_reigns(lake: Path, events: list[tuple[str, str]]) -> int:
    """Check a log against what its claimants said; the last epoch."""
    assert not [event for event in events if event[1] == "unfenced"]
    leader, epoch, offset = -1, 0, 0
    acknowledged = {int(base): int(of) for base, of in events if of.isdecimal()}
    assert len(acknowledged) == sum(of.isdecimal() for _, of in events), "two appends at one offset were acknowledged"
    for batch in MetadataLog.open(lake).batches():
        assert batch.base_offset == offset
        offset = batch.last_offset + 1
        (message,) = [part.message for part in batch.messages()]
        if isinstance(message, LeaderChangeMessage):
            assert batch.epoch == epoch + 1
            leader, epoch = message.leader_id, batch.epoch
        else:
            assert isinstance(message, TopicRecord)
            assert batch.epoch == epoch, "an append of an older epoch was accepted after a newer claim"
            assert message.name == f"topic-{batch.base_offset}-node{leader}"
            assert acknowledged.pop(batch.base_offset, epoch) == epoch
    assert not acknowledged
    check_commits(lake / "log")
    return epoch


def test_of_racing_appenders_exactly_one_wins_each_version(tmp_path: Path) -> None:
    racers, appends = MANY_RACERS, MANY_APPENDS
    MetadataLog.create(tmp_path / "lake")
    said = started_together(1, *(("race", tmp_path / "lake", f"-racer{racer}", appends) for racer in range(racers)))
    log = MetadataLog.open(tmp_path / "lake")
    assert log.version == racers * appends
    won = {int(base): (int(end), racer) for racer, lines in enumerate(said) for base, end in lines}
    assert len(won) == racers * appends
    found = list(log.batches())
    assert [(batch.base_offset, batch.last_offset + 1) for batch in found] == [
        (base, end) for base, (end, _) in sorted(won.items())
    ]
    for batch in found:
        assert f"-racer{won[batch.base_offset][1]}".encode() in batch.values[0]
    check_commits(tmp_path / "lake" / "log")


def test_of_racing_creators_exactly_one_makes_the_lake(tmp_path: Path) -> None:
    attempts = 50 if LONG else 4
    commands = [("create", tmp_path, f"cluster-{racer}", attempts) for racer in range(RACERS)]
    said = started_together(attempts, *commands)
    winners = sorted(line for lines in said for line in lines)
    assert sorted(int(attempt) for attempt, _ in winners) == list(range(attempts))
    for attempt, name in winners:
        assert MetadataLog.open(tmp_path / f"lake{attempt}").cluster_id == name
