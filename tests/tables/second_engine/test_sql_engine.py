"""DuckDB makes the same tables of `records/` in SQL as kraftlake makes of the log, row by row."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kraftlake
from kraftlake.generate.lake import generate_lake
from kraftlake.generate.plan import PATTERNS, Plan
from kraftlake.kafka_files.message_files import declared_types
from kraftlake.records.batch import RecordBatch
from kraftlake.records.foreign.registered import registered
from kraftlake.records.metadata_records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from kraftlake.records.typed_rows import typed_schema
from kraftlake.replay.imports.import_log import import_source
from kraftlake.tables.events.events_table import KINDS
from kraftlake.tables.jobs import TABLES
from tests.at_least_one import at_least_one
from tests.controller.controlled_cluster import ControlledCluster
from tests.controller.test_histories import clusters, run_random_command
from tests.foreign_logs import AUTOMQ, foreign_log
from tests.metadata_logs import metadata_logs
from tests.replay.lake_checks import made
from tests.replay.made_logs import MadeLog, reference_image, trimmed
from tests.replay.sample_logs import SAMPLES, directory_of
from tests.tables.second_engine.dense_log import SNAPSHOT_END, dense_log
from tests.tables.second_engine.sql_engine import (
    COMMON,
    STEPS,
    SqlEngine,
    difference,
    rows_of,
    snapshot_rows,
    tables_of,
    without_repeated_secrets,
)

IS_LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
few = settings(max_examples=30 if IS_LONG else 2)

WITHOUT_SQL: Final = {"records": "what SQL makes the other tables of"}
"""The derived tables that SQL does not make, with the reason."""
MARKS: Final = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)
MADE: Final = tuple(step for step in STEPS if step in TABLES)
"""The tables that SQL makes."""


def of_sample(name: str) -> Callable[[Path], object]:
    return lambda lake: import_source(kraftlake.open(directory_of(name)), lake)


def of_archive(name: str) -> Callable[[Path], object]:
    """A lake of the samples without its derived tables, which are of another release."""

    def unpack(lake: Path) -> None:
        with tarfile.open(SAMPLES / "lakes" / f"{name}.tar.gz") as archive:
            for member in archive:
                path = Path(member.name)
                if len(path.parts) > 1 and path.parts[1] in ("log", "snapshots"):
                    member.name = str(Path(*path.parts[1:]))
                    archive.extract(member, lake, filter="data")

    return unpack


def of_made(log: MadeLog | list[RecordBatch]) -> Callable[[Path], object]:
    return lambda lake: import_source(made(log), lake)


def of_fork(lake: Path) -> None:
    import_source(kraftlake.open(foreign_log(lake.parent / "log")), lake)


def generated(seed: int) -> Callable[[Path], object]:
    """Each seed has another size of cluster, and begins with another episode."""
    first = seed % len(PATTERNS)
    plan = Plan(
        brokers=3 + seed, racks=1 + seed % 3, topics=2 * seed, partitions=3, records=1_000 + 200 * seed, seed=seed,
        quiet_ms=1_000, patterns=(*PATTERNS[first:], *PATTERNS[:first]),
    )  # fmt: skip
    return lambda lake: generate_lake(lake, plan)


LOGS: dict[str, Callable[[Path], object]] = {
    "dense behind a snapshot": of_made(trimmed(dense_log(), SNAPSHOT_END, SNAPSHOT_END)),
    "trimmed": of_archive("trimmed"),
    **({
        "authorized": of_sample("authorized"),
        "crash-torn": of_sample("crash-torn"),
        "whole": of_archive("whole"),
        "fork": of_fork,
        **{f"generated-{seed}": generated(seed) for seed in range(1, 13)},
    } if IS_LONG else {}),
}  # fmt: skip
"""With the sample and the dense log, twenty in the long form: of a fork, behind a snapshot, and made-up ones."""


Made = tuple[dict[str, pa.Table], SqlEngine]


def both(lake: Path) -> Made:
    """The tables of a lake that kraftlake makes, and the tables that SQL makes."""
    ours = tables_of(lake)
    return ours, SqlEngine(ours["records"], snapshot_rows(kraftlake.open(lake)))


def differences(ours: dict[str, pa.Table], engine: SqlEngine, *, repeats_secrets: bool = False) -> dict[str, Any]:
    """The first rows in which tables differ, by table."""
    found = {}
    for name in MADE:
        columns = [column for column in ours[name].schema.names if column != "cluster_id"]
        some, others = engine.rows(name, columns), rows_of(ours[name], columns)
        if repeats_secrets:
            some, others = (without_repeated_secrets(name, columns, rows) for rows in (some, others))
        found[name] = difference(some, others)
    return {name: rows for name, rows in found.items() if any(rows)}


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Made:
    lake = tmp_path_factory.mktemp("dense") / "lake"
    import_source(made(dense_log()), lake)
    return both(lake)


def test_each_derived_table_is_made_in_sql_or_has_a_reason() -> None:
    assert {*MADE} | {*WITHOUT_SQL} == {*TABLES}
    assert not {*MADE} & {*WITHOUT_SQL}


@pytest.mark.parametrize("log", LOGS)
def test_the_tables_are_the_same_in_sql(tmp_path: Path, log: str) -> None:
    with registered(declared_types(str(AUTOMQ))):
        LOGS[log](tmp_path / "lake")
        ours, engine = both(tmp_path / "lake")
    assert differences(ours, engine) == {}
    assert engine.rows("partition_history", ("topic",))


def test_those_of_a_log_with_everything_are_the_same_in_sql(dense: Made) -> None:
    ours, engine = dense
    assert differences(ours, engine) == {}
    assert all(len(ours[name]) > 1 for name in MADE)
    assert all(max(column) > 0 for column in zip(*rows_of(ours["cluster_metrics"], counted(ours)), strict=True))


def counted(ours: dict[str, pa.Table]) -> list[str]:
    """The counts that are above 0 somewhere in the dense log: no partition of it is offline."""
    names = ours["cluster_metrics"].schema.names[3:]
    return [name for name in names if name not in ("cluster_id", "offline_partitions_count")]


def test_those_of_the_sample_are_and_it_has_the_kinds_of_events_that_the_other_lacks(
    dense: Made, tmp_path: Path
) -> None:
    import_source(kraftlake.open(directory_of("kafka-4.4")), tmp_path / "lake")
    ours, engine = both(tmp_path / "lake")
    assert differences(ours, engine) == {}
    assert {kind for made in (ours, dense[0]) for kind in made["events"].column("kind").to_pylist()} == {*KINDS}


@few
@given(log=metadata_logs(max_steps=60), data=st.data())
def test_those_of_random_logs_with_transactions_are_the_same_in_sql(
    tmp_path_factory: pytest.TempPathFactory, log: list[RecordBatch], data: st.DataObject
) -> None:
    cut = data.draw(st.sampled_from([None, *(batch.base_offset for batch in log[1:])]))
    lake = tmp_path_factory.mktemp("random") / "lake"
    import_source(made(log if cut is None or not has_snapshot(log, cut) else trimmed(log, cut, cut)), lake)
    assert differences(*both(lake), repeats_secrets=True) == {}


def has_snapshot(log: list[RecordBatch], end: int) -> bool:
    """Whether a snapshot can have that end offset: no metadata transaction is open, and the image has a version."""
    records = [record for batch in log if batch.base_offset < end and not batch.control for record in batch.messages()]
    marks = [record.message for record in records if isinstance(record.message, MARKS)]
    is_open = bool(marks) and isinstance(marks[-1], BeginTransactionRecord)
    return not is_open and reference_image(log, end - 1).features.metadata_version is not None


@few
@given(cluster=clusters(), data=st.data())
def test_those_of_random_histories_of_a_controller_are_the_same_in_sql(
    tmp_path_factory: pytest.TempPathFactory, cluster: ControlledCluster, data: st.DataObject
) -> None:
    for _ in range(30):
        run_random_command(data.draw, cluster)
    lake = tmp_path_factory.mktemp("controlled") / "lake"
    import_source(made(cluster.log), lake)
    assert differences(*both(lake)) == {}


@pytest.mark.parametrize("table", MADE)
def test_a_wrong_row_is_found(dense: Made, table: str) -> None:
    """Whatever its column, and where it is one too few or too many."""
    ours, engine = dense
    columns = [column for column in ours[table].schema.names if column != "cluster_id"]
    some, good = engine.rows(table, columns), rows_of(ours[table], columns)
    for row in at_least_one(range(len(good))):
        assert any(difference(some, [*good[:row], *good[row + 1 :]]))
        assert any(difference(some, [*good, good[row]]))
        for place in range(len(columns)):
            wrong = (*good[row][:place], another(good[row][place]), *good[row][place + 1 :])
            assert any(difference(some, [*good[:row], wrong, *good[row + 1 :]])), columns[place]


def another(value: Any) -> Any:
    """A value that differs from another one as little as can be."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, list):
        return [*value[1:], value[0]] if len({*value}) > 1 else [*value, 1]
    return None if value is not None else 0


