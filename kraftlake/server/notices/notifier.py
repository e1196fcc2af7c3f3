"""Delivers the notices of an outbox to its receiver, one at a time, with pauses after failures."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from typing import Any, Final

from kraftlake.runtime.backoff import Backoff
from kraftlake.runtime.errors import KraftlakeError, sentence_of
from kraftlake.runtime.log import get_logger
from kraftlake.server.notices.outbox import Outbox
from kraftlake.server.notices.receivers import Receiver

_BACKOFF: Final = Backoff(base=1.0, cap=300.0)
_IDLE_SECONDS: Final = 3600.0


class Notifier:
    """Delivers each notice at least once and in order, on the thread of `run`; a new start goes on with what is left.

    `delivered` and `failures` count since the start.
    """

    def __init__(self, outbox: Outbox, receiver: Receiver, *, backoff: Backoff = _BACKOFF) -> None:
        self.outbox = outbox
        self.receiver = receiver
        self.delivered = self.failures = 0
        self._backoff = backoff
        self._log = get_logger(__name__).bind(receiver=receiver.name)

    def offer(self, cluster: str, findings: Sequence[dict[str, Any]], **facts: Any) -> None:
        """Add a notice: see Outbox. A disk that refuses is logged; the next offer has the difference again."""
        try:
            self.outbox.offer(cluster, findings, **facts)
        except KraftlakeError as fault:
            self._log.error("notice_not_kept", cluster=cluster, reason=sentence_of(fault))

    def run(self, stop: threading.Event) -> None:
        """Deliver until `stop` is set; who sets it wakes the outbox."""
        failures = 0
        while not stop.is_set():
            notice = self.outbox.first()
            if notice is None:
                self.outbox.wait(_IDLE_SECONDS)
                continue
            try:
                self.receiver.deliver(notice, stop)
                self.delivered += 1
                self.outbox.delivered(notice)
                failures = 0
            except KraftlakeError as fault:
                failures += 1
                self.failures += 1
                pause = self._backoff.pause(failures, random.random())  # noqa: S311 - jitter
                self._log.warning(
                    "notice_failed", reason=sentence_of(fault), waiting=len(self.outbox), retry_in_seconds=round(pause)
                )
                stop.wait(pause)
