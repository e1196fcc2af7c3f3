"""The moves that empty a broker: only its replicas, racks kept apart, and accepted by the controller."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kraftlake
from kraftlake.diagnosis.removal.moves import moves_from
from kraftlake.diagnosis.trial.reassignment_file import parse_reassignment
from kraftlake.diagnosis.trial.steps import Step, StepKind
from kraftlake.diagnosis.trial.what_if import what_if
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.runtime.errors import LakeError, NoSuchThingError
from tests.cli.running import DIRECTORY, run


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lakes of six brokers, in three racks and in one."""
    folder = tmp_path_factory.mktemp("lakes")
    for racks in ("3", "1"):
        run("generate", folder / racks, "--records", 1000, "--topics", 10, "--racks", racks, "--quiet", 0)
    return folder


def racks_of(image: MetadataImage, replicas: tuple[int, ...]) -> int:
    return len({image.cluster.brokers[replica].rack for replica in replicas})


@pytest.mark.parametrize("broker", [1, 4])
def test_only_its_replicas_move_each_within_its_place_and_racks_stay_apart(lakes: Path, broker: int) -> None:
    image = kraftlake.open(lakes / "3").image()
    moves = moves_from(image, broker)
    assert len(moves.targets) > 50
    assert not moves.stuck
    for (name, number), after in moves.targets.items():
        before = image.topics.topics_by_name()[name].partitions[number].replicas
        assert [one for one in before if one != broker] == [
            one for one, was in zip(after, before, strict=True) if was != broker
        ]
        assert broker not in after
        assert len({*after}) == len(before)
        assert racks_of(image, after) == racks_of(image, before)


def test_without_racks_no_replica_could_lie_on_a_broker_with_fewer(lakes: Path) -> None:
    image = kraftlake.open(lakes / "1").image()
    moves = moves_from(image, 1)
    held = dict.fromkeys((2, 3, 4, 5, 6), 0)
    for name, topic in image.topics.topics_by_name().items():
        for number, state in topic.partitions.items():
            for replica in moves.targets.get((name, number), state.replicas):
                held[replica] += 1
    followers = 0
    for (name, number), after in moves.targets.items():
        before = image.topics.topics_by_name()[name].partitions[number].replicas
        (new,) = {*after} - {*before}
        if before[0] != 1:  # a preferred replica goes where fewest leaders are
            followers += 1
            assert all(held[new] <= held[other] + 1 for other in {*held} - {*before})
    assert followers > 20


@pytest.mark.parametrize("offset", [458, 2784, 4592])
def test_the_moves_that_are_shown_empty_the_broker_by_the_controllers_rules(offset: int, tmp_path: Path) -> None:
    source = kraftlake.open(DIRECTORY)
    image = source.image(offset)
    (broker,) = [id_ for id_, one in sorted(image.cluster.brokers.items()) if not one.fenced][:1]
    found = source.removal_check(broker, offset)
    if not found.is_proved:
        with pytest.raises(LakeError, match=f"No moves empty broker {broker}: .* add brokers"):
            found.reassignment()
        return
    targets = parse_reassignment(json.dumps(found.reassignment()))
    assert targets == found.moves.targets
    steps = [Step(kind=StepKind.REASSIGN, moves=targets), Step(kind=StepKind.CATCH_UP)]
    after = what_if(image, steps).image
    topics = after.topics.topics_by_name().values()
    assert not [one for topic in topics for one in topic.partitions.values() if broker in one.replicas]
    loss = what_if(image, [Step(kind=StepKind.LOSE_BROKER, brokers=(broker,))])
    assert {*found.offline} == {*loss.after.offline} - {*loss.before.offline}
    assert sum(found.directories.values()) == len(found.replicas) > 0


def test_a_cluster_without_active_brokers_has_nowhere_to_go() -> None:
    found = kraftlake.open(DIRECTORY).removal_check(3)
    assert (found.is_proved, len(found.moves.stuck)) == (False, len(found.replicas))
    with pytest.raises(LakeError, match="No moves empty broker 3: 147 partitions would stay"):
        found.reassignment()


def test_a_broker_that_is_not_registered_is_named() -> None:
    with pytest.raises(NoSuchThingError, match="Broker 9 is not registered at offset 5736"):
        kraftlake.open(DIRECTORY).removal_check(9)
