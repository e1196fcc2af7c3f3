"""What a standby concludes from its connection to the active controller. Pure logic: no clock, no I/O."""

from __future__ import annotations

import attrs


@attrs.define
class LeaderContact:
    """Whether the process of the active controller has ended, by its connection.

    A broken connection alone says nothing: a proxy or an idle limit ends connections, too. The process has ended where
    the connection over which the leader of this epoch has answered broke, and the next one is refused. A peer that is
    stopped or can't be reached neither breaks nor refuses connections.
    """

    _answered: int | None = attrs.field(init=False, default=None)
    """The epoch whose leader answered last."""
    _is_broken: bool = attrs.field(init=False, default=False)
    """Whether the connection has broken since."""

    def answered(self, epoch: int) -> None:
        """Note an answer of the leader of an epoch."""
        self._answered, self._is_broken = epoch, False

    def broke(self) -> bool:
        """Note that the connection broke; returns whether to connect again at once, which is so once an answer."""
        is_first = not self._is_broken
        self._is_broken = True
        return is_first

    def has_ended(self, epoch: int) -> bool:
        """Whether the leader of an epoch, which refuses a connection, has ended."""
        return self._is_broken and self._answered == epoch
