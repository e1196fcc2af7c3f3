"""The search for the leader of a quorum: the node to ask next, and the error if none leads. Pure logic."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from kraftlake.protocol.address import Address
from kraftlake.protocol.node_error import AuthenticationError, NodeError, NoLeaderError, OlderLeaderError


class LeaderSearch:
    """One search through the nodes at `addresses`, in order; a leader that a node names is asked next.

    Each address is asked once.
    """

    def __init__(self, addresses: Iterable[Address]) -> None:
        self._left = deque(dict.fromkeys(addresses))
        self._asked: set[Address] = set()
        self._faults: list[NodeError] = []

    def next(self) -> Address:
        """Return the next address; raises NodeError with the errors of all nodes if none is left.

        The error is an AuthenticationError if all nodes refuse the client's certificate or login, OlderLeaderError or
        NoLeaderError if a node of the cluster answered.
        """
        while self._left:
            address = self._left.popleft()
            if address not in self._asked:
                self._asked.add(address)
                return address
        raise self._error()

    def failed(self, fault: NodeError) -> None:
        """Note the error of a node, and the address of the leader in it."""
        self._faults.append(fault)
        if isinstance(fault, NoLeaderError):
            self._left.extendleft(reversed(fault.leader))

    def _error(self) -> NodeError:
        if not self._faults:
            return NodeError("No controller is known yet.")
        kind: type[NodeError] = NodeError
        without_leader = [fault for fault in self._faults if isinstance(fault, NoLeaderError)]
        if without_leader:
            are_older = all(isinstance(fault, OlderLeaderError) for fault in without_leader)
            kind = OlderLeaderError if are_older else NoLeaderError
        elif all(isinstance(fault, AuthenticationError) for fault in self._faults):
            kind = AuthenticationError
        sentence = "; ".join(dict.fromkeys(str(fault).rstrip(".") for fault in self._faults))
        return kind(sentence if sentence.endswith("?") else f"{sentence}.")
