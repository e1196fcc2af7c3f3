"""Finds the leader of a quorum and fetches from it; one exchange per call, and the caller decides when to retry.

Source: KIP-595 (observers), KIP-919 (controllers as bootstrap servers); org.apache.kafka.raft.KafkaRaftClient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, Self, TypeVar

import attrs

from kraftlake.protocol.address import Address
from kraftlake.protocol.describe import (
    CONTROLLERS,
    OF_ANOTHER_TYPE,
    UNKNOWN_LEADER,
    Leader,
    OtherClusterError,
    QuorumDescription,
    checked_cluster_id,
    describe_cluster,
    describe_quorum,
)
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.leader_connection import LeaderConnection, RefusedError
from kraftlake.protocol.node_client import NodeClient
from kraftlake.protocol.node_error import NodeError, NoLeaderError, OlderLeaderError
from kraftlake.protocol.observer.observed_log import ObservedLog
from kraftlake.protocol.observer.raw_batch import RawBatch
from kraftlake.protocol.observer.requests import FetchedLogPart, fetch, fetch_snapshot
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.runtime.errors import CorruptDataError, OffsetError


class _Answer(Protocol):
    """A controller's answer; `error` and `leader` show whether the controller leads."""

    @property
    def error(self) -> ErrorCode: ...

    @property
    def leader(self) -> Leader: ...


T = TypeVar("T", bound=_Answer)

_OF_THE_LEADER: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.INVALID_REQUEST,  # what a Fetch without an epoch is answered with, and the leader's name
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.NOT_CONTROLLER,
    }
)
_ANY_PLACE = OffsetAndEpoch(offset=0, epoch=0)


@attrs.frozen
class _ControllerAnswer:
    """The response of a controller; its error is for the caller, unless another controller leads."""

    response: Any
    leader: Leader = UNKNOWN_LEADER

    @property
    def error(self) -> ErrorCode:
        is_other = self.response.error_code == ErrorCode.NOT_CONTROLLER
        return ErrorCode.NOT_CONTROLLER if is_other else ErrorCode.NONE


class SnapshotNeededError(OffsetError):
    """Reports that the leader sends `snapshot` instead of the log, which starts at `log_start_offset` there."""

    def __init__(self, snapshot: OffsetAndEpoch, log_start_offset: int) -> None:
        super().__init__(f"the leader's log starts at offset {log_start_offset}, after a snapshot")
        self.snapshot = snapshot
        self.log_start_offset = log_start_offset


class SnapshotGoneError(RefusedError):
    """Reports that the leader deleted a snapshot, or lost its leadership, before the fetch was complete."""


