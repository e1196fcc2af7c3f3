"""A replay and a verification report how far they are."""

from __future__ import annotations

import pytest

from kraftlake.api import open_source
from kraftlake.replay.reading import chunks
from kraftlake.replay.reading.progress import with_progress
from tests.cli.running import DIRECTORY, TORN
from tests.replay.made_logs import no_op

Progress = list[tuple[str, int, int]]


def offsets(steps: Progress, phase: str, end: int) -> list[int]:
    """The progress of a phase, of which every call says the same end."""
    assert {total for name, _, total in steps if name == phase} == {end}
    return [done for name, done, _ in steps if name == phase]


@pytest.mark.parametrize("in_bulk", [True, False])
def test_a_replay_reports_progress_after_each_chunk(monkeypatch: pytest.MonkeyPatch, in_bulk: bool) -> None:
    monkeypatch.setattr(chunks, "BULK_FROM", 1 if in_bulk else 1 << 30)
    source = open_source(DIRECTORY)
    steps: Progress = []
    replay = source.replay(4000, from_snapshot=False, progress=lambda *args: steps.append(args))
    done = offsets(steps, "replaying", 4001)
    assert done == sorted(done)
    assert done[-1] == 4001
    assert (len(done) > 100) is not in_bulk
    assert replay.image == source.image(4000, from_snapshot=False)


def test_local_changes_report_progress_of_their_snapshot_and_both_offsets() -> None:
    steps: Progress = []
    source = open_source(DIRECTORY)
    changes = source.local_changes(1, 4600, 4700, progress=lambda *args: steps.append(args))
    assert changes.to_json() == source.local_changes(1, 4600, 4700).to_json()
    assert steps[0] == ("loading", 0, 0)
    replayed = [(done, total) for phase, done, total in steps if phase == "replaying"]
    assert (4601, 4601) in replayed
    assert replayed[-1] == (4701, 4701)


@pytest.mark.parametrize("directory", [DIRECTORY, TORN])
def test_a_verification_reports_progress_of_the_files_then_of_the_replay(directory: object) -> None:
    steps: Progress = []
    source = open_source(str(directory))
    report = source.verify(progress=lambda *args: steps.append(args))
    assert report == source.verify()
    for phase in ("checking", "replaying"):
        done = offsets(steps, phase, source.end_offset)
        assert done == sorted(done)
        assert done[-1] == source.end_offset
    phases = list(dict.fromkeys(phase for phase, _, _ in steps))
    assert phases == ["checking", "loading", "replaying"]


def test_without_a_progress_callback_the_chunks_are_returned_unchanged() -> None:
    parts = [no_op(offset) for offset in range(3)]
    assert with_progress(parts, None, "replaying", 3) is parts
