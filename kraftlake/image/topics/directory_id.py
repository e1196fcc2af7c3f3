"""The reserved directory ids: those that are no log directory's."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kraftlake.records.uuid import Uuid

MIGRATING: Final = Uuid.ZERO
"""The replica's directory was never recorded: its record is older than the assignment of directories."""

UNASSIGNED: Final = Uuid((1).to_bytes(16, "big"))
"""No directory has been chosen yet."""

LOST: Final = Uuid((2).to_bytes(16, "big"))
"""The replica is in a directory that is offline."""


def is_online(directory: Uuid, directories: Collection[Uuid]) -> bool:
    """Whether a broker with these log directories can serve a replica in a directory, which may be a reserved id.

    A broker that names no directories is older than their assignment. Source:
    org.apache.kafka.metadata.BrokerRegistration.hasOnlineDir.
    """
    if directory in (UNASSIGNED, MIGRATING):
        return True
    return directory != LOST and (not directories or directory in directories)
