"""What a node notes of elections."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftlake.kafka_files.node.quorum_state import ElectionState, read_election_state
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError

SAMPLES = Path(__file__).resolve().parents[3] / "samples"


@pytest.mark.parametrize(("sample", "epoch"), [("crash-torn", 1), ("kafka-4.4", 2), ("legacy-33", 3)])
def test_both_versions_of_the_file_are_read(sample: str, epoch: int) -> None:
    state = read_election_state(SAMPLES / sample / "log" / "__cluster_metadata-0")
    assert state == ElectionState(leader_epoch=epoch, leader_id=3000, voted_id=None)


def test_a_vote_in_an_epoch_without_a_leader_is_read(tmp_path: Path) -> None:
    (tmp_path / "quorum-state").write_text('{"leaderId":-1,"leaderEpoch":7,"votedId":2,"data_version":1}')
    assert read_election_state(tmp_path) == ElectionState(leader_epoch=7, leader_id=None, voted_id=2)


def test_a_folder_without_the_file_has_no_state(tmp_path: Path) -> None:
    assert read_election_state(tmp_path) is None


@pytest.mark.parametrize(
    "content", ["", "\n", "\0\0\0\0", "{}", "[1]", '{"leaderId":true,"leaderEpoch":1,"votedId":1}']
)
def test_what_kafka_could_not_read_either_is_corrupt(tmp_path: Path, content: str) -> None:
    (tmp_path / "quorum-state").write_text(content)
    with pytest.raises(CorruptDataError, match=r"quorum-state is (empty|not what Kafka writes there)"):
        read_election_state(tmp_path)


def test_a_path_that_is_no_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "quorum-state").mkdir()
    with pytest.raises(KraftlakeError, match="quorum-state can't be read"):
        read_election_state(tmp_path)
