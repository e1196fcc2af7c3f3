"""DuckDB makes the same histories and counts of `records/` in SQL as kraftlake makes of the log, row by row."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kraftlake
from kraftlake.generate.lake import generate_lake
from kraftlake.generate.plan import Plan
from kraftlake.image.kafka_names import CONFIG_RESOURCES
from kraftlake.records.batch import RecordBatch
from kraftlake.records.redaction import REDACTED
from kraftlake.replay.imports.import_log import import_source
from kraftlake.settings.tables import is_supported
from tests.controller.controlled_cluster import ControlledCluster
from tests.controller.test_histories import clusters, run_random_command
from tests.metadata_logs import metadata_logs
from tests.replay.lake_checks import made
from tests.replay.sample_logs import SAMPLES, directory_of
from tests.tables.second_engine.sql_engine import (
    COUNTS,
    HISTORIES,
    STEPS,
    SqlEngine,
    changed_counts,
    counts_of,
    rows_of,
    snapshot_rows,
    tables_of,
)

IS_LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
few = settings(max_examples=30 if IS_LONG else 2)
TYPES = {name: number for number, name in CONFIG_RESOURCES.items()}


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


def generated(seed: int) -> Callable[[Path], object]:
    return lambda lake: generate_lake(
        lake, Plan(brokers=3 + seed, topics=2 * seed, partitions=3, records=1_000, seed=seed)
    )


LOGS: dict[str, Callable[[Path], object]] = {
    "kafka-4.4": of_sample("kafka-4.4"),
    "trimmed": of_archive("trimmed"),
    **({
        "authorized": of_sample("authorized"),
        "crash-torn": of_sample("crash-torn"),
        "whole": of_archive("whole"),
        **{f"generated-{seed}": generated(seed) for seed in range(1, 16)},
    } if IS_LONG else {"generated-1": generated(1)}),
}  # fmt: skip
"""Twenty logs in the long form: real ones, one that begins with a snapshot, and made-up ones."""


def shown(name: str, rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """The rows that SQL can know: configs that Kafka 4.4 knows, and no secrets, whose changes are not in `records/`."""
    if name != "config_history":
        return rows
    return [row for row in rows if is_supported(TYPES.get(str(row[0]), -1), str(row[2])) and row[3] != REDACTED]


def assert_equal(lake: Path) -> SqlEngine:
    ours = tables_of(lake)
    engine = SqlEngine(ours["records"], snapshot_rows(kraftlake.open(lake)))
    for name in HISTORIES:
        columns = [column for column in ours[name].schema.names if column != "cluster_id"]
        assert shown(name, engine.rows(name, columns)) == shown(name, rows_of(ours[name], columns)), name
    assert changed_counts(engine.rows("cluster_counts", ("offset", *COUNTS))) == counts_of(ours["cluster_metrics"])
    return engine


@pytest.mark.parametrize("log", LOGS)
def test_histories_and_counts_are_the_same_in_sql(tmp_path: Path, log: str) -> None:
    LOGS[log](tmp_path / "lake")
    engine = assert_equal(tmp_path / "lake")
    assert engine.rows("partition_history", ("topic",))


def test_the_sample_has_what_is_hard() -> None:
    """Cleared ELRs, topics that are gone, unregistered brokers; the random logs have metadata transactions."""
    types = {record.type for record in kraftlake.open(directory_of("kafka-4.4")).records()}
    assert types >= {"CLEAR_ELR_RECORD", "REMOVE_TOPIC_RECORD", "UNREGISTER_BROKER_RECORD"}


@few
@given(log=metadata_logs(max_steps=60))
def test_random_logs_with_transactions_are_the_same_in_sql(
    tmp_path_factory: pytest.TempPathFactory, log: list[RecordBatch]
) -> None:
    lake = tmp_path_factory.mktemp("random") / "lake"
    import_source(made(log), lake)
    assert_equal(lake)


@few
@given(cluster=clusters(), data=st.data())
def test_random_histories_of_a_controller_are_the_same_in_sql(
    tmp_path_factory: pytest.TempPathFactory, cluster: ControlledCluster, data: st.DataObject
) -> None:
    for _ in range(30):
        run_random_command(data.draw, cluster)
    lake = tmp_path_factory.mktemp("controlled") / "lake"
    import_source(made(cluster.log), lake)
    assert_equal(lake)


@pytest.mark.parametrize("step", STEPS)
def test_each_table_takes_at_most_150_lines_of_sql(step: str) -> None:
    assert len(Path(__file__).with_name(f"{step}.sql").read_text("utf-8").splitlines()) <= 150


def test_a_row_that_differs_is_seen(tmp_path: Path) -> None:
    import_source(kraftlake.open(directory_of("authorized")), tmp_path / "lake")
    ours = tables_of(tmp_path / "lake")
    records = ours["records"].sort_by("offset")
    changes = records.column("type").to_pylist().index("PARTITION_RECORD")
    less = pa.concat_tables([records.slice(0, changes), records.slice(changes + 1)])
    engine = SqlEngine(less, snapshot_rows(kraftlake.open(tmp_path / "lake")))
    columns = ["topic", "partition"]
    assert engine.rows("partition_history", columns) != rows_of(ours["partition_history"], columns)
