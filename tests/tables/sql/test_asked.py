"""The tables that a question is asked of: those of a lake on a disk or in an object store, or made for the moment."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

import kraftlake
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.queries.source import LogSource
from kraftlake.runtime.errors import LakeError, UsageError
from kraftlake.tables.catch_up.updating import update_tables
from kraftlake.tables.jobs import TABLES
from kraftlake.tables.sql.asked import NAMES, Asked, ask
from kraftlake.tables.sql.session import SqlLimits
from tests.cli.running import DIRECTORY
from tests.metadata_log.object_store import BUCKET

QUESTION = "SELECT kind, count(*) AS n, max(e.offset) AS last FROM events AS e GROUP BY kind ORDER BY n DESC, kind"


def asked_of(source: object, question: str = QUESTION) -> Asked:
    return ask(LogSource.open(str(source)), question, SqlLimits())


@pytest.mark.xdist_group("object_store")
def test_a_lake_in_an_object_store_answers_as_one_on_a_disk_and_as_the_log_itself(
    monkeypatch: pytest.MonkeyPatch, object_store: dict[str, str], tmp_path: Path
) -> None:
    stored = f"s3://{BUCKET}/asked-by-sql"
    for name, value in object_store.items():
        monkeypatch.setenv(name, value)
    for lake in (stored, str(tmp_path / "lake")):
        import_source(LogSource.open(str(DIRECTORY)), lake)
        update_tables(lake, ["events"])
    expected = asked_of(DIRECTORY)
    assert expected.answer.rows.num_rows > 20
    assert expected.covered == {"events": 5736}
    assert asked_of(stored) == expected
    assert asked_of(tmp_path / "lake") == expected
    types = {record.type for record in kraftlake.open(DIRECTORY).records()}
    records = asked_of(stored, "SELECT count(*) AS n, count(DISTINCT type) AS types FROM log")
    assert records.answer.rows.to_pylist() == [{"n": 5737, "types": len(types)}]


def test_nothing_stays_of_tables_that_are_made_for_the_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert asked_of(DIRECTORY, "SELECT count(*) AS n FROM topic_history").answer.rows.to_pylist() == [{"n": 68}]
    with pytest.raises(UsageError):
        asked_of(DIRECTORY, "SELECT nothing FROM topic_history")
    assert [*tmp_path.iterdir()] == []


def test_a_table_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match=r"^There is no table nowhere: there are local_changes, "):
        asked_of(DIRECTORY, "SELECT * FROM nowhere")
    assert {*NAMES} == {*TABLES, "log"}


def test_a_lake_without_a_table_says_which_command_makes_it(tmp_path: Path) -> None:
    import_source(LogSource.open(str(DIRECTORY)), tmp_path / "lake")
    with pytest.raises(LakeError, match=r"has no records/ yet: run `kraftlake tables .*lake records` first"):
        asked_of(tmp_path / "lake", "SELECT 1 FROM records")