CHANGING: Final = {
    "topic_history": "REMOVE_TOPIC_RECORD", "broker_history": "UNREGISTER_BROKER_RECORD",
    "partition_history": "CLEAR_ELR_RECORD", "config_history": "CONFIG_RECORD",
    "feature_history": "FEATURE_LEVEL_RECORD", "acl_history": "REMOVE_ACCESS_CONTROL_ENTRY_RECORD",
    "quota_history": "CLIENT_QUOTA_RECORD", "scram_history": "REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
    "token_history": "DELEGATION_TOKEN_RECORD", "controller_history": "UNREGISTER_CONTROLLER_RECORD",
    "quorum_history": "LEADER_CHANGE", "voter_history": "KRAFT_VOTERS",
    "directory_history": "REGISTER_BROKER_RECORD", "cluster_metrics": "PARTITION_CHANGE_RECORD",
    "local_changes": "PARTITION_CHANGE_RECORD", "events": "END_TRANSACTION_RECORD",
}  # fmt: skip
"""A type of record of each table, the last of which matters to it."""


@pytest.mark.parametrize("table", MADE if IS_LONG else ("partition_history",))
def test_a_record_that_is_left_out_is_found(dense: Made, table: str) -> None:
    ours, _ = dense
    records = ours["records"].sort_by("offset")
    types = records.column("type").to_pylist()
    effective = types[: len(types) - types[::-1].index("BEGIN_TRANSACTION_RECORD")]
    last = len(effective) - 1 - effective[::-1].index(CHANGING[table])
    less = pa.concat_tables([records.slice(0, last), records.slice(last + 1)])
    assert table in differences(ours, SqlEngine(less, typed_schema().empty_table()))


@pytest.mark.parametrize("step", [*COMMON, *STEPS])
def test_each_file_of_sql_has_at_most_110_lines(step: str) -> None:
    lines = Path(__file__).with_name(f"{step}.sql").read_text("utf-8").splitlines()
    assert len(lines) <= 110
    assert lines[0].startswith("-- "), "a file begins with what its table means"
