"""The chain of hashes over a log's rows, as readers see it: its start, its last link, and the link kept by a trim.

The hash survives compaction and checkpoints as a txn action, and a trim as a table property.
"""

from __future__ import annotations

import re

import attrs

from kraftlake.metadata_log.append.log_file import FIRST_HASH, LogEnd
from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.log_facts import CHAIN_BASE, CHAIN_START, START_OFFSET
from kraftlake.runtime.errors import UsageError

_LINK = re.compile(r"(\d{1,19})(?::([0-9a-f]{16}))?")


@attrs.frozen(kw_only=True)
class ChainLink:
    """The hash of a chain after the row at `offset`, None if only the offset is known; text as OFFSET[:HASH]."""

    offset: int
    hash: int | None = None

    @classmethod
    def parse(cls, text: str) -> ChainLink:
        """Parse OFFSET or OFFSET:HASH, as `kraftlake import` prints it; raises UsageError for anything else."""
        match = _LINK.fullmatch(text.strip().lower())
        if match is None:
            raise UsageError(f"{text!r} is not OFFSET or OFFSET:HASH, as `kraftlake import` prints it.")
        unsigned = None if match[2] is None else int(match[2], 16)
        return cls(
            offset=int(match[1]),
            hash=unsigned if unsigned is None or unsigned < 2**63 else unsigned - 2**64,
        )

    def __str__(self) -> str:
        return str(self.offset) if self.hash is None else f"{self.offset}:{self.hash % 2**64:016x}"


@attrs.frozen(kw_only=True)
class Chain:
    """A log's chain: the offset of its first row, the one after its last row, and the hash there."""

    start: int
    end: int
    hash: int

    @classmethod
    def of(cls, state: TableState) -> Chain | None:
        """Return the chain of the log whose table is in this state.

        None for a log without rows, or if the last row was appended by a release that keeps no chain.
        """
        end = LogEnd.of(state)
        if end.chain is None:
            return None
        return cls(start=state.transactions[CHAIN_START], end=end.end_offset, hash=end.chain)

    @property
    def link(self) -> ChainLink:
        """The last link of the chain."""
        return ChainLink(offset=self.end - 1, hash=self.hash)


def chain_base(state: TableState) -> int | None:
    """The hash before the first row of the chain in the log; None if a trim did not keep it."""
    start = int(state.metadata.configuration[START_OFFSET])
    chain = Chain.of(state)
    if chain is None or chain.start >= start:
        return FIRST_HASH
    try:
        base = ChainLink.parse(state.metadata.configuration.get(CHAIN_BASE, ""))
    except UsageError:
        return None
    return base.hash if base.offset == start - 1 else None
