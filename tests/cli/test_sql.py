"""`kraftlake sql`: rows of an answer, what it says beside them, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kraftlake.cli.application import application
from kraftlake.records import metadata_records as r
from kraftlake.runtime import extras
from tests.cli.made_logs import batch_of, directory_of
from tests.cli.running import DIRECTORY, fault, run, run_json
from tests.cli.test_schemas import SCHEMAS
from tests.foreign_logs import foreign_log

COUNTS = "SELECT kind, count(*) AS n FROM events GROUP BY kind ORDER BY n DESC, kind LIMIT 2"


def test_rows_are_drawn_and_are_objects_in_json() -> None:
    assert run("sql", DIRECTORY, COUNTS).stdout == (
        "kind            n\n─────────────────\nisr_shrank   1284\nelr_changed  1036\n"
    )
    lines = run("sql", DIRECTORY, COUNTS, "--json").stdout.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"kind": "isr_shrank", "n": 1284},
        {"kind": "elr_changed", "n": 1036},
    ]
    words = ["sql", str(DIRECTORY), "-", "--output", "csv"]
    assert CliRunner().invoke(application, words, input=COUNTS).stdout == "kind,n\nisr_shrank,1284\nelr_changed,1036\n"


def test_values_are_those_of_json() -> None:
    question = (
        "SELECT e.offset, timestamp, NULL AS z, [1] AS l, sum(partition) AS s FROM events e "
        "GROUP BY 1, 2 ORDER BY 1 LIMIT 1"
    )
    assert run_json("sql", DIRECTORY, question) == {
        "offset": 0, "timestamp": "2026-11-21 07:45:27.235Z", "z": None, "l": [1], "s": None,
    }  # fmt: skip


def test_no_table_has_secrets(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    run("import", DIRECTORY, lake)
    assert "payload" not in run("sql", lake, "SELECT * FROM log LIMIT 1", "--json").stdout
    assert run_json("sql", DIRECTORY, "SELECT count(payload) AS n FROM records") == {"n": 0}
    hidden = run("sql", DIRECTORY, "SELECT DISTINCT user_scram_credential_record.salt FROM records", "--json").stdout
    assert hidden == '{"salt":null}\n'


def test_a_lake_is_read_as_its_tables_are(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    first = batch_of(0, r.FeatureLevelRecord(name="metadata.version", feature_level=19))
    run("import", directory_of(tmp_path / "short", [first]), lake)
    said = fault("sql", lake, "SELECT 1 FROM events")
    assert said == f"{lake} has no events/ yet: run `kraftlake tables {lake} events` first."
    assert not (lake / "events").exists()
    run("tables", lake, "events")
    run("import", directory_of(tmp_path / "long", [first, batch_of(1, r.NoOpRecord())]), lake)
    behind = run("sql", lake, "SELECT count(*) AS n FROM events")
    assert behind.stdout.split() == ["n", "─", "1"]
    assert behind.stderr == ("warning: events/ covers the log up to offset 0 of 1: `kraftlake tables` brings it up\n")


def test_what_is_left_out_is_said() -> None:
    said = run("sql", DIRECTORY, "SELECT kind FROM events", "--limit", 1).stderr
    assert said == "warning: the first 1 row of the answer alone: --limit takes more\n"


def test_records_of_a_fork_change_no_table(tmp_path: Path) -> None:
    log = foreign_log(tmp_path)
    assert run("sql", log, COUNTS, *SCHEMAS).stdout == run("sql", DIRECTORY, COUNTS).stdout


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("DROP TABLE events", "The question is not one SELECT: SQL reads the tables here, and nothing else."),
        ("SELECT * FROM topics", "There is no table topics: there are "),
        ("SELECT * FROM '/etc/passwd'", "There is no table /etc/passwd: there are "),
        ("SELECT * FROM read_text('/etc/passwd')", "DuckDB refuses the question: Permission Error: Cannot access file"),
    ],
)
def test_a_refusal_is_one_sentence(question: str, words: str) -> None:
    assert words in fault("sql", DIRECTORY, question, code=2)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "is_installed", lambda module: module != "duckdb")
    assert fault("sql", DIRECTORY, "SELECT 1") == (
        "Questions in SQL need the package duckdb: pip install 'kraftlake[sql]'"
    )
