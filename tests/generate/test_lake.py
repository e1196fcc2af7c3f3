from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings

import kraftlake
from kraftlake.generate import rows
from kraftlake.generate.lake import generate_lake
from kraftlake.generate.plan import PATTERNS, Plan
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.runtime.errors import LakeError, UsageError
from tests.generate.made_up import plans

WHOLE_HISTORIES = max(20, settings.default.max_examples // 10)
"""Each of them takes a while."""


@settings(max_examples=WHOLE_HISTORIES)
@given(plan=plans())
def test_a_generated_lake_is_sound_and_has_the_planned_length(
    plan: Plan, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lake = tmp_path_factory.mktemp("made-up") / "lake"
    progress: list[int] = []
    report = generate_lake(lake, plan, progress.append)
    source = kraftlake.open(str(lake))
    assert source.verify().sound
    assert source.end_offset == report.end_offset == progress[-1]
    assert report.end_offset >= plan.records
    assert source.image().topics.partition_count == report.partitions
    assert source.cluster_id == report.cluster_id
    assert report.episodes[0].name == "set-up"
    assert [episode.name for episode in report.episodes[1:3]] == [*plan.patterns, *plan.patterns][
        : len(report.episodes) - 1
    ][:2]
    assert all(episode.first_offset <= episode.last_offset + 1 for episode in report.episodes)


def test_the_same_plan_gives_the_same_log_and_another_seed_another_one(tmp_path: Path) -> None:
    plan = Plan(topics=5, records=3_000)
    made = [generate_lake(tmp_path / name, plan) for name in ("one", "two")]
    other = generate_lake(tmp_path / "other", attrs.evolve(plan, seed=1))

    def log(name: str) -> object:
        return DeltaTable(tmp_path / name / "log").to_pyarrow_table().sort_by("offset")

    assert log("one") == log("two")
    assert log("one") != log("other")
    assert made[0].to_json() | {"lake": ""} == made[1].to_json() | {"lake": ""}
    assert other.cluster_id != made[0].cluster_id


def test_how_much_goes_into_a_commit_does_not_change_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(topics=5, records=2_000)
    generate_lake(tmp_path / "one", plan)
    monkeypatch.setattr(rows, "COMMIT_ROWS", 100)
    generate_lake(tmp_path / "many", plan)
    one, many = (MetadataLog.open(tmp_path / name) for name in ("one", "many"))
    assert many.version > one.version + 5
    assert one.rows() == many.rows()


def test_a_controller_can_continue_a_generated_lake(tmp_path: Path) -> None:
    generate_lake(tmp_path / "lake", Plan(records=0))
    log = MetadataLog.open(tmp_path / "lake")
    assert (log.role, log.epoch) == ("controlled", 1)
    assert log.claim(3001) == 2


def test_a_lake_is_generated_only_in_an_empty_or_new_folder(tmp_path: Path) -> None:
    plan = Plan(topics=1, records=0, patterns=())
    (tmp_path / "empty").mkdir()
    generate_lake(tmp_path / "empty", plan)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(LakeError, match="is in the way"):
        generate_lake(tmp_path / "full", plan)
    with pytest.raises(LakeError, match="does not exist"):
        generate_lake(tmp_path / "no" / "lake", plan)
    with pytest.raises(LakeError, match="goes to a folder"):
        generate_lake("s3://bucket/lake", plan)
    with pytest.raises(UsageError, match="--brokers"):
        generate_lake(tmp_path / "new", attrs.evolve(plan, brokers=0))
    assert {path.name for path in tmp_path.iterdir()} == {"empty", "full"}


def test_an_interrupted_run_leaves_no_files(tmp_path: Path) -> None:
    def give_up(done: int) -> None:
        raise KeyboardInterrupt(done)

    with pytest.raises(KeyboardInterrupt):
        generate_lake(tmp_path / "lake", Plan(records=0), give_up)
    assert not [*tmp_path.iterdir()]


def test_without_patterns_the_history_has_only_no_op_records(tmp_path: Path) -> None:
    report = generate_lake(tmp_path / "lake", Plan(topics=1, records=1_000, patterns=()))
    assert report.end_offset == 1_000
    assert [episode.name for episode in report.episodes] == ["set-up"]
    assert PATTERNS


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"topics": 10**9, "partitions": 1000}, "1,000,000,000,000 partitions takes at least 27,016.0 GB of memory"),
        ({"brokers": 10**13}, "take fewer --topics, --partitions or --brokers"),
        ({"records": 10**18}, "1,000,000,000,000,000,000 records takes at least 50,000,000.0 GB, and .* fewer --rec"),
    ],
)
def test_a_plan_that_exceeds_memory_or_disk_is_refused_at_once(
    options: dict[str, int], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=said):
        generate_lake(tmp_path / "lake", Plan(**options))
    assert not [*tmp_path.iterdir()]


def test_a_log_of_only_no_op_records_takes_more_than_the_minimum_disk_space(tmp_path: Path) -> None:
    plan = Plan(topics=1, partitions=1, records=300_000, patterns=())
    generate_lake(tmp_path / "lake", plan)
    assert sum(file.stat().st_size for file in (tmp_path / "lake").rglob("*.parquet")) > plan.least_disk
