"""What a record is blamed for is what a search by brute force finds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import kraftlake
from kraftlake.api import Source
from kraftlake.diagnosis.blaming import blame, newest_changes
from kraftlake.diagnosis.thing_changes import Change, changes_of
from kraftlake.diagnosis.things import Thing
from kraftlake.records.control_records import VotersRecord
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.loader.quorum_state import voters_json
from kraftlake.replay.reading import chunks
from tests.at_least_one import at_least_one
from tests.cli.running import DIRECTORY, LEGACY, TORN
from tests.diagnosis.brute_force import Line, lines_of, lines_of_sample, parsed, steps

pytestmark = pytest.mark.xdist_group("lines_of_sample")

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
OFFSETS = (0, 80, 260, 458, 1059, 1323, 3044, 4592, 5316, 5736) if LONG else (458, 3044)


@pytest.fixture(scope="module")
def source() -> Source:
    return kraftlake.open(DIRECTORY)


@pytest.fixture
def expected() -> Mapping[str, Line]:
    return lines_of_sample()


def as_line(line: Sequence[Change]) -> Line:
    return [(one.offset, one.since, str(one.type), one.before, one.after) for one in line]


def up_to(line: Line, at: int) -> Line:
    return [change for change in line if change[1] <= at]


def by_path(lines: Mapping[Thing, Sequence[Change]]) -> dict[str, Line]:
    return {thing.text: as_line(line) for thing, line in lines.items()}


@pytest.fixture(params=[False, True], ids=["batch by batch", "in bulk"])
def _any_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is read in either of the two ways there are."""
    for name in ("BULK_FROM", "BULK_SNAPSHOT_FROM"):
        monkeypatch.setattr(chunks, name, 0 if request.param else 1 << 62)


@pytest.mark.usefixtures("_any_way")
def test_the_line_of_every_thing_there_ever_was_is_found(source: Source, expected: Mapping[str, Line]) -> None:
    assert len(expected) > 4000
    assert by_path(changes_of(source, parsed(expected), source.last_image_offset).lines) == expected


@pytest.mark.parametrize("at", OFFSETS)
def test_each_thing_has_its_newest_change_at_any_offset(source: Source, expected: Mapping[str, Line], at: int) -> None:
    lines = {path: up_to(line, at)[-1:] for path, line in expected.items()}
    there = {path: line for path, line in lines.items() if line and line[-1][-1] is not None}
    found = newest_changes(source, parsed(expected), at)
    assert by_path({thing: [change] for thing, change in found.items()}) == there
    form = source.image(at).to_json(show_secrets=True)
    assert {thing.key: found[thing].after for thing in found if thing.kind == "broker" and not thing.field} == {
        int(id_): broker for id_, broker in form["brokers"].items()
    }


def test_one_thing_is_blamed_as_many_are(source: Source, expected: Mapping[str, Line]) -> None:
    for path in at_least_one([*expected][::97]):
        line = expected[path]
        if line[-1][-1] is not None:
            assert as_line([blame(source, Thing.parse(path), source.last_image_offset)]) == line[-1:]


def test_a_lake_and_a_directory_give_the_same(source: Source, expected: dict[str, Line], tmp_path: Path) -> None:
    import_source(source, tmp_path / "lake")
    lake = kraftlake.open(tmp_path / "lake")
    assert by_path(changes_of(lake, parsed(expected), lake.last_image_offset).lines) == expected


@pytest.mark.parametrize("directory", [LEGACY, TORN], ids=["Kafka 3.3", "a torn log"])
def test_logs_of_other_releases_have_the_lines_that_brute_force_finds(directory: Path) -> None:
    source = kraftlake.open(directory)
    expected = lines_of(steps(source.batches()))
    changes = changes_of(source, parsed(expected), source.last_image_offset, lenient=True)
    assert by_path(changes.lines) == expected
    assert {line[0][2] for path, line in expected.items() if path.startswith("broker/")}
    assert bool(changes.skipped) == (directory == LEGACY)


@pytest.mark.usefixtures("_any_way")
def test_voters_are_blamed_on_the_control_records_that_name_them(source: Source) -> None:
    expected: dict[str, Line] = {}
    before: dict[str, object] = {}
    for batch in source.reader.batches():
        for offset, record in enumerate(batch.messages() if batch.control else (), start=batch.base_offset):
            if isinstance(record.message, VotersRecord):
                now = {f"voter/{voter}": form for voter, form in voters_json(record.message).items()}
                for path in sorted({*before, *now}):
                    if before.get(path) != now.get(path):
                        change = (offset, offset, "KRAFT_VOTERS", before.get(path), now.get(path))
                        expected.setdefault(path, []).append(change)
                before = now
    assert len(expected) > 1
    things = [Thing.parse(path) for path in expected]
    assert by_path(changes_of(source, things, source.last_image_offset).lines) == expected
    (newest,) = newest_changes(source, things, source.last_image_offset).values()
    assert (newest.thing.text, newest.type) == ("voter/3000", "KRAFT_VOTERS")
