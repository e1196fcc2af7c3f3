"""The connection to the leader of a quorum, which is kept while the leader answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Self, TypeVar

from kraftlake.protocol.address import Address
from kraftlake.protocol.leader_search import LeaderSearch
from kraftlake.protocol.node_client import NodeClient
from kraftlake.protocol.node_error import NodeError

T = TypeVar("T")


class RefusedError(NodeError):
    """Reports a refusal that the other nodes would repeat."""


class LeaderConnection:
    """Keeps the connection to the node that answered last, for one thread.

    `connect` opens connections, and `check` checks each new one; both raise NodeError.
    """

    def __init__(
        self, connect: Callable[[Address], NodeClient], check: Callable[[NodeClient], object] = lambda _: None
    ) -> None:
        self._connect = connect
        self._check = check
        self.node: NodeClient | None = None
        """The client of the node that answered last, while its connection is open."""
        self.opened = 0
        """The number of connections made."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the open connection."""
        if self.node is not None:
            self.node.close()
            self.node = None

    def at(self, address: Address) -> NodeClient:
        """Return a client of the node at an address, over the kept connection if it leads there."""
        if self.node is not None and self.node.address == address:
            return self.node
        self.close()
        node = self._connect(address)
        self.opened += 1
        try:
            self._check(node)
        except BaseException:
            node.close()
            raise
        self.node = node
        return node

    def ask(self, addresses: Iterable[Address], ask: Callable[[NodeClient], T]) -> T:
        """Return the first answer, of the node with the kept connection or of those at `addresses`, in order.

        `ask` raises NoLeaderError, with the address of the leader if known, for a node that does not lead, and
        RefusedError to end the search. Raises as `LeaderSearch.next` if no node answers.
        """
        search = LeaderSearch(addresses)
        while True:
            address = search.next() if self.node is None else self.node.address
            try:
                return ask(self.at(address))
            except NodeError as fault:
                self.close()
                if isinstance(fault, RefusedError):
                    raise
                search.failed(fault)
