"""A directory that lacks a segment is never answered as if nothing were missing, by no command and no Python call."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import pytest

import kraftlake
from kraftlake.api import Source
from kraftlake.records.batch import RecordBatch
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.spark_jobs.data_source import KraftDataSource
from kraftlake.spark_jobs.source_faults import KraftSourceError
from tests.at_least_one import at_least_one
from tests.cli.running import DIRECTORY, run, run_json
from tests.replay.sample_logs import archived, copy_of

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
BASES = (0, 2027, 3532, 5488)
ENDS = (*BASES[1:], 5737)
SNAPSHOT_ENDS = (3038, 4593)
OFFSETS = (100, 2026, 2500, 3037, 3400, 3531, 3600, 4592, 5000, 5487, 5600, 5736) if LONG else (2026, 2500, 3037, 5736)
FEW = (2500, 4592, 5736) if LONG else (2500, 5736)


@attrs.frozen
class Damaged:
    """A copy of the sample without one segment, and what is still known of it."""

    path: Path
    missing: range
    snapshots: bool

    @property
    def held(self) -> range:
        start = self.missing.stop if self.missing.start == 0 else 0
        return range(start, self.missing.start if self.missing.stop == ENDS[-1] else ENDS[-1])

    def holds(self, first: int, last: int) -> bool:
        """Whether the log has all offsets from `first` to `last`."""
        apart = last < self.missing.start or first >= self.missing.stop
        return first > last or (apart and first in self.held and last in self.held)

    def knows(self, offset: int) -> bool:
        """Whether the image at an offset follows from what is there."""
        bases = [0] if self.held.start == 0 else []
        bases += SNAPSHOT_ENDS if self.snapshots else ()
        return any(base <= offset + 1 and self.holds(base, offset) for base in bases)

    def says_what_is_missing(self, fault: str) -> bool:
        """A gap is named by its offsets; a log without its first or last segment just starts or ends elsewhere."""
        inside = self.missing.start > 0 and self.missing.stop < ENDS[-1]
        return not inside or f"offsets {self.missing[0]} to {self.missing[-1]} are missing" in fault


def damaged(folder: Path, missing: int, *, snapshots: bool) -> Damaged:
    directory = copy_of("kafka-4.4", folder / "log")
    (directory / f"{missing:020d}.log").unlink()
    if not snapshots:
        for checkpoint in directory.glob("*.checkpoint"):
            checkpoint.unlink()
    return Damaged(directory, range(missing, ENDS[BASES.index(missing)]), snapshots)


@pytest.fixture(params=BASES if LONG else BASES[1:3])
def missing(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=[True, False], ids=["snapshots", "no-snapshots"])
def copy(request: pytest.FixtureRequest, missing: int, tmp_path: Path) -> Damaged:
    return damaged(tmp_path, missing, snapshots=request.param)


@cache
def whole() -> Source:
    return kraftlake.open(DIRECTORY)


@cache
def asked_of_whole(call: str, *offsets: int) -> Any:
    return PYTHON[call](whole(), *offsets)


PYTHON: dict[str, Callable[..., Any]] = {
    "image": lambda source, at: source.image(at),
    "diff": lambda source, at: source.diff(2026, at).changes,
    "local_changes": lambda source, first, last: source.local_changes(1, first, last).to_json(),
    "records": lambda source, first, last: [record.to_json() for record in source.records(first, last)],
    "changes": lambda source, first, last: [change.offset for change in source.changes(first, last)],
}


def check(source: Source, copy: Damaged, call: str, *offsets: int, known: bool) -> None:
    if known:
        assert PYTHON[call](source, *offsets) == asked_of_whole(call, *offsets)
        return
    with pytest.raises(KraftlakeError) as caught:
        PYTHON[call](source, *offsets)
    assert copy.says_what_is_missing(str(caught.value)), (call, offsets, caught.value)


def test_python_calls_answer_what_is_wholly_known_and_name_what_is_missing(copy: Damaged) -> None:
    source = kraftlake.open(copy.path)
    for at in OFFSETS:
        check(source, copy, "image", at, known=copy.knows(at))
        check(source, copy, "diff", at, known=copy.knows(2026) and copy.knows(at))
    for first, last in at_least_one((first, last) for first in FEW for last in OFFSETS if first < last):
        check(source, copy, "records", first, last, known=copy.holds(first, last))
        behind = copy.knows(first) and copy.holds(first + 1, last)
        check(source, copy, "local_changes", first, last, known=behind)
        check(source, copy, "changes", first, last, known=copy.knows(first - 1) and copy.holds(first, last))


@pytest.mark.parametrize("gap", BASES[1:3])
def test_a_refused_range_gives_nothing_of_its_beginning(gap: int, tmp_path: Path) -> None:
    source = kraftlake.open(damaged(tmp_path, gap, snapshots=True).path)
    for ask in (source.records, source.changes):
        with pytest.raises(KraftlakeError, match="are missing"):
            ask(0, None)


def commands(copy: Damaged, folder: Path) -> Iterator[tuple[list[object], bool]]:
    """Command lines, and whether they have an answer."""
    path = copy.path
    for at in FEW:
        knows, all_before = copy.knows(at), copy.holds(0, at)
        to = ["--to", at, "--json"]
        yield ["image", path, "--at-offset", at, "--json"], knows
        yield ["metrics", path, "--at-offset", at, "--json"], knows
        yield ["diff", path, -1, at, "--json"], knows
        yield ["local-changes", path, "--broker", 1, "--from", 1000, *to], copy.knows(1000) and copy.holds(1001, at)
        yield ["replay", path, "--broker", 1, "--from", 1000, *to], copy.knows(999) and copy.holds(1000, at)
        yield ["events", path, "--from", 1000, *to], copy.knows(999) and copy.holds(1000, at)
        yield ["log", path, "--from", 1000, *to], copy.holds(1000, at)
        yield ["log", path, "--from", at, *to], copy.holds(at, at)
        yield ["export", path, folder / f"{at}.checkpoint", "--at-offset", at, "--json", "--allow-loss"], knows
    yield ["fork", path, folder / "fork", "--at-offset", 5736, "--json"], all_before or _trimmed(copy)
    yield ["import", path, folder / "lake", "--json"], copy.missing.start == 0 or copy.missing.stop == ENDS[-1]


def _trimmed(copy: Damaged) -> bool:
    return copy.missing.start == 0 and copy.snapshots


def test_commands_answer_what_is_wholly_known_and_write_nothing_else(copy: Damaged, tmp_path: Path) -> None:
    written = tmp_path / "written"
    written.mkdir()
    for words, known in at_least_one(commands(copy, written)):
        before = sorted(written.iterdir())
        result = run(*words, code=0 if known else 1)
        if known and words[0] not in ("export", "fork", "import"):
            again = [DIRECTORY if word == copy.path else word for word in words]
            assert result.stdout == run(*again).stdout, words
        if not known:
            assert result.stdout == "", words
            assert copy.says_what_is_missing(result.stderr), (words, result.stderr)
            assert sorted(written.iterdir()) == before, words


@pytest.mark.parametrize("gap", BASES[1:3])
def test_verify_and_quorum_name_the_gap(gap: int, tmp_path: Path) -> None:
    copy = damaged(tmp_path, gap, snapshots=True)
    assert copy.says_what_is_missing(run("verify", copy.path, code=1).stdout)
    (fault,) = [node["fault"] for node in json.loads(run("quorum", copy.path, "--json", code=3).stdout)["nodes"]]
    assert copy.says_what_is_missing(fault)


def test_a_snapshot_behind_the_gap_serves_what_follows_and_says_so(tmp_path: Path) -> None:
    copy = damaged(tmp_path, 2027, snapshots=True)
    result = run("image", copy.path, "--json")
    assert result.stdout == run("image", DIRECTORY, "--json").stdout
    assert "offsets 2027 to 3531 are missing" in result.stderr
    assert "is known only where a snapshot lies between the gap and it" in result.stderr
    source = kraftlake.open(copy.path)
    assert source.replay().base == "00000000000000004593-0000000002.checkpoint"
    (broken,) = source.broken_ranges
    assert (broken.first, broken.last) == (2027, 3531)


def test_a_spark_read_is_refused_when_it_is_loaded(copy: Damaged) -> None:
    for first, last in ((0, 5736), (2500, 2600), (5600, 5736), (3600, 5600)):
        options = {"path": str(copy.path), "startOffset": str(first), "endOffset": str(last)}
        if copy.holds(first, last):
            assert KraftDataSource(options).schema()
            continue
        with pytest.raises(KraftSourceError) as caught:
            KraftDataSource(options).schema()
        assert copy.says_what_is_missing(str(caught.value))


@pytest.mark.parametrize("suffix", [".tar.gz", ".zip"])
def test_an_archive_of_such_a_directory_is_refused_like_it(suffix: str, tmp_path: Path) -> None:
    copy = damaged(tmp_path, 3532, snapshots=True)
    archive = archived(copy.path, tmp_path / f"metadata{suffix}")
    for words in (["image", archive, "--at-offset", 4000], ["log", archive, "--from", 4000, "--to", 4001]):
        result = run(*words, code=1)
        assert result.stdout == ""
        assert "offsets 3532 to 5487 are missing" in result.stderr


def test_a_time_is_an_offset_where_no_missing_one_could_be_of_it(tmp_path: Path) -> None:
    copy = damaged(tmp_path, 3532, snapshots=False)
    times = {batch.last_offset: batch.timestamp for batch in whole().batches()}
    before, inside, behind = times[2026], times[4592], times[5736]
    assert run("image", copy.path, "--at-time", before, "--json").stdout == (
        run("image", DIRECTORY, "--at-time", before, "--json").stdout
    )
    for time in (inside, behind):
        assert "offsets 3532 to 5487 are missing" in run("image", copy.path, "--at-time", time, code=1).stderr
    for time in (before, behind):
        since = datetime.fromtimestamp(time / 1000, UTC)
        assert kraftlake.open(copy.path).offset_since(since) == whole().offset_since(since)


@pytest.fixture
def spoilt(tmp_path: Path) -> tuple[Path, RecordBatch]:
    """A copy without a segment and without snapshots, and a batch of it whose checksum is wrong."""
    path = damaged(tmp_path, 3532, snapshots=False).path
    first = path / f"{0:020d}.log"
    content = bytearray(first.read_bytes())
    batch = next(batch for batch in whole().batches() if batch.base_offset > 1000)
    content[batch.position + 70] ^= 1
    first.write_bytes(content)
    return path, batch


@pytest.mark.parametrize("command", ["image", "events", "metrics", "local-changes", "replay"])
def test_lenient_passes_a_gap_and_a_bad_checksum(command: str, spoilt: tuple[Path, RecordBatch]) -> None:
    path, batch = spoilt
    words: list[object] = [command, path, "--json"]
    words += {"local-changes": ["--broker", 1, "--from", -1], "replay": ["--broker", 1]}.get(command, [])
    assert "are missing" in run(*words, code=1).stderr
    result = run(*words, "--lenient")
    assert result.stdout
    assert f"offsets {batch.base_offset} to {batch.last_offset} are missing" in result.stderr


def test_a_lenient_image_lists_what_could_not_be_read(spoilt: tuple[Path, RecordBatch]) -> None:
    path, batch = spoilt
    skipped = run_json("image", path, "--lenient")["skippedRecords"]
    unread = [(one["offset"], one["reason"]) for one in skipped if one["type"] == "UNREADABLE"]
    assert [offset for offset, _ in unread] == [batch.base_offset, 3532]
    assert "a batch whose CRC does not match its bytes" in unread[0][1]
    assert unread[1][1] == "offsets 3532 to 5487 are missing"


def test_an_export_that_passed_a_gap_is_a_loss(tmp_path: Path) -> None:
    copy = damaged(tmp_path, 3532, snapshots=False)
    target = tmp_path / "out.checkpoint"
    assert "has diverged" in run("export", copy.path, target, "--lenient", code=1).stderr
    assert not target.exists()
