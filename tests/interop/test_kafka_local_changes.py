"""The rows of `local_changes/` say of each broker what Kafka's delta does; on Spark they are the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from kraftlake.tables.catch_up.updating import update_tables
from tests.interop.kafka_classes import kafka_local_changes
from tests.tables.sample_log import SAMPLE, lake_of, sample_batches

pytestmark = pytest.mark.spark


def test_each_delta_means_to_each_broker_what_kafka_says(tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", commits=1)
    update_tables(tmp_path / "lake", ["local_changes"])
    segments = list(SAMPLE.glob("*.log"))
    by_offset: dict[int, list[dict[str, Any]]] = {}
    for row in DeltaTable(tmp_path / "lake" / "local_changes").to_pyarrow_table().to_pylist():
        by_offset.setdefault(row["offset"], []).append(row)
    ends = [batch.last_offset for batch in sample_batches()]
    before = dict(zip(ends[1:], ends, strict=False))
    checked = [offset for offset in sorted(by_offset) if offset in before][::9]
    assert len(checked) > 20
    for offset in checked:
        for broker in (1, 2, 3, 4):
            rows = [row for row in by_offset[offset] if row["broker"] == broker]
            kafka = kafka_local_changes(segments, broker=broker, start=before[offset], end=offset)
            assert changed_partitions(rows, "delete") == set(kafka["deletes"])
            assert changed_partitions(rows, "leader_elected") == set(kafka["electedLeaders"])
            assert changed_partitions(rows, "leader", "leader_elected") == set(kafka["leaders"])
            assert changed_partitions(rows, "follower") == set(kafka["followers"])
            directories = {f"{r['topic_id']}:{r['topic']}-{r['partition']}": r["directory"] for r in rows}
            assert {key: value for key, value in directories.items() if value} == kafka["directoryIds"]
            for row in rows:
                if row["change"] in ("leader", "leader_elected", "follower"):
                    kind = "followers" if row["change"] == "follower" else "leaders"
                    info = kafka[kind][f"{row['topic']}-{row['partition']}"]
                    assert (info["topicId"], info["partition"]["leaderEpoch"]) == (row["topic_id"], row["leader_epoch"])
                    assert (info["partition"]["replicas"], info["partition"]["isr"]) == (row["replicas"], row["isr"])
                    assert info["partition"]["partitionEpoch"] == row["partition_epoch"]
                    assert info["partition"]["leader"] == row["leader"]


def changed_partitions(rows: list[dict[str, Any]], *changes: str) -> set[str]:
    return {f"{row['topic']}-{row['partition']}" for row in rows if row["change"] in changes}