class QuorumObserver:
    """Fetches from the current leader, and sends it requests, for one thread.

    Without an id the leader does not list it. If `cluster_id` is None, the first controller that answers sets it. Each
    new connection is checked against it. Besides `addresses` (or its current result), the leader is searched at the
    addresses of all controllers in the last controller's answer.
    """

    def __init__(
        self,
        addresses: Sequence[Address] | Callable[[], Sequence[Address]],
        *,
        connect: Callable[[Address], NodeClient],
        cluster_id: str | None = None,
    ) -> None:
        self._bootstrap = addresses if callable(addresses) else lambda: addresses
        self._controllers: tuple[Address, ...] = ()
        self._connection = LeaderConnection(connect, self._check_cluster)
        self.cluster_id = cluster_id
        self.leader = UNKNOWN_LEADER
        self._looked_at: Address | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def connections(self) -> int:
        """The number of connections made."""
        return self._connection.opened

    def close(self) -> None:
        """Close the open connection."""
        self._connection.close()

    def forget_leader(self) -> None:
        """Accept the leader named by the next node, even one of an earlier epoch."""
        self.close()
        self.leader = UNKNOWN_LEADER

    def look_at(self, address: Address) -> None:
        """Query this node first, once for each change: a source besides the quorum names it as the leader."""
        if address != self._looked_at:
            self._looked_at = address
            self.leader = Leader(id=-1, epoch=self.leader.epoch, address=address)
            if self._connection.node is not None and self._connection.node.address != address:
                self.close()

    def fetch(self, log: ObservedLog, *, wait_ms: int = 500) -> list[RawBatch]:
        """Fetch once more; returns the batches now known to be committed, none if nothing arrived.

        The leader waits up to `wait_ms` for records, or for the commit of sent ones. Raises SnapshotNeededError if the
        leader sends a snapshot instead, DivergedLogError, NodeError if no node answers (NoLeaderError if some answer,
        and none leads; AuthenticationError if every node refuses the login or TLS), OtherClusterError.
        """
        if log.is_full:
            log.forget_waiting()
            raise NoLeaderError(f"{self._named} sends ever more records, and commits none of them.")
        answer = self._of_leader(lambda node: self._fetch_once(node, log, wait_ms))
        if answer.snapshot is not None:
            raise SnapshotNeededError(answer.snapshot, answer.log_start_offset)
        try:
            return log.take(answer)
        except CorruptDataError as fault:
            self.close()
            raise NodeError(f"{self._named} sent a broken part of the metadata log: {fault}.") from None

    def fetch_snapshot(
        self, id_: OffsetAndEpoch, write: Callable[[bytes], object], progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Fetch a snapshot of the leader into a file; `progress` gets the bytes so far and in total.

        Raises SnapshotGoneError if the leader does not have it, or another controller leads before it is complete: the
        snapshots of two nodes under one id hold the same records, and not the same bytes. Raises as `fetch`, too.
        """
        position, size = 0, 1
        sender: tuple[int, int, int] | None = None
        while position < size:
            part = self._of_leader(
                lambda node, at=position: fetch_snapshot(  # type: ignore[misc]
                    node, id_, at, leader_epoch=self.leader.epoch, cluster_id=self.cluster_id
                )
            )
            of = (self.leader.id, self.leader.epoch, part.size)
            if of != (sender or of):
                raise SnapshotGoneError("Another node leads than the one that sent the first part of a snapshot.")
            sender = of
            if not part.data:
                raise NodeError(f"The leader sent nothing of a snapshot at byte {position} of {part.size}.")
            write(part.data)
            position, size = position + len(part.data), part.size
            if progress is not None:
                progress(position, size)

    def describe(self) -> QuorumDescription:
        """Query the voters and observers from the leader. Raises as `fetch`."""
        return self._of_leader(describe_quorum)

    def ask_controller(
        self, name: str, versions: range, make: Callable[[Any], Any], *, timeout: float | None = None
    ) -> Any:
        """Send a request of the API `name` to the active controller; returns the response, with any error; see `ask`.

        Raises as `fetch`; NoLeaderError if no controller that answers is the active one.
        """
        return self._of_leader(lambda node: _ControllerAnswer(node.ask(name, versions, make, timeout=timeout))).response

    def _fetch_once(self, node: NodeClient, log: ObservedLog, wait_ms: int) -> FetchedLogPart:
        at = log.asked
        if at.epoch < 0:  # every log that the leader of an epoch has written to continues with that epoch
            at = at._replace(epoch=self.leader.epoch)
        return fetch(
            node, at, leader_epoch=self.leader.epoch, cluster_id=self.cluster_id,
            high_watermark=log.high_watermark, wait_ms=wait_ms,
        )  # fmt: skip

    def _of_leader(self, ask: Callable[[NodeClient], T]) -> T:
        """Return the answer of the leader, which is searched if the known node does not lead."""
        known = [] if self.leader.address is None else [self.leader.address]
        return self._connection.ask(
            [*known, *self._bootstrap(), *self._controllers], lambda node: self._if_leader(node, ask)
        )

    def _if_leader(self, node: NodeClient, ask: Callable[[NodeClient], T]) -> T:
        """Return the answer of a node, if it leads; raises NoLeaderError or OlderLeaderError if not."""
        while (answer := ask(node)).error != ErrorCode.NONE:
            named = self._learn(node, answer)
            if named is None:
                continue  # it may lead, by whatever name the quorum has for its address
            known = self.leader
            address = [] if known.address is None else [known.address]
            if named.id >= 0 and named.epoch < known.epoch:
                reason = f"names node {named.id} of epoch {named.epoch}, but epoch {known.epoch} is known."
                raise OlderLeaderError(f"{node.address} {reason}", address)
            raise NoLeaderError(f"{node.address} does not lead, and {self._known()}.", address)
        return answer

    def _check_cluster(self, node: NodeClient) -> None:
        answer = describe_cluster(node, CONTROLLERS)
        if answer.error_code in OF_ANOTHER_TYPE:
            raise NodeError(
                f"{node.address} is a broker, and brokers don't give the metadata log away: give the addresses of "
                f"controllers (controller.quorum.bootstrap.servers)."
            )
        if answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED and self.cluster_id is not None:
            return  # controllers give it to administrators alone (ALTER); each Fetch states the id, and they check it
        if answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise RefusedError(
                f"{node.address} does not tell its cluster's id for {node.principal}: give it with --cluster-id, or "
                f"allow ALTER on the cluster."
            )
        if answer.error_code != ErrorCode.NONE:
            raise RefusedError(f"{node.address} does not describe its cluster: {answer.error_code.name}.")
        self.cluster_id = checked_cluster_id(node, answer.cluster_id, self.cluster_id)
        self._controllers = tuple(Address(each.host, int(each.port)) for each in answer.brokers)

    def _learn(self, node: NodeClient, answer: _Answer) -> Leader | None:
        """Process an error; returns None if it revealed an unknown leader or epoch, else the leader that it names.

        Raises NodeError for an error that does not concern the leader.
        """
        error, named = answer.error, answer.leader
        if error == ErrorCode.NOT_CONTROLLER:  # the answer does not say which controller is; that to a Fetch does
            named = fetch(
                node, _ANY_PLACE, leader_epoch=-1, cluster_id=self.cluster_id, high_watermark=-1, wait_ms=0
            ).leader
        if error == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            what, operation = ("fetch the metadata log", "CLUSTER_ACTION")
            if isinstance(answer, QuorumDescription):
                what, operation = ("describe the quorum", "DESCRIBE")
            raise RefusedError(
                f"{node.address} does not let this client {what}: an ACL is missing that allows {operation} on the "
                f"cluster for {node.principal}."
            )
        if error == ErrorCode.INCONSISTENT_CLUSTER_ID:
            raise OtherClusterError(f"{node.address} is not of cluster {self.cluster_id}.")
        if error in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE):
            raise SnapshotGoneError(f"{node.address} has deleted the snapshot that was being fetched.")
        if error not in _OF_THE_LEADER:
            raise NodeError(f"{node.address} does not give its metadata log: {error.name.lower()}.")
        known = self.leader
        if named.epoch > known.epoch or (named.epoch == known.epoch and named.id >= 0 and known.id < 0):
            address = named.address or (known.address if named.id == known.id else None)
            self.leader = Leader(id=named.id, epoch=named.epoch, address=address)
            return None
        return named

    def _known(self) -> str:
        return "knows no leader" if self.leader.id < 0 else f"names node {self.leader.id} of epoch {self.leader.epoch}"

    @property
    def _named(self) -> str:
        return "The leader" if self.leader.address is None else str(self.leader.address)
