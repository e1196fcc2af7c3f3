"""The quotas of a node's clients. Source: org.apache.kafka.server.quota.QuotaFactory.QuotaManagers."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Final

from kraftlake.publisher.client_quotas import ClientQuotas
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.rates import Rate, Windows
from kraftlake.server.quotas.client_quota_manager import ClientQuotaManager, ControllerMutationQuotaManager
from kraftlake.server.quotas.connection_rates import ConnectionRates


class QuotaManagers:
    """The measurements of one node for each kind of quota; `value` returns the node's settings.

    `quotas` has the quotas in effect, and is to be published each new image. The time is monotonic.
    """

    def __init__(self, value: Callable[[str], Any], clock: Clock) -> None:
        windows = Windows.of_seconds(value("quota.window.num"), value("quota.window.size.seconds"))
        of_controller = Windows.of_seconds(
            value("controller.quota.window.num"), value("controller.quota.window.size.seconds")
        )
        self.clock: Final = clock
        self.quotas: Final = ClientQuotas()
        self.produce: Final = ClientQuotaManager("producer_byte_rate", self.quotas, windows)
        self.fetch: Final = ClientQuotaManager("consumer_byte_rate", self.quotas, windows)
        self.request: Final = ClientQuotaManager(
            "request_percentage", self.quotas, windows, longest_ms=windows.length_ms
        )
        self.mutation: Final = ControllerMutationQuotaManager(self.quotas, of_controller)
        self._exempt = Rate(windows)
        self._exempt_lock = Lock()
        self.connections: Final = ConnectionRates(self.quotas, windows)

    def record_exempt(self, percent: float, now_ms: int) -> None:
        """Count the handler time, in percent of a thread, of a request that no request quota applies to."""
        with self._exempt_lock:
            self._exempt.record(percent, now_ms)

    def exempt_percentage(self, now_ms: int) -> float:
        """The handler time of such requests, in percent of a thread."""
        with self._exempt_lock:
            return self._exempt.per_second(now_ms)

    @property
    def now_ms(self) -> int:
        """The time of the measurements, in ms."""
        return self.clock.nanoseconds() // 1_000_000
