"""Folders are kept until the log says that their records are elsewhere, or were given up."""

from __future__ import annotations

from pathlib import Path

from kraftlake.diagnosis.doctor.diagnosis import diagnose
from kraftlake.diagnosis.doctor.help import HelpRisk
from kraftlake.records import metadata_records as r
from kraftlake.records.schema import Message
from kraftlake.records.uuid import Uuid
from tests.cli.made_logs import TOPIC_ID
from tests.diagnosis.doctor.made import BEGIN, by_check, change, log_of

OLD = Uuid(bytes([7] * 16))
MADE_AND_DELETED = [r.TopicRecord(name="old", topic_id=OLD), r.RemoveTopicRecord(topic_id=OLD)]


def folders(folder: Path, **topic_ids: Uuid) -> Path:
    """A log directory of broker 2 with a folder for each name, `foo_0` for foo-0."""
    data = folder / "data"
    for name, topic_id in topic_ids.items():
        made = data / name.replace("_", "-")
        made.mkdir(parents=True)
        (made / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    (data / "meta.properties").write_text("version=1\ncluster.id=made\nnode.id=2\n")
    return data


def found(folder: Path, data: Path, check: str, *befalls: Message) -> tuple[list[str], list[HelpRisk]]:
    helps = by_check(diagnose(log_of(folder / "log", *befalls), log_dirs=[data]))[check].helps
    return [one.action for one in helps], [one.risk for one in helps]


def test_a_folder_of_a_topic_that_the_log_never_had_is_kept(tmp_path: Path) -> None:
    data = folders(tmp_path, foo_0=TOPIC_ID, foo_1=TOPIC_ID, other_0=OLD)
    (action,), risks = found(tmp_path, data, "stray_folders", *MADE_AND_DELETED[:0])
    assert action.startswith(f"Keep {data}/other-0: the log does not show that the records in it are elsewhere")
    assert risks == [HelpRisk.SAFE]


def test_a_folder_under_the_id_of_another_topic_is_kept(tmp_path: Path) -> None:
    data = folders(tmp_path, foo_0=OLD, foo_1=TOPIC_ID)
    (action,), _ = found(tmp_path, data, "stray_folders")
    assert action.startswith(f"Keep {data}/foo-0: ")


def test_a_folder_under_the_id_of_a_topic_of_another_name_is_kept(tmp_path: Path) -> None:
    other = [
        r.TopicRecord(name="bar", topic_id=OLD),
        r.PartitionRecord(partition_id=0, topic_id=OLD, replicas=(1,), isr=(1,), leader=1),
        change(0, replicas=(1, 3), isr=(1, 3)),
    ]
    data = folders(tmp_path, foo_0=OLD, foo_1=TOPIC_ID)
    (action,), _ = found(tmp_path, data, "stray_folders", *other)
    assert action.startswith(f"Keep {data}/foo-0: ")


def test_a_folder_of_a_topic_that_the_log_deleted_may_be_deleted_with_its_cost(tmp_path: Path) -> None:
    data = folders(tmp_path, foo_0=TOPIC_ID, foo_1=TOPIC_ID, old_0=OLD)
    (help_,) = by_check(diagnose(log_of(tmp_path, *MADE_AND_DELETED), log_dirs=[data]))["stray_folders"].helps
    assert help_.risk is HelpRisk.DELETE
    (evidence,) = help_.evidence
    assert (evidence.things, evidence.reason) == ((f"{data}/old-0",), f"topic {OLD} was deleted")
    assert evidence.since is not None
    assert evidence.since.offset == BEGIN + 1
    assert "no other copy" in help_.cost


def test_a_topic_that_was_made_again_under_its_name_keeps_the_other_folder_apart(tmp_path: Path) -> None:
    again = [*MADE_AND_DELETED, r.TopicRecord(name="old", topic_id=Uuid(bytes([8] * 16)))]
    data = folders(tmp_path, foo_0=TOPIC_ID, foo_1=TOPIC_ID, old_0=OLD)
    _, risks = found(tmp_path, data, "stray_folders", *again)
    assert risks == [HelpRisk.DELETE]


def test_a_replica_that_was_moved_away_is_kept_until_the_others_are_in_sync(tmp_path: Path) -> None:
    data = folders(tmp_path, foo_0=TOPIC_ID, foo_1=TOPIC_ID)
    moved = change(0, replicas=(1, 3), isr=(1, 3))
    assert found(tmp_path / "in sync", data, "stray_folders", moved)[1] == [HelpRisk.DELETE]
    (action,), risks = found(tmp_path / "behind", data, "stray_folders", moved, change(0, isr=(1,)))
    assert action.startswith(f"Keep {data}/foo-0: ")
    assert risks == [HelpRisk.SAFE]


def test_the_only_copy_is_looked_for_before_the_broker_starts(tmp_path: Path) -> None:
    data = folders(tmp_path, foo_1=TOPIC_ID)
    (action,), _ = found(tmp_path, data, "missing_folders", change(0, leader=-1, isr=(2,)))
    assert action.startswith("Find the folder of foo-0 first")
    assert "Do not start the broker without" in action


def test_a_replica_that_others_lead_is_copied_again(tmp_path: Path) -> None:
    (action,), _ = found(tmp_path, folders(tmp_path, foo_1=TOPIC_ID), "missing_folders")
    assert action.startswith("Give all log directories of the broker (--log-dirs). If 1 folder is gone")
