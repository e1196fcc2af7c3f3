"""Made-up histories beside Kafka's own classes: what `kraftlake generate` writes is what Kafka replays."""

from __future__ import annotations

from pathlib import Path

import pytest

import kraftlake
from kraftlake.generate.lake import generate_lake
from kraftlake.generate.plan import Plan
from kraftlake.image.metadata_image import image_to_json
from kraftlake.kafka_files.writer import write_segment
from kraftlake.metadata_log.log import MetadataLog
from tests.at_least_one import at_least_one
from tests.interop.kafka_classes import kafka_image_of_log, normal

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("seed", [0, 1])
def test_kafka_replays_a_made_up_history_into_the_same_images(tmp_path: Path, seed: int) -> None:
    report = generate_lake(tmp_path / "lake", Plan(topics=6, partitions=4, records=4_000, seed=seed))
    segment = tmp_path / f"{0:020d}.log"
    write_segment(segment, MetadataLog.open(tmp_path / "lake").batches())
    source = kraftlake.open(str(tmp_path / "lake"))
    for episode in at_least_one(report.episodes):
        ours = image_to_json(source.image(episode.last_offset), show_secrets=True)
        assert normal(kafka_image_of_log([segment], episode.last_offset)) == normal(ours), episode
