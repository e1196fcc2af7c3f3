"""The risk table says of each broker and rack what the controller does when it alone is lost."""

from __future__ import annotations

import random
import time

from hypothesis import given

from kraftlake.controller.quorum.trial_controller import TrialController
from kraftlake.diagnosis.trial.risks import Risk, broker_risks, rack_risks
from kraftlake.diagnosis.trial.standing import Standing
from kraftlake.image.cluster_counts import count_cluster
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records import metadata_records as r
from tests.diagnosis.trial.clusters import broker, clusters, directory, features, image_of, topic_id


def single_loss(image: MetadataImage, brokers: tuple[int, ...], rack: str | None = None) -> Risk:
    """The loss of brokers by the controller alone, on the whole image."""
    trial = TrialController(image)
    trial.lose(brokers)
    before, after = Standing.of(image), Standing.of(trial.image)
    lists = {
        name: tuple(sorted({*getattr(after, name)} - {*getattr(before, name)}))
        for name in ("offline", "under_min_isr", "recovering")
    }
    leads = sum(count for id_, count in before.leaders.items() if id_ in brokers)
    return Risk(brokers=brokers, rack=rack, leads=leads, **lists)


@given(clusters())
def test_the_table_of_brokers_is_what_single_losses_say(image: MetadataImage) -> None:
    active = [id_ for id_, one in sorted(image.cluster.brokers.items()) if not one.fenced]
    assert broker_risks(image) == [single_loss(image, (id_,)) for id_ in active]


@given(clusters())
def test_the_table_of_racks_is_what_the_loss_of_their_brokers_says(image: MetadataImage) -> None:
    known = sorted(image.cluster.brokers.items())
    racks = sorted({one.rack for _, one in known if one.rack and not one.fenced})
    assert rack_risks(image) == [
        single_loss(image, tuple(id_ for id_, one in known if one.rack == rack and not one.fenced), rack)
        for rack in racks
    ]


@given(clusters())
def test_a_standing_counts_what_the_controllers_metrics_count(image: MetadataImage) -> None:
    standing = Standing.of(image)
    assert len(standing.offline) == count_cluster(image).offline_partitions_count
    partitions = [one for topic in image.topics.topics_by_name().values() for one in topic.partitions.values()]
    assert standing.leaders == {
        id_: count for id_ in range(1, 6) if (count := sum(one.leader == id_ for one in partitions))
    }


def test_many_partitions_and_brokers_take_seconds() -> None:
    """Packed rows, too, and the answer for one broker is that of the controller."""
    draws, brokers = random.Random(1), range(1, 21)
    messages = [*features(elr=True), *(broker(id_, rack="abc"[id_ % 3]) for id_ in brokers)]
    for topic in range(100):
        messages.append(r.TopicRecord(name=f"t{topic}", topic_id=topic_id(topic)))
        for number in range(200):
            replicas = tuple(draws.sample(brokers, 1 if topic < 50 else 3))
            directories = tuple(map(directory, replicas))
            messages.append(
                r.PartitionRecord(
                    partition_id=number,
                    topic_id=topic_id(topic),
                    replicas=replicas,
                    isr=replicas,
                    leader=replicas[0],
                    directories=directories,
                )
            )
    image = image_of(*messages)
    assert image.topics.is_large
    began = time.process_time()
    risks, of_racks = broker_risks(image), rack_risks(image)
    assert time.process_time() - began < 5  # it takes half a second
    assert risks[6] == single_loss(image, (7,))
    assert sum(len(risk.offline) for risk in risks) == 10_000
    assert sum(risk.leads for risk in of_racks) == 20_000
