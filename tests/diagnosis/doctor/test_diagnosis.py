"""A diagnosis is what an independent computation from the image says: of the sample, and of many made-up logs."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs
import pytest

from kraftlake.controller.quorum.trial_controller import TrialController
from kraftlake.diagnosis.doctor.diagnosis import Diagnosis, diagnose
from kraftlake.diagnosis.doctor.finding import Severity
from kraftlake.diagnosis.trial.standing import Standing
from kraftlake.generate.episodes import EPISODES
from kraftlake.generate.plan import PATTERNS, Plan
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.writer import write_segment
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.imports.import_log import import_source
from kraftlake.runtime.errors import OffsetError
from tests.cli.running import DIRECTORY, TORN
from tests.diagnosis.doctor.made import by_check
from tests.diagnosis.doctor.plain import Thing, since_when, since_when_in_sample
from tests.docs.broken_logs import BROKEN
from tests.generate.made_up import MadeUp

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
LOGS = 400 if LONG else 20
CHECKS = {
    "offline": "offline_partitions",
    "under_min_isr": "under_min_isr",
    "under_replicated": "under_replicated",
    "being_reassigned": "reassignments",
    "recovering": "recovering_leaders",
    "fenced": "fenced_brokers",
    "inControlledShutdown": "brokers_shutting_down",
}
THROTTLES = (
    "leader.replication.throttled.rate", "follower.replication.throttled.rate",
    "leader.replication.throttled.replicas", "follower.replication.throttled.replicas",
)  # fmt: skip
LED_ONLY = ("under_min_isr", "under_replicated")
OF_LOG = {
    "torn_tail", "quorum_partly_seen", "recent_changes", "unclean_elections", "flapping_brokers", "flapping_replicas",
    "unusual_activity",
}  # fmt: skip


def expected_of(since: Mapping[Thing, int], image: MetadataImage) -> dict[str, dict[str, int]]:
    """By check the things that have the trouble, and since which offset."""
    names = {str(topic.id): name for name, topic in image.topics.topics_by_name().items()}
    found: dict[str, dict[str, int]] = {}
    for (trouble, topic_id, number), offset in since.items():
        if trouble in LED_ONLY and ("offline", topic_id, number) in since:
            continue
        if trouble == "inControlledShutdown" and ("fenced", "", number) in since:
            continue
        thing = f"{names[topic_id]}-{number}" if topic_id else f"broker {number}"
        found.setdefault(CHECKS[trouble], {})[thing] = offset
    return found


def throttled(image: MetadataImage) -> set[str]:
    kinds = {2: "topic", 4: "broker"}
    return {
        f"{kinds[resource.type]} {resource.name or '(default)'}"
        for resource, configs in image.configs.resource_data.items()
        for name in configs.data
        if name in THROTTLES
    }


def one_loss_from_offline(image: MetadataImage) -> set[str]:
    """The partitions that the controller leaves without a leader where one broker is lost, of each broker."""
    found: set[str] = set()
    for id_, broker in image.cluster.brokers.items():
        trial = TrialController(image)
        trial.lose([id_] if not broker.fenced else [])
        found |= {*Standing.of(trial.image).offline}.difference(Standing.of(image).offline)
    return found


def assert_as_expected(diagnosis: Diagnosis, since: Mapping[Thing, int]) -> None:
    """The findings are those expected, each of its things is so since the earliest offset of its group."""
    assert diagnosis.image is not None
    expected = expected_of(since, diagnosis.image)
    things: dict[str, set[str]] = {}
    for finding in diagnosis.findings:
        things.setdefault(finding.check, set()).update(finding.things)
        of_check = expected.get(finding.check)
        if of_check is not None:
            for group in finding.groups:
                assert group.since is not None
                assert group.since.offset == min(of_check[thing] for thing in group.things)
            assert finding.since is not None
            assert finding.since.offset == min(of_check[thing] for thing in finding.things)
    also = {"throttles": throttled, "one_loss_from_offline": one_loss_from_offline}
    others = {check: some for check, of_image in also.items() if (some := of_image(diagnosis.image))}
    assert {check: some for check, some in things.items() if check not in OF_LOG} == others | {
        check: set(some) for check, some in expected.items()
    }
    severities = [finding.severity for finding in diagnosis.findings]
    assert severities == sorted(severities)
    assert diagnosis.is_healthy == all(severity is Severity.INFO for severity in severities)


@pytest.mark.xdist_group("since_when_in_sample")
@pytest.mark.parametrize("at", [236, 458, 1280, 2786, 4600, None] if LONG else [458, 2786])
def test_the_sample_is_diagnosed(at: int | None) -> None:
    assert_as_expected(diagnose(DIRECTORY, at), since_when_in_sample(at))


def test_a_lake_is_diagnosed_as_its_directory(tmp_path: Path) -> None:
    import_source(TORN, tmp_path / "lake")
    lake, directory = diagnose(tmp_path / "lake"), diagnose(TORN)
    about_files = {"torn_tail", "quorum_partly_seen"}
    assert [(one.check, one.groups) for one in lake.findings if one.check not in about_files] == [
        (one.check, one.groups) for one in directory.findings if one.check not in about_files
    ]


def test_a_wrong_bit_is_named_and_what_the_snapshots_know_is_diagnosed(tmp_path: Path) -> None:
    BROKEN["flipped"](tmp_path, "458")
    diagnosis, whole = diagnose(tmp_path / "md"), diagnose(DIRECTORY)
    found = by_check(diagnosis)
    assert diagnosis.offset == whole.offset
    assert found["unsound_log"].things == ("00000000000000000000.log", "offset 403")
    assert found["quorum_election"].severity is Severity.CRITICAL  # the only voter does not start
    for check in ("offline_partitions", "fenced_brokers", "throttles"):
        assert sorted(found[check].things) == sorted(by_check(whole)[check].things)


def test_a_log_without_a_segment_is_diagnosed_up_to_the_gap(tmp_path: Path) -> None:
    for file in DIRECTORY.iterdir():
        if file.name != "00000000000000002027.log" and file.suffix != ".checkpoint":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    diagnosis = diagnose(tmp_path)
    assert diagnosis.offset == 2026
    assert "the log can't be replayed from offset 2027 on" in by_check(diagnosis)["log_stops"].sentence
    assert_same_troubles(diagnosis, diagnose(DIRECTORY, 2026))


def assert_same_troubles(one: Diagnosis, other: Diagnosis) -> None:
    """Both find the same of partitions, brokers and settings."""
    of_cluster = {*CHECKS.values(), "throttles", "unclean_elections", "recent_changes"}
    pairs = [[(f.check, f.groups) for f in each.findings if f.check in of_cluster] for each in (one, other)]
    assert pairs[0] == pairs[1]
    assert pairs[0]


def test_a_moment_that_is_not_there_is_an_error() -> None:
    with pytest.raises(OffsetError, match="Offset 99999 is past the end"):
        diagnose(DIRECTORY, 99_999)


def made_up_logs() -> Iterator[tuple[int, list[RecordBatch]]]:
    """Logs of small clusters that end anywhere in their history, with all kinds of troubles."""
    for seed in range(LOGS):
        choice = random.Random(seed)
        brokers = choice.randint(2, 6)
        plan = Plan(
            brokers=brokers, racks=choice.randint(1, min(3, brokers)), topics=choice.randint(1, 5),
            partitions=choice.randint(1, 4), replication_factor=choice.randint(1, min(4, brokers)),
            records=10_000, patterns=PATTERNS, quiet_ms=0, seed=seed,
        )  # fmt: skip
        made = MadeUp(plan)
        first = len(made.batches)
        for pattern in choice.sample(PATTERNS, 3):
            made.play(EPISODES[pattern])
        some = [*made.batches[: choice.randint(first, len(made.batches))], *settings(choice, made.batches[-1].epoch)]
        yield seed, renumbered(some)


def settings(choice: random.Random, epoch: int) -> list[RecordBatch]:
    """Throttles and min.insync.replicas, a batch each."""
    records = [
        r.ConfigRecord(resource_type=4, resource_name="1", name=THROTTLES[0], value="1000"),
        r.ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2"),
        r.ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="3"),
    ]
    some = choice.sample(records, choice.randint(0, 2))
    return [RecordBatch.of(0, epoch, -1, [ApiMessageAndVersion(one, 0)]) for one in some]


def test_made_up_logs_are_diagnosed() -> None:
    checks: set[str] = set()
    for seed, batches in made_up_logs():
        with tempfile.TemporaryDirectory() as folder:
            write_segment(Path(folder) / "00000000000000000000.log", batches)
            diagnosis = diagnose(folder)
            try:
                assert diagnosis.image is not None
                assert_as_expected(diagnosis, since_when(batches, diagnosis.image))
            except AssertionError as fault:
                raise AssertionError(f"seed {seed}: {fault}") from fault
            checks |= {finding.check for finding in diagnosis.findings}
    assert {"under_replicated", "fenced_brokers", "offline_partitions", "under_min_isr", "throttles"} <= checks


def renumbered(batches: Sequence[RecordBatch]) -> list[RecordBatch]:
    """The batches without gaps between their offsets."""
    offset, made = 0, []
    for batch in batches:
        made.append(attrs.evolve(batch, base_offset=offset))
        offset = made[-1].last_offset + 1
    return made


def test_a_made_up_cluster_that_is_only_set_up_is_healthy(tmp_path: Path) -> None:
    for seed in range(5):
        folder = tmp_path / str(seed)
        folder.mkdir()
        write_segment(folder / "00000000000000000000.log", MadeUp(Plan(topics=5, partitions=4, seed=seed)).batches)
        diagnosis = diagnose(folder)
        assert diagnosis.is_healthy
        assert [finding.check for finding in diagnosis.findings] == ["quorum_partly_seen"]  # nothing names the voters
