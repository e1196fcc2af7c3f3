"""`spark.read.format("kraft")` and `read_records` in a real session; what they read is in test_record_scan.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as f

from kraftlake.kafka_files.directory import open_directory
from kraftlake.records.log_record import log_records
from kraftlake.records.redaction import redact_record_json
from kraftlake.runtime.errors import NotASourceError, OffsetError, UsageError
from kraftlake.spark_jobs import KraftDataSource, read_records
from tests.records.typed_json import expected_line, json_of_row
from tests.tables.sample_log import SAMPLE, SAMPLES, lake_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data-source") / "lake"
    lake_of(path, commits=3)
    return path


@cache
def lines_of(path: Path) -> list[dict[str, Any]]:
    """`kraftlake log --json` of a Kafka directory, redacted."""
    lines = [record.to_json() for batch in open_directory(path).batches() for record in log_records(batch)]
    return [expected_line({**line, "data": redact_record_json(line["type"], line["data"])}, None) for line in lines]


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.orderBy("offset").collect()]


def lines_of_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [json_of_row(row, row.get(row["type"].lower()), redacted=True) for row in rows]


@pytest.mark.parametrize("sample", ["kafka-4.4", "crash-torn", "legacy-33"])
def test_rows_say_what_the_log_says(spark: SparkSession, sample: str) -> None:
    path = SAMPLES / sample / "log"
    rows = rows_of(spark.read.format("kraft").load(str(path)))
    assert lines_of_rows(rows) == lines_of(path / "__cluster_metadata-0")


def test_a_lake_gives_the_rows_of_the_log_that_it_was_made_of(spark: SparkSession, lake: Path) -> None:
    rows = rows_of(read_records(spark, lake, start_offset=100, end_offset=2100))
    assert lines_of_rows(rows) == lines_of(SAMPLE)[100:2101]


def test_uses_of_one_frame_do_not_disturb_each_other(spark: SparkSession) -> None:
    """Where Spark pushes filters into a Python source, the second use has the first one's rows (Spark 4.2.0)."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = spark.read.format("kraft").schema("offset LONG, type STRING").load(str(SAMPLE))
        early, late = frame.where("offset < 10"), frame.where("offset >= 5730 AND type IS NOT NULL")
        assert early.count() == 10
        assert early.crossJoin(late).count() == 70
        assert frame.count() == 5737
        frame.createOrReplaceTempView("log")
        (row,) = spark.sql(
            "SELECT count(*) AS n FROM log WHERE offset > 5 AND offset < (SELECT max(offset) FROM log WHERE offset < 9)"
        ).collect()
        assert row.n == 2
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_sql_alone_can_name_a_source(spark: SparkSession, lake: Path) -> None:
    options = f"path '{lake}', type 'TopicRecord', endOffset 400"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW topics USING kraft OPTIONS ({options})")
    names = [row.name for row in spark.sql("SELECT name FROM topics ORDER BY offset").collect()]
    expected = [line["data"]["name"] for line in lines_of(SAMPLE)[:401] if line["type"] == "TOPIC_RECORD"]
    assert names == expected


def test_one_type_has_plain_columns_and_a_schema_picks_among_them(spark: SparkSession, lake: Path) -> None:
    names = ["offset", "partition_id", "leader"]
    picked = spark.read.format("kraft").schema("offset LONG, partition_id INT, leader INT")
    picked = picked.option("type", "PartitionRecord").option("startOffset", 324).option("endOffset", 900)
    expected = [
        {"offset": line["offset"], "partition_id": line["data"]["partitionId"], "leader": line["data"]["leader"]}
        for line in lines_of(SAMPLE)[324:901]
        if line["type"] == "PARTITION_RECORD"
    ]
    assert rows_of(picked.load(str(lake))) == expected
    read = read_records(spark, lake, "PARTITION_RECORD", 324, 900, columns=names)
    assert read.columns == names
    assert rows_of(read) == expected


def test_secrets_show_only_where_they_are_asked_for(spark: SparkSession, lake: Path) -> None:
    hidden = read_records(spark, lake, "UserScramCredentialRecord", columns=["name", "salt", "iterations"])
    shown = read_records(
        spark, lake, "UserScramCredentialRecord", columns=["name", "salt", "iterations"], show_secrets=True
    )
    assert {row.salt for row in hidden.collect()} == {None}
    assert all(row.salt and row.iterations for row in shown.collect())


REFUSED: list[tuple[Callable[[Any, Path], Any], str]] = [
    (lambda spark, lake: spark.read.format("kraft").load(str(lake / "nothing")), "nothing does not exist"),
    (lambda spark, lake: spark.read.format("kraft").load(), r'reads one source: load\("SOURCE"\)'),
    (
        lambda spark, lake: spark.read.format("kraft").option("startOfset", 1).load(str(lake)),
        "no option startofset: did you mean startOffset",
    ),
    (
        lambda spark, lake: spark.read.format("kraft").option("startOffset", "x").load(str(lake)),
        "startOffset is an offset, not 'x'",
    ),
    (
        lambda spark, lake: spark.read.format("kraft").option("endOffset", 5737).load(str(lake)),
        "endOffset 5737 is not in .*, which holds offsets 0 to 5736",
    ),
    (
        lambda spark, lake: spark.read.format("kraft").option("type", "TopicRecrd").load(str(lake)),
        "TOPIC_RECRD is no record type; did you mean TOPIC_RECORD",
    ),
    (
        lambda spark, lake: spark.read.format("kraft").option("showSecrets", "yes").load(str(lake)),
        "showSecrets is true or false",
    ),
    (
        lambda spark, lake: spark.read.format("kraft").schema("leader INT").load(str(lake)).collect(),
        "Records have no column leader",
    ),
    (
        lambda spark, lake: spark.range(1).write.format("kraft").mode("append").save(str(lake)),
        "only reads: `kraftlake import`",
    ),
]


@pytest.mark.parametrize(("asked", "reason"), REFUSED)
def test_what_makes_no_sense_is_refused_in_one_sentence(
    spark: SparkSession, lake: Path, asked: Callable[[Any, Path], Any], reason: str
) -> None:
    with pytest.raises(AnalysisException, match=reason) as raised:
        asked(spark, lake)
    assert "Traceback" not in str(raised.value)


def test_a_damaged_log_fails_the_query_in_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    for segment in SAMPLE.glob("*.log"):
        content = bytearray(segment.read_bytes())
        if segment.name.startswith("0" * 20):
            content[len(content) // 2] ^= 0xFF
        (folder / segment.name).write_bytes(content)
    frame = spark.read.format("kraft").load(str(folder)).agg(f.max("offset"))
    with pytest.raises(
        PySparkException, match=r"00000000000000000000.log: broken at position \d+, offset 914"
    ) as raised:
        frame.collect()
    assert 'File "' not in str(raised.value)


def test_read_records_says_what_is_wrong_at_once(spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    with pytest.raises(NotASourceError):
        read_records(spark, tmp_path)
    with pytest.raises(OffsetError, match="startOffset 9999"):
        read_records(spark, lake, start_offset=9999)
    with pytest.raises(UsageError, match="no column leadr"):
        read_records(spark, lake, "PartitionRecord", columns=["leadr"])
    with pytest.raises(UsageError, match="no record type"):
        read_records(spark, lake, "Nothing")


def test_the_class_has_the_name_by_which_it_is_found() -> None:
    import pyspark_kraft

    assert pyspark_kraft.DefaultSource is KraftDataSource
    assert KraftDataSource.name() == "kraft"
