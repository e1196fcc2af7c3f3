"""Where a condition begins to hold is where it does offset by offset."""

from __future__ import annotations

import operator
import os
import random
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from attrs import astuple

import kraftlake
from kraftlake.api import Source
from kraftlake.diagnosis.counts import count_changes
from kraftlake.image.cluster_counts import count_cluster
from kraftlake.image.cluster_health import count_health
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records import metadata_records as r
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.reading import chunks
from kraftlake.runtime.errors import NoSuchThingError, OffsetError, UnknownRecordError, UsageError
from kraftlake.tables.metrics.cluster_counts import COUNTS
from tests.at_least_one import at_least_one
from tests.cli.running import DIRECTORY
from tests.diagnosis.brute_force import steps_of_sample
from tests.replay import made_logs as log

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
pytestmark = pytest.mark.xdist_group("lines_of_sample")

CONDITIONS = 200 if LONG else 40
LAST = 5736

Truth = bool | None
Made = tuple[str, Callable[[MetadataImage, Any], Truth]]
"""The text of a condition, and whether it holds by an image and its counts; None where that is unknown."""

COMPARE = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@pytest.fixture(scope="module")
def source() -> Source:
    return kraftlake.open(DIRECTORY)


@pytest.fixture(scope="module")
def images() -> list[tuple[MetadataImage, Any]]:
    """The image at each offset, with its counts."""
    found: list[tuple[MetadataImage, Any]] = []
    image = MetadataImage.EMPTY
    counts = count_cluster(image)
    for step in steps_of_sample():
        found += [(image, counts)] * (step.since - len(found))
        if step.image.topics is not image.topics or step.image.cluster is not image.cluster:
            counts = count_cluster(step.image)
        image = step.image
    return found + [(image, counts)] * (LAST + 1 - len(found))


def any_condition(rng: random.Random, names: list[str], depth: int = 2) -> Made:
    if depth and rng.random() < 0.5:
        word = rng.choice(["and", "or", "not"])
        if word == "not":
            text, holds = any_condition(rng, names, depth - 1)
            return f"not ({text})", lambda image, counts: _not(holds(image, counts))
        parts = [any_condition(rng, names, depth - 1) for _ in range(2)]
        joined = partial(_joined, word, [holds for _, holds in parts])
        return f" {word} ".join(f"({text})" for text, _ in parts), joined
    return rng.choice([_of_count, _of_broker, _of_partition, _of_config, _of_existence])(rng, names)


def _not(found: Truth) -> Truth:
    return None if found is None else not found


def _joined(word: str, parts: list[Callable[[Any, Any], Truth]], image: MetadataImage, counts: Any) -> Truth:
    found = [part(image, counts) for part in parts]
    decisive = word == "or"
    return decisive if decisive in found else None if None in found else not decisive


def _of_count(rng: random.Random, names: list[str]) -> Made:
    name = rng.choice(["offline_partitions_count", "fenced_broker_count", "global_topic_count", "active_broker_count",
                       "global_partition_count", "preferred_replica_imbalance_count"])  # fmt: skip
    sign, number = rng.choice([*COMPARE]), rng.randrange(60 if "broker" not in name else 5)
    text = name if rng.random() < 0.5 else name.removesuffix("_count")
    return f"{text} {sign} {number}", lambda _, counts: COMPARE[sign](getattr(counts, name), number)


def _of_broker(rng: random.Random, names: list[str]) -> Made:
    id_ = rng.randint(1, 5)
    attribute, field = rng.choice([("fenced", "fenced"), ("in_controlled_shutdown", "inControlledShutdown")])

    def holds(image: MetadataImage, _: Any) -> Truth:
        broker = image.cluster.brokers.get(id_)
        return None if broker is None else bool(getattr(broker, attribute))

    return f"broker({id_}).{field}", holds


