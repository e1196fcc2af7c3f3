"""The invariants of three controllers on one log, for any order of commands, commits, claims and time."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kraftlake.controller.errors import ControllerApiError
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records.control_records import LeaderChangeMessage
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.runtime.clock import ManualClock
from tests.controller.random_commands import BROKERS, COMMANDS, TOPICS
from tests.controller.simulated_quorum import Node, SimulatedLog
from tests.controller.test_histories import assert_epochs_go_on, assert_sound
from tests.replay.made_logs import without_place

NODES = (101, 102, 103)
nodes = st.sampled_from(NODES)


class Quorum(RuleBasedStateMachine):
    """Each node may lead, think that it leads, or stand by; what a node has appended is durable when it is written."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(1_700_000_000_000)
        self.log = SimulatedLog()
        self.nodes = {node: Node(node, self.log, self.clock) for node in NODES}
        self.follower = MetadataBatchLoader()
        self.followed = 0
        self.image = MetadataImage.EMPTY

    @initialize()
    def begin(self) -> None:
        """A controller, four brokers and a topic."""
        first = self.nodes[NODES[0]]
        first.claim()
        first.start(*BROKERS)
        first.assigned(TOPICS[0], (1, 2, 3), (2, 3, 4))
        first.write_all()

    @precondition(lambda self: any(node.leading for node in self.nodes.values()))
    @rule(data=st.data(), command=st.sampled_from(COMMANDS))
    def ask(self, data: st.DataObject, command: object) -> None:
        """Ask one that thinks it leads for anything."""
        node = data.draw(st.sampled_from([node for node in self.nodes.values() if node.leading]))
        try:
            command(data.draw, node)  # type: ignore[operator]
        except ControllerApiError:
            assert node.added == [], "what is refused as a whole leaves nothing"

    @rule(node=nodes)
    def write(self, node: int) -> None:
        """The oldest batch that it has appended becomes durable, or another has claimed."""
        self.nodes[node].write()

    @rule(node=nodes)
    def write_all(self, node: int) -> None:
        self.nodes[node].write_all()

    @rule(node=nodes)
    def claim(self, node: int) -> None:
        """A standby claims, whether somebody leads or not; who led before doesn't know."""
        if self.nodes[node].leading is None:
            self.nodes[node].claim()

    @rule(node=nodes)
    def crash(self, node: int) -> None:
        """What was not written is lost; the process comes back as a standby."""
        if self.nodes[node].leading is not None:
            self.nodes[node].step_down()

    @invariant()
    def every_batch_keeps_the_cluster_sound(self) -> None:
        """The leader is in sync or there is none; epochs go up by one a change: after each batch of the log."""
        for batch in self.log.batches[self.followed :]:
            before = self.image
            self.follower.load_batch(batch)
            self.image = self.follower.take_image()
            if self.follower.in_transaction:
                continue
            assert_sound(self.image)
            added = [] if batch.control else [record.message for record in batch.messages()]
            for topic in before.topics.topics_by_id().values():
                after = self.image.topics.get_topic_by_id(topic.id)
                if after is not None:
                    assert_epochs_go_on(topic, after, added)  # type: ignore[arg-type]
        self.followed = len(self.log.batches)

    @invariant()
    def an_epoch_has_one_controller(self) -> None:
        """It begins with its LeaderChange, all of it is written by that node, and no epoch comes twice."""
        epoch, leader = 0, 0
        for batch, writer in zip(self.log.batches, self.log.writers, strict=True):
            if batch.control:
                (claim,) = [record.message for record in batch.messages()]
                assert isinstance(claim, LeaderChangeMessage)
                assert batch.epoch == epoch + 1
                epoch, leader = batch.epoch, claim.leader_id
            assert (batch.epoch, writer) == (epoch, leader)

    @invariant()
    def answers_are_in_the_log(self) -> None:
        """What was answered is durable; of what was refused as NOT_CONTROLLER, the first batches of several at most."""
        for node in self.nodes.values():
            for asked in node.settled:
                found = [self.log.holds(asked.epoch, base, records) for base, records in asked.batches]
                if asked.answered:
                    assert all(found)
                    assert asked.answer_at < self.log.end
                else:
                    assert found == sorted(found, reverse=True)
            node.settled = [asked for asked in node.settled if not asked.answered]

    @invariant()
    def what_a_leader_believes_is_what_the_log_says(self) -> None:
        for node in self.nodes.values():
            if node.leading is not None and node.leading.epoch == self.log.epoch:
                assert node.leading.durable_offset <= self.log.end - 1
                if not self.follower.in_transaction:
                    assert without_place(node.image) == without_place(self.image)
                if not node.unwritten:
                    assert without_place(node.state.image) == without_place(self.image)

    def teardown(self) -> None:
        """In the end everything that the leader has appended can be written, and it was right about what that makes."""
        for node in self.nodes.values():
            node.write_all()
        self.every_batch_keeps_the_cluster_sound()
        self.answers_are_in_the_log()
        self.what_a_leader_believes_is_what_the_log_says()
        assert not [node for node in self.nodes.values() if node.waiting]


TestQuorum = Quorum.TestCase
