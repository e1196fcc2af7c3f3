"""What is counted is what a comparison of the images after each record finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given

from kraftlake.diagnosis.stability.happenings import KINDS, NO_BROKER, Happenings
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.directory import open_directory
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import LeaderChangeMessage
from kraftlake.replay.log.log_replay import LogReplay
from tests.few_examples import few_examples
from tests.metadata_logs import metadata_logs
from tests.tables.history.reference import images
from tests.tables.sample_log import SAMPLES

Counts = Counter[tuple[str, int]]
"""The number of events by kind and broker."""


def counted(log: Sequence[RecordBatch]) -> tuple[Counts, Counts]:
    """All events, and the orderly ones."""
    replay, happenings = LogReplay(), Happenings(MetadataImage.EMPTY)
    for chunk in replay.take_parts(log):
        happenings.take(chunk)
    found = happenings.happened()
    every = [
        ([*KINDS][kind], broker) for kind, broker in zip(found.kinds.tolist(), found.brokers.tolist(), strict=True)
    ]
    return Counter(every), Counter(one for one, orderly in zip(every, found.orderly.tolist(), strict=True) if orderly)


def compared(log: Sequence[RecordBatch]) -> Counts:
    """The events by images one by one."""
    before, found, incarnations = MetadataImage.EMPTY, Counts(), dict[int, object]()
    for image in images(log):
        found.update(_of_brokers(before, image, incarnations))
        found.update(_of_partitions(before, image))
        before = image
    messages = [record.message for batch in log if batch.control for record in batch.messages()]
    elections = sum(isinstance(message, LeaderChangeMessage) for message in messages)
    return found + Counts({("controller_changes", NO_BROKER): elections})


def _of_brokers(before: MetadataImage, after: MetadataImage, known: dict[int, object]) -> Iterator[tuple[str, int]]:
    for id_ in {*before.cluster.brokers, *after.cluster.brokers}:
        was, now = before.cluster.brokers.get(id_), after.cluster.brokers.get(id_)
        if was is not None and not was.fenced and (now is None or now.fenced):
            yield "fencings", id_
        if now is not None and known.get(id_) != now.incarnation_id:
            known[id_] = now.incarnation_id
            yield "starts", id_


def _of_partitions(before: MetadataImage, after: MetadataImage) -> Iterator[tuple[str, int]]:
    if before.topics is after.topics:
        return
    olds, news = before.topics.topics_by_id(), after.topics.topics_by_id()
    for id_ in {*olds} & {*news}:
        for number in {*olds[id_].partitions} & {*news[id_].partitions}:
            was, now = olds[id_].partitions[number], news[id_].partitions[number]
            if was.leader not in (now.leader, -1):
                yield "lost_leaderships", was.leader
            if now.leader >= 0 and now.leader_recovery_state > was.leader_recovery_state:
                yield "unclean_elections", now.leader
            yield from (("isr_shrinks", one) for one in was.isr if one not in now.isr and one in now.replicas)
            yield from (("isr_expands", one) for one in now.isr if one not in was.isr)


def of_known_leaders(counts: Counts) -> Counts:
    """The counts without unclean elections: a random record may begin to recover without a leader."""
    return Counter({one: count for one, count in counts.items() if one[0] != "unclean_elections"})


@few_examples
@given(log=metadata_logs(max_steps=60))
def test_random_logs_count_as_their_images_do(log: list[RecordBatch]) -> None:
    assert of_known_leaders(counted(log)[0]) == of_known_leaders(compared(log))


@pytest.mark.parametrize("sample", ["kafka-4.4"])
def test_a_real_log_counts_as_its_images_do(sample: str) -> None:
    log = [*open_directory(SAMPLES / sample / "log" / "__cluster_metadata-0").batches()]
    found, orderly = counted(log)
    assert found == compared(log)
    assert {kind for kind, _ in found} == {*KINDS}
    assert orderly["fencings", 1] == found["fencings", 1] == 2
    assert {kind for kind, _ in orderly} == {"fencings", "starts", "lost_leaderships", "isr_shrinks", "isr_expands"}
