"""The directory ids that stand for no particular log directory."""

from __future__ import annotations

from typing import Final

from kraftlake.records.uuid import Uuid

MIGRATING: Final = Uuid.ZERO
"""The replica has a directory, but which one was never recorded: written before directories were assigned."""

UNASSIGNED: Final = Uuid((1).to_bytes(16, "big"))
"""No directory has been chosen yet."""

LOST: Final = Uuid((2).to_bytes(16, "big"))
"""The replica lies in a directory that is offline."""
