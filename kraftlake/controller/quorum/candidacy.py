"""When a standby claims the log. Pure logic: no clock, no I/O."""

from __future__ import annotations

from typing import Final

import attrs

_AFTER_RESIGNATION: Final = 0.1
"""The share of its election timeout that a standby waits while it knows that the active controller has resigned."""


@attrs.define(kw_only=True)
class Candidacy:
    """The wait of a standby, from the last sign of the active controller on.

    The wait lasts `timeout_ns`, a tenth of that after a resignation, and no time after the end of the active
    controller's process or where there was none yet. Any news of the log makes it whole again: another controller
    writes.
    """

    since_ns: int
    timeout_ns: int
    _share: float = attrs.field(init=False, default=1.0)

    def restart(self, now_ns: int, timeout_ns: int) -> None:
        """Begin a new wait, of another length."""
        self.since_ns, self.timeout_ns, self._share = now_ns, timeout_ns, 1.0

    def heard(self, now_ns: int) -> None:
        """Note new records in the log."""
        self.since_ns, self._share = now_ns, 1.0

    def resigned(self, now_ns: int) -> None:
        """Note that the active controller has resigned."""
        self.since_ns, self._share = now_ns, min(self._share, _AFTER_RESIGNATION)

    def ended(self) -> None:
        """Note that there is no active controller any more, or that there was none yet."""
        self._share = 0.0

    def is_due(self, now_ns: int) -> bool:
        """Whether to claim the log."""
        return now_ns - self.since_ns >= self.timeout_ns * self._share
