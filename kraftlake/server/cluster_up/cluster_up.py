"""A lake's cluster that runs as processes and is watched through its log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Self

import kraftlake
from kraftlake.controller.access.scram import alter_user_scram_credentials
from kraftlake.controller.quorum.bootstrap import format_lake, open_controlled
from kraftlake.controller.quorum.embedded import EmbeddedController
from kraftlake.image.broker_partitions import BrokerCounts, count_partitions_of_brokers
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.scram_image import ScramImage
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.storage.location import lake_location
from kraftlake.protocol.address import Address
from kraftlake.protocol.client_config import ClientConfig
from kraftlake.publisher.ignored_configs import IgnoredConfig, IgnoredConfigs
from kraftlake.runtime.errors import EnvironmentFaultError, LakeError, OffsetError
from kraftlake.server.cluster_up.cluster_plan import ClusterPlan, NodeKind
from kraftlake.server.cluster_up.cluster_processes import ClusterProcesses
from kraftlake.server.cluster_up.cluster_security import ClusterSecurity
from kraftlake.server.cluster_up.cluster_state import ClusterState, NodeState, NodeView, incarnations, state_of
from kraftlake.server.cluster_up.node_offsets import NodeOffsets
from kraftlake.server.cluster_up.node_process import NodeProcess

if TYPE_CHECKING:
    import pyarrow as pa

POLL_SECONDS: Final = 0.1


class ClusterUp:
    """Runs the nodes of a plan within a `with` statement, whose exit kills nodes that have not ended.

    `step` advances the cluster and yields the events of its log; `state` is its state after that. For the thread that
    starts it.
    """

    def __init__(self, plan: ClusterPlan) -> None:
        self.warnings: list[str] = []
        """Sentences about the start."""
        self._plan = plan
        self._stack = ExitStack()
        self._processes = ClusterProcesses(plan)
        self._ignored = IgnoredConfigs()
        self._counts: tuple[MetadataImage, dict[int, BrokerCounts]] | None = None

    def __enter__(self) -> Self:
        """Create the lake if none exists, and start the nodes.

        Raises LakeError if the path holds something other than a controlled lake, EnvironmentFaultError if a folder
        can't be made.
        """
        plan, security = self._plan, self._plan.security
        self.cluster_id = _controlled(plan.lake).cluster_id
        if security is not None:
            self.warnings = secure(plan, security)
        opened = kraftlake.open(plan.lake)
        with ExitStack() as stack:
            self._watch = stack.enter_context(opened.watch(poll=POLL_SECONDS))
            self._earlier = incarnations(self._watch.image)
            self._epoch_before = self._watch.state.epoch
            addresses = {
                node.id: Address(node.listener.host, node.listener.port) for node in plan.of_kind(NodeKind.BROKER)
            }
            client = ClientConfig() if security is None else security.client
            self._offsets = NodeOffsets(lambda: self._watch.image, addresses, client)
            stack.callback(self._processes.close)
            try:
                self._processes.start()
            except OSError as fault:
                raise EnvironmentFaultError(
                    f"{fault.filename} can't be made: {fault.strerror}. Give another folder with --data."
                ) from None
            stack.callback(self._offsets.close)
            self._offsets.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def step(self) -> Iterator[pa.Table]:
        """Yield the events of the log since the last step, as tables of `events/`; stops the nodes that are next."""
        yield from self._watch.step()
        self._processes.step(self._leader)

    def leave(self) -> None:
        """Begin to end all nodes in order: see `ClusterProcesses`."""
        self._processes.leave()

    def hurry(self) -> None:
        """End all nodes at once."""
        self._processes.hurry()

    @property
    def is_over(self) -> bool:
        """Whether no node runs."""
        return self._processes.is_over

    def newly_ended(self) -> list[NodeProcess]:
        """The nodes that have ended since the last call."""
        return self._processes.newly_ended()

    def newly_ignored(self) -> list[IgnoredConfig]:
        """The configs in the log without effect that were not reported before."""
        return self._ignored.newly_set(self._watch.image)

    @property
    def _leader(self) -> int | None:
        """The controller that leads the log, if it runs and has claimed the log since its start."""
        log = self._watch.state
        running = {node.plan.id for node in self._processes.nodes if node.is_running}
        return log.leader if log.leader in running and log.epoch > self._epoch_before else None

    @property
    def state(self) -> ClusterState:
        """The current state of the cluster."""
        image, leader = self._watch.image, self._leader
        if self._counts is None or self._counts[0] is not image:
            self._counts = image, count_partitions_of_brokers(image)
        counts, offsets = self._counts[1], self._offsets.newest
        nodes = []
        for node in self._processes.nodes:
            state = state_of(node, image, self._earlier, leader, is_leaving=self._processes.is_leaving)
            is_known = node.plan.kind is NodeKind.BROKER and state is not NodeState.STARTING
            nodes.append(
                NodeView(
                    name=node.plan.name,
                    id=node.plan.id,
                    kind=node.plan.kind,
                    address=node.plan.address,
                    pid=node.pid if node.is_running else None,
                    state=state,
                    ending=node.ending,
                    counts=counts.get(node.plan.id) if is_known else None,
                    offsets=offsets.get(node.plan.id) if is_known and node.is_running else None,
                )
            )
        return ClusterState(
            nodes=tuple(nodes),
            log=self._watch.state,
            leader=leader,
            replicas_out_of_isr=sum(one.out_of_isr for one in counts.values()),
        )


def secure(plan: ClusterPlan, security: ClusterSecurity) -> list[str]:
    """Have the certificates, the clients' files and the users in the lake; returns warnings.

    Raises EnvironmentFaultError for certificates that can't be used, LakeError where users are missing in a lake that
    another controller writes.
    """
    keystores = {node.name: node.keystore for node in plan.nodes}
    security.write(keystores, plan.addresses(NodeKind.BROKER), datetime.now(UTC))
    try:
        users = kraftlake.open(plan.lake).image().scram
    except OffsetError:  # no controller has written to it yet
        users = ScramImage()
    missing, warning = security.credentials(users)
    if missing:
        controller = EmbeddedController(open_controlled(plan.lake))
        answers = controller.run(lambda state: alter_user_scram_credentials(state, (), missing))
        for user, error in answers.items():
            if error.is_failure:
                raise LakeError(f"User {user} can't be added to {plan.lake}: {error.message}")
    return [] if warning is None else [warning]


def _controlled(lake: str) -> MetadataLog:
    """Return the log of a controlled lake, which is created if the path is empty."""
    location = lake_location(lake)
    return open_controlled(lake) if location.is_dir() or location.exists() else format_lake(lake)
