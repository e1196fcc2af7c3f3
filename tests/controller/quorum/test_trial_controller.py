"""The controller of a copy decides what Kafka's controller decided when the brokers of the samples came and went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import attrs
import pytest

import kraftlake
from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.quorum.trial_controller import TrialController
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import LeaderRecoveryState
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records import metadata_records as r
from tests.cli.running import DIRECTORY, TORN
from tests.diagnosis.trial.clusters import broker, config, directory, features, image_of, topic_id


class Moment(NamedTuple):
    """What Kafka's controller wrote about one broker in one batch, with the images around it."""

    record: r.BrokerRegistrationChangeRecord | r.RegisterBrokerRecord
    partition_changes: int
    before: MetadataImage
    after: MetadataImage

    @property
    def known(self) -> BrokerRegistration | None:
        return self.before.cluster.brokers.get(self.record.broker_id)


def moments(path: object) -> Iterator[Moment]:
    """The batches of a log in which the state of a registered broker changes."""
    source = kraftlake.open(str(path))
    batches = {batch.last_offset: batch for batch in source.batches() if not batch.control}
    for change in source.changes():
        batch = batches.get(change.image.provenance.offset)
        messages = [] if batch is None else [one.message for one in batch.messages()]
        changed = sum(isinstance(message, r.PartitionChangeRecord) for message in messages)
        for message in messages:
            if isinstance(message, (r.BrokerRegistrationChangeRecord, r.RegisterBrokerRecord)):
                yield Moment(message, changed, change.before, change.image)


def act(trial: TrialController, moment: Moment) -> str | None:
    """Do to the copy what befell the broker; what that is, None for a batch that is about something else."""
    id_, known = moment.record.broker_id, moment.known
    assert known is not None
    if isinstance(moment.record, r.RegisterBrokerRecord):
        if not known.fenced:
            return None
        trial.register(id_, clean=known.in_controlled_shutdown)
        return "registered, clean" if known.in_controlled_shutdown else "registered, after a crash"
    if moment.record.fenced == 1:
        trial.lose([id_])
        return "fenced"
    if moment.record.fenced == -1:
        trial.unfence(id_)
        return "unfenced"
    if moment.record.in_controlled_shutdown == 1:
        trial.shut_down(id_)
        return "shut down"
    return None


def test_the_copy_is_changed_as_kafkas_controller_changed_the_cluster() -> None:
    seen: Counter[str] = Counter()
    changed: Counter[str] = Counter()
    for moment in (one for path in (DIRECTORY, TORN) for one in moments(path) if one.known is not None):
        trial = TrialController(moment.before)
        what = act(trial, moment)
        if what is None:
            continue
        assert trial.image.topics == moment.after.topics, (what, moment.after.provenance.offset)
        seen[what] += 1
        changed[what] += moment.partition_changes
        after, ours = (image.cluster.brokers[moment.record.broker_id] for image in (moment.after, trial.image))
        if what.startswith("registered"):
            but = {"incarnation_id": ours.incarnation_id, "directories": ours.directories}  # a disk may come back
            assert ours == attrs.evolve(after, **but)
        elif what != "shut down":  # which goes on until the broker is fenced
            assert (ours.fenced, ours.in_controlled_shutdown) == (after.fenced, after.in_controlled_shutdown)
    assert seen == {
        "fenced": 21,
        "unfenced": 17,
        "shut down": 8,
        "registered, clean": 3,
        "registered, after a crash": 8,
    }
    assert changed["fenced"] > 500
    assert changed["shut down"] > 700
    assert changed["registered, after a crash"] > 100


def cluster(*partitions: r.PartitionRecord, elr: bool = False) -> MetadataImage:
    """Three brokers, and a topic of these partitions that asks for two replicas in sync."""
    return image_of(
        *features(elr=elr), broker(1), broker(2), broker(3), config("min.insync.replicas", "2", "foo"),
        r.TopicRecord(name="foo", topic_id=topic_id(0)), *partitions,
    )  # fmt: skip


def partition(number: int, *replicas: int, **fields: object) -> r.PartitionRecord:
    made = {"isr": replicas, "leader": replicas[0], "directories": tuple(map(directory, replicas))} | fields
    return r.PartitionRecord(partition_id=number, topic_id=topic_id(0), replicas=replicas, **made)  # type: ignore[arg-type]


def state(trial: TrialController, number: int = 0) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """The leader, the ISR and the ELR of a partition."""
    topic = trial.image.topics.get_topic("foo")
    assert topic is not None
    one = topic.partitions[number]
    return one.leader, one.isr, one.elr