def _of_partition(rng: random.Random, names: list[str]) -> Made:
    topic, number, broker = rng.choice(names), rng.randrange(3), rng.randint(-1, 4)
    sign = rng.choice([*COMPARE])
    text, holds = rng.choice(
        [
            (f"leader {sign} {broker}", lambda one: COMPARE[sign](one.leader, broker)),
            (f"leaderEpoch {sign} {broker}", lambda one: COMPARE[sign](one.leader_epoch, broker)),
            (
                f"isr {'==' if broker % 2 else '!='} [{broker}, 3]",
                lambda one: (one.isr == (broker, 3)) == bool(broker % 2),
            ),
        ]
    )
    path = f'topic("{topic}").partition({number})'
    text = f"{path}.{text}"
    if rng.random() < 0.4:
        text, holds = rng.choice(
            [
                (f"len({path}.isr) {sign} {abs(broker)}", lambda one: COMPARE[sign](len(one.isr), abs(broker))),
                (f"{broker} in {path}.replicas", lambda one: broker in one.replicas),
            ]
        )

    def of_image(image: MetadataImage, _: Any) -> Truth:
        found = image.topics.get_topic(topic)
        one = None if found is None else found.partitions.get(number)
        return None if one is None else bool(holds(one))

    return text, of_image


def _of_config(rng: random.Random, names: list[str]) -> Made:
    resource, name, number = rng.choice(
        [
            ("", "min.insync.replicas", 1),
            ("", "min.insync.replicas", 2),
            ("1", "leader.replication.throttled.rate", 10**7),
        ]
    )

    def holds(image: MetadataImage, _: Any) -> Truth:
        found = {one.name: data for one, data in image.configs.resource_data.items() if one.type_name == "BROKER"}
        value = found[resource].data.get(name) if resource in found else None
        return None if value is None else int(value) > number

    return f'config("BROKER", "{resource}", "{name}") > {number}', holds


def _of_existence(rng: random.Random, names: list[str]) -> Made:
    topic = rng.choice(names)
    if rng.random() < 0.5:
        return f'topic("{topic}")', lambda image, _: image.topics.get_topic(topic) is not None
    return "broker(2) != none", lambda image, _: image.cluster.brokers.get(2) is not None


def first_by_brute_force(
    images: list[tuple[MetadataImage, Any]], holds: Callable[[Any, Any], Truth], first: int, last: int
) -> tuple[int, bool | None] | None:
    for offset in range(first, last + 1):
        if holds(*images[offset]):
            return offset, None if offset == first else False
    return None


