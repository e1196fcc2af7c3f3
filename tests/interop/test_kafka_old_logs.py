"""Logs of Kafka 3.x beside Kafka's own classes: what 4.4 ignores of them is in no answer."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from deltalake import DeltaTable

import kraftlake
from kraftlake.image.configurations_image import ConfigurationsImage
from kraftlake.image.metadata_image import image_to_json
from kraftlake.kafka_files.writer import write_segment
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.imports.import_log import import_source
from kraftlake.runtime.errors import NoSuchThingError
from kraftlake.settings.tables import CLIENT_METRICS, CONFIGS, GROUP, TOPIC
from kraftlake.tables.catch_up.updating import update_tables
from tests.delta.test_kafka_agrees import BROKERS, assert_same_images, assert_same_local_changes
from tests.interop.kafka_classes import kafka_history, kafka_image_of_checkpoint, kafka_image_of_log, normal
from tests.old_log import DIFFERENCE, FORMAT, old_log

pytestmark = pytest.mark.spark


def test_kafka_makes_the_same_of_a_log_of_3_x(tmp_path: Path) -> None:
    """Each image of its batches, the records of each image, and local changes of all ranges of whole batches."""
    segment = next(old_log(tmp_path).glob("*.log"))
    source = kraftlake.open(segment)
    ranges = [*combinations((-1, *(batch.last_offset for batch in source.batches())), 2)]
    kafka = kafka_history(segment, brokers=BROKERS, ranges=ranges)
    assert_same_images(list(source.batches()), kafka["published"])
    assert_same_local_changes(segment, ranges, kafka["local"])
    configs = kafka["published"][-1]["image"]["configs"]
    assert configs["TOPIC"] == {"orders": {"retention.ms": "1", "segment.bytes": "1048576"}}
    assert configs["BROKER"][""] == {"log.message.format.version": "2.8"}
    assert sorted(configs) == ["BROKER", "CLIENT_METRICS", "GROUP", "TOPIC"]


def test_every_config_that_kafka_knows_and_no_other_is_replayed(tmp_path: Path) -> None:
    """The names of one type are tried for all: a topic has no `interval.ms`."""
    names = sorted({*CONFIGS[TOPIC], *CONFIGS[CLIENT_METRICS], *CONFIGS[GROUP], "listeners", ""})
    records = [
        ApiMessageAndVersion(r.ConfigRecord(resource_type=type_, resource_name="x", name=name, value="1"), 0)
        for type_ in (-1, 0, 1, 2, 3, 4, 8, 16, 32, 64)
        for name in names
    ]
    segment = tmp_path / f"{0:020d}.log"
    write_segment(segment, [RecordBatch.of(0, 1, 1, records)])
    ours = image_to_json(kraftlake.open(segment).image(), show_secrets=True)
    theirs = kafka_image_of_log([segment], len(records) - 1)
    assert ours["configs"] == theirs["configs"]
    assert len(theirs["configs"]["BROKER"]["x"]) == len(names)


def test_what_is_ignored_is_in_no_table_snapshot_or_answer(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    import_source(kraftlake.open(old_log(tmp_path)), lake)
    update_tables(lake, ("config_history", "events"))
    source = kraftlake.open(lake)
    whole = normal(image_to_json(source.image(), show_secrets=True))
    for table, column in (("config_history", "config"), ("events", "field")):
        known = set(DeltaTable(str(lake / table)).to_pyarrow_table()[column].to_pylist())
        assert "retention.ms" in known
        assert not known & {FORMAT, DIFFERENCE, "metrics.push", "a.B"}
    for thing in (f"config/TOPIC/orders/{FORMAT}", "config/BROKER_LOGGER/1/a.B"):
        with pytest.raises(NoSuchThingError, match="which does not know it, ignores it"):
            source.blame(thing)
    assert source.blame("config/TOPIC/orders/retention.ms").offset == 8
    report = source.export(tmp_path / "snapshot.checkpoint")
    assert FORMAT in report.notes[0]
    theirs = kafka_image_of_checkpoint(
        tmp_path / "snapshot.checkpoint", end_offset=source.end_offset, epoch=source.image().provenance.epoch
    )
    del theirs["lastContainedLogTimestamp"]
    assert normal(theirs) == {key: whole[key] for key in theirs}
    snapshot = kraftlake.open(tmp_path / "snapshot.checkpoint").image()
    assert snapshot.configs == source.image().configs
    assert snapshot.configs.ignored == ConfigurationsImage.EMPTY.ignored
    assert [one.to_json()["data"]["name"] for one in source.records(types=["CONFIG_RECORD"])].count(FORMAT) == 4