def test_brokers_are_lost_one_after_another() -> None:
    trial = TrialController(cluster(partition(0, 1, 2, 3)))
    trial.lose([3, 1])
    assert state(trial) == (2, (2,), ())
    trial.lose([2])
    assert state(trial) == (-1, (2,), ())
    assert [one.fenced for _, one in sorted(trial.image.cluster.brokers.items())] == [True, True, True]


def test_the_image_that_it_began_with_stays_as_it_was() -> None:
    image = cluster(partition(0, 1, 2, 3))
    before = image.to_json()
    trial = TrialController(image)
    trial.lose([1, 2, 3])
    assert image.to_json() == before
    assert trial.image.provenance.offset > image.provenance.offset


def test_a_broker_that_crashed_is_no_eligible_leader_when_it_starts_again() -> None:
    image = cluster(partition(0, 1, 2), elr=True)
    crashed, cut_off = TrialController(image), TrialController(image)
    for trial in (crashed, cut_off):
        trial.lose([1, 2])
        assert state(trial) == (-1, (), (1, 2))
    crashed.register(1, clean=False)
    crashed.unfence(1)
    assert state(crashed) == (-1, (), (2,))
    cut_off.unfence(1)
    assert state(cut_off) == (1, (1,), (2,))


def test_a_shutdown_moves_leaders_and_then_fences() -> None:
    trial = TrialController(cluster(partition(0, 1, 2, 3), partition(1, 1)))
    trial.shut_down(1)
    known = trial.image.cluster.brokers[1]
    assert (known.fenced, known.in_controlled_shutdown) == (True, True)
    assert (state(trial, 0), state(trial, 1)) == ((2, (2, 3), ()), (-1, (1,), ()))
    trial.register(1, clean=True)
    assert trial.image.cluster.brokers[1].in_controlled_shutdown is False
    trial.unfence(1)
    assert (state(trial, 0), state(trial, 1)) == ((2, (2, 3), ()), (1, (1,), ()))


def test_a_broker_that_may_never_stop_is_lost() -> None:
    """It leads a partition that no election takes from it, since it is not in sync: then it waits in vain."""
    trial = TrialController(cluster(partition(0, 1, 2, isr=(2,))))
    trial.shut_down(1)
    assert trial.image.cluster.brokers[1].fenced


def test_those_that_are_active_catch_up() -> None:
    trial = TrialController(cluster(partition(0, 1, 2, 3, isr=(1,)), partition(1, 2, 3, isr=(3,), leader=-1)))
    trial.lose([3])
    trial.catch_up()
    assert state(trial, 0) == (1, (1, 2), ())
    assert state(trial, 1) == (-1, (3,), ()), "without a leader there is nothing to catch up with"


def test_a_leader_that_may_lack_records_has_recovered_when_others_have_caught_up() -> None:
    trial = TrialController(cluster(partition(0, 1, 2, isr=(1,), leader_recovery_state=1)))
    trial.catch_up()
    topic = trial.image.topics.get_topic("foo")
    assert topic is not None
    assert topic.partitions[0].leader_recovery_state is LeaderRecoveryState.RECOVERED
    assert topic.partitions[0].isr == (1, 2)


def test_a_reassignment_is_done_when_all_have_caught_up() -> None:
    trial = TrialController(cluster(partition(0, 1, 2), partition(1, 1)))
    answers = trial.reassign({("foo", 0): (3, 2), ("foo", 9): (1,), ("foo", 1): (4,)})
    assert {name: answer.error for name, answer in answers.items()} == {
        ("foo", 0): ErrorCode.NONE,
        ("foo", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("foo", 1): ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    }
    assert state(trial) == (1, (1, 2), ())
    trial.catch_up()
    topic = trial.image.topics.get_topic("foo")
    assert topic is not None
    assert (topic.partitions[0].replicas, topic.partitions[0].adding_replicas) == ((3, 2), ())
    assert state(trial) == (3, (2, 3), ())


def test_a_registration_that_the_controller_refuses_changes_nothing() -> None:
    twice = broker(2, log_dirs=(directory(1),))
    trial = TrialController(image_of(*features(), broker(1), twice))
    trial.lose([1])
    fenced = trial.image
    with pytest.raises(ControllerApiError, match="broker 2 has registered directory"):
        trial.register(1, clean=False)
    assert trial.image is fenced