@pytest.mark.parametrize("bulk", [False, True], ids=["batch by batch", "in bulk"])
def test_random_conditions_hold_where_brute_force_says(
    source: Source, images: list[tuple[MetadataImage, Any]], monkeypatch: pytest.MonkeyPatch, *, bulk: bool
) -> None:
    for name in ("BULK_FROM", "BULK_SNAPSHOT_FROM"):
        monkeypatch.setattr(chunks, name, 0 if bulk else 1 << 62)
    topics = [name for image, _ in images[::500] for name in image.topics.topics_by_name()]
    rng, found = random.Random(CONDITIONS + bulk), 0
    for _ in range(CONDITIONS // 2):
        text, holds = any_condition(rng, topics)
        first, last = sorted(rng.choice([(0, LAST), (rng.randrange(LAST), rng.randrange(LAST))]))
        expected = first_by_brute_force(images, holds, first, last)
        try:
            one = source.bisect(text, first, last)
        except NoSuchThingError:
            assert expected is None, text
            continue
        found += 1
        assert (one.offset, one.before) == expected, f"{text} from {first} to {last}"
        assert one.condition == text
    assert found > CONDITIONS // 6


def test_a_lake_gives_the_same_and_times_are_those_of_the_offsets(source: Source, tmp_path: Path) -> None:
    import_source(source, tmp_path / "lake")
    lake = kraftlake.open(tmp_path / "lake")
    for text in ("offline_partitions > 20", "broker(3).fenced", 'topic("big-a")'):
        found = source.bisect(text)
        assert lake.bisect(text) == found
        assert found.timestamp == source.image(found.offset).provenance.timestamp
    at_once = source.bisect("broker(3).fenced", 458)
    assert at_once.to_json() == {
        "condition": "broker(3).fenced", "offset": 458, "timestamp": 1795247176256, "before": None, "after": True,
    }  # fmt: skip


def test_counts_change_within_a_batch_and_at_the_end_of_a_transaction() -> None:
    batches = log.log_of(
        1, [log.metadata_version()],
        [log.topic(1), *(log.partition(1, partition_id=number, leader=-1) for number in range(4))],
        [log.begin(), log.partition(1, partition_id=4, leader=-1)],
        [log.partition(1, partition_id=5, leader=-1), log.end()],
        [r.RemoveTopicRecord(topic_id=log.uuid_of(1))],
    )  # fmt: skip
    made = Source(log.MadeLog(records=tuple(batches)), SourceKind.DIRECTORY, "made", None)  # type: ignore[arg-type]
    offsets = {number: made.bisect(f"offline_partitions >= {number}").offset for number in range(1, 7)}
    assert offsets == {1: 3, 2: 4, 3: 5, 4: 6, 5: 10, 6: 10}
    assert made.bisect("global_topic_count == 0", 5).offset == 11
    assert made.bisect("global_partition_count == 4 and offline_partitions == 4", 4, 8).offset == 6


def test_a_log_that_starts_above_0_begins_with_its_snapshot() -> None:
    batches = log.log_of(
        1, [log.metadata_version()], [log.topic(1), log.partition(1, leader=-1)], [r.NoOpRecord()],
        [r.PartitionChangeRecord(topic_id=log.uuid_of(1), partition_id=0, leader=1)],
    )  # fmt: skip
    made = Source(log.trimmed(batches, 4, 4), SourceKind.DIRECTORY, "made", None)  # type: ignore[arg-type]
    assert (made.bisect("offline_partitions == 1").offset, made.bisect("offline_partitions == 0").offset) == (3, 5)
    assert made.bisect('topic("topic-1").partition(0).leader == 1').before is False
    with pytest.raises(OffsetError):
        made.bisect("offline_partitions == 1", 1)


@pytest.mark.parametrize("lenient", [False, True], ids=["strict", "lenient"])
def test_a_range_that_the_log_does_not_cover_is_refused(*, lenient: bool) -> None:
    """A snapshot behind or ahead of the log has an image, and what came between it and the log is unknown."""
    batches = log.log_of(1, [log.metadata_version()], *([log.topic(number)] for number in range(1, 9)))
    made = Source(log.trimmed(batches, 5, 3, 7), SourceKind.DIRECTORY, "made", None)  # type: ignore[arg-type]
    with pytest.raises(OffsetError, match="holds offsets 5 to 9, so it can't tell all changes after offset 2 up to 9"):
        made.bisect("global_topic_count > 1", 2, lenient=lenient)
    assert made.bisect("global_topic_count == 1", 2, 2, lenient=lenient).offset == 2
    assert made.bisect("global_topic_count == 7", 6, lenient=lenient).offset == 8
    ahead = log.MadeLog(records=tuple(batches[:4]), snapshots=log.trimmed(batches, 0, 7).snapshots)
    with pytest.raises(OffsetError, match="holds offsets 0 to 3, so it can't tell all changes after offset 1 up to 6"):
        Source(ahead, SourceKind.DIRECTORY, "ahead", None).bisect("global_topic_count == 5", 1, lenient=lenient)  # type: ignore[arg-type]


def test_a_snapshot_has_one_offset_also_where_that_is_unknown(tmp_path: Path) -> None:
    named = DIRECTORY / "00000000000000003038-0000000002.checkpoint"
    renamed = tmp_path / "renamed.checkpoint"
    renamed.write_bytes(named.read_bytes())
    for path, offset in ((named, 3037), (renamed, -1)):
        snapshot = kraftlake.open(path)
        for condition in ("global_topic_count > 3", 'topic("elr-a")'):
            assert snapshot.bisect(condition).offset == offset
        with pytest.raises(OffsetError, match=f"it has one image, the one at offset {offset}"):
            snapshot.bisect("global_topic_count > 3", 5)


def test_what_never_holds_says_why(source: Source) -> None:
    with pytest.raises(
        NoSuchThingError, match=r"broker\(9\).fenced does not hold at any offset from 0 to 5736: there is no broker/9"
    ):
        source.bisect("broker(9).fenced")
    with pytest.raises(NoSuchThingError, match="does not hold at offset 458"):
        source.bisect("offline_partitions > 100", 458, 458)
    with pytest.raises(UsageError, match="names nothing"):
        source.bisect("1 == 1")
    with pytest.raises(UsageError, match="runs backwards"):
        source.bisect("broker(1).fenced", 5, 3)
    with pytest.raises(OffsetError):
        source.bisect("broker(1).fenced", 0, 10**6)


def test_an_unknown_record_stops_it_unless_the_range_ends_before() -> None:
    batches = log.log_of(1, [log.topic(1), log.partition(1, leader=-1)], [log.UNKNOWN], [log.topic(2)])
    made = Source(log.MadeLog(records=tuple(batches)), SourceKind.DIRECTORY, "made", None)  # type: ignore[arg-type]
    assert made.bisect("offline_partitions > 0", 0, 2).offset == 2
    for condition in ("global_topic_count > 1", 'topic("topic-2")'):
        with pytest.raises(UnknownRecordError, match="offset 3"):
            made.bisect(condition)


def test_a_lenient_search_leaves_out_what_a_lenient_replay_does() -> None:
    """As if those records were no-ops: the offsets of the others stay."""
    bad = r.PartitionChangeRecord(topic_id=log.uuid_of(7), partition_id=0, leader=1)
    middle: list[list[Any]] = [
        [log.partition(1, partition_id=1, leader=-1), log.UNKNOWN, bad, log.partition(1, partition_id=2, leader=-1)],
        [log.begin(), bad, log.topic(2)],
        [log.partition(2, leader=-1), log.end(), log.end()],
    ]
    start = [log.topic(1), log.partition(1, leader=-1)]
    plain = [[r.NoOpRecord() if one in (bad, log.UNKNOWN) else one for one in batch] for batch in middle]
    plain[-1][-1] = r.NoOpRecord()
    made, whole = (
        Source(log.MadeLog(records=tuple(log.log_of(1, start, *rest))), SourceKind.DIRECTORY, "made", None)  # type: ignore[arg-type]
        for rest in (middle, plain)
    )
    counts = [f"offline_partitions == {number}" for number in range(1, 5)]
    for condition in (*counts, "global_topic_count == 2", 'topic("topic-2").partition(0)', "global_topic_count == 3"):
        for first in (None, 5, 9):
            try:
                expected = whole.bisect(condition, first)
            except NoSuchThingError:
                with pytest.raises(NoSuchThingError, match="without 4 records that can't be replayed"):
                    made.bisect(condition, first, lenient=True)
                continue
            found = made.bisect(condition, first, lenient=True)
            assert found.to_json() == expected.to_json()
            assert [one.offset for one in found.skipped] == [4, 5, 8, 12]


def test_a_start_past_the_end_is_no_range_backwards(source: Source) -> None:
    with pytest.raises(OffsetError, match="Offset 9999 is past the end"):
        source.bisect("broker(1).fenced", 9999)


def test_the_counts_of_what_is_not_as_it_should_be_are_those_of_the_image_at_each_offset(
    source: Source, images: list[tuple[MetadataImage, Any]]
) -> None:
    changes = [*count_changes(source.reader, MetadataImage.EMPTY, LAST)]
    found = [pair for one in changes for pair in zip(one.offsets.tolist(), one.counts.tolist(), strict=True)]
    assert len(found) > 100
    assert found[0] == (-1, [0] * len(COUNTS))
    steps_of_counts = [*pairwise([*found, (LAST + 1, [])])]
    for (before, counts), (offset, _) in at_least_one(steps_of_counts[:: 1 if LONG else 4]):
        for at in {before, (before + offset) // 2, offset - 1} - {-1}:
            image = images[at][0]
            assert counts == [*astuple(count_cluster(image)), *astuple(count_health(image))], at


def test_such_a_count_is_found_with_others_in_one_condition(source: Source) -> None:
    found = source.bisect("under_min_isr_partitions > 0 and fenced_brokers > 0")
    image, before = source.image(found.offset), source.image(found.offset - 1)
    assert count_health(image).under_min_isr_partitions > 0
    assert count_cluster(image).fenced_broker_count > 0
    assert not (count_health(before).under_min_isr_partitions and count_cluster(before).fenced_broker_count)
