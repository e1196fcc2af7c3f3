"""The receivers of notices that a configuration names, and the folder of their queues."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.server.notices.notifier import Notifier
from kraftlake.server.notices.outbox import Outbox
from kraftlake.server.notices.receivers import CommandReceiver, Receiver, UrlReceiver


@attrs.frozen(kw_only=True)
class NotifyConfig:
    """A URL, a command, or both; `queue` is the folder of what waits for them.

    Both are checked at once; UsageError.
    """

    queue: str
    url: str | None = attrs.field(default=None, repr=False)
    command: str | None = attrs.field(default=None, repr=False)

    def __attrs_post_init__(self) -> None:
        assert self.receivers()

    def receivers(self) -> dict[str, Receiver]:
        """The receivers by the names of their queues."""
        found: dict[str, Receiver] = {}
        if self.url is not None:
            found["url"] = UrlReceiver(self.url)
        if self.command is not None:
            found["exec"] = CommandReceiver(self.command)
        return found

    def open(self) -> list[Notifier]:
        """Open the queues, whose folder is made if it is missing.

        Raises EnvironmentFaultError where that can't be, UsageError where one is no queue.
        """
        folder = Path(self.queue)
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as fault:
            raise EnvironmentFaultError(f"{folder} can't be made: {fault.strerror}.") from fault
        return [Notifier(Outbox(folder / f"{name}.json"), receiver) for name, receiver in self.receivers().items()]

    def to_json(self) -> dict[str, Any]:
        """The form without secrets: the receivers as they are named in logs."""
        return {"queue": self.queue, **{name: receiver.name for name, receiver in self.receivers().items()}}
