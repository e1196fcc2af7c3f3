"""What one request costs its client's quotas, and for how long its connection is muted after the answer.

Source: kafka.server.RequestHandlerHelper, kafka.server.KafkaApis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from kio.static.primitive import i32Timedelta

from kraftlake.controller.errors import ControllerApiError
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.runtime.rates import LONGEST_MS
from kraftlake.server.quotas.client_quota_manager import ClientQuotaManager, ControllerMutationQuotaManager
from kraftlake.server.quotas.quota_managers import QuotaManagers

_PERCENT_OF_NS: Final = 100 / 1e9


class RequestThrottle:
    """The quotas of one request; from the thread that handles it to the one that answers it.

    The longest of the throttle times counts: of the bytes, of the time in the handler's thread, of the controller's
    mutations, and of the answer of another node. `mute` is called with it, in ms, before the answer is sent; None for a
    forwarded request, whose client is muted by the broker that it asked.
    """

    def __init__(
        self,
        managers: QuotaManagers,
        *,
        principal: str,
        client_id: str,
        mute: Callable[[int], None] | None,
        is_exempt: bool = False,
    ) -> None:
        self._managers = managers
        self._mute = mute
        self._user = principal.partition(":")[2]
        self._client_id = client_id
        self._started_ns = managers.clock.nanoseconds()
        self._thread_ns: int | None = None
        self._settled_ms: int | None = None
        self._bytes_ms = 0
        self._bytes: ClientQuotaManager | None = None
        self._mutations: MutationQuota | None = None
        self.is_exempt = is_exempt
        """Whether no request quota applies: to the requests of followers, and to producers that wait for no answer."""

    def leave_thread(self) -> None:
        """End the time in the handler's thread; the answer may come later."""
        if self._thread_ns is None:
            self._thread_ns = self._managers.clock.nanoseconds() - self._started_ns

    def most_fetched(self) -> int:
        """The maximum number of bytes to fetch: more would be throttled with certainty."""
        most = self._managers.fetch.most_at_once(self._user, self._client_id)
        return LONGEST_MS if most is None else min(int(most), LONGEST_MS)

    def produced(self, size: int) -> None:
        """Count the bytes of a Produce request."""
        self._bytes = self._managers.produce
        self._bytes_ms = self._bytes.record(self._user, self._client_id, size, self._managers.now_ms)

    def withholds(self, size: int) -> bool:
        """Count the bytes of a fetch's answer; if the client is throttled, they are withheld, and not counted."""
        if self.is_exempt:
            return False
        self._bytes, now_ms = self._managers.fetch, self._managers.now_ms
        request_ms = self._request_ms(now_ms)
        self._bytes_ms = self._bytes.record(self._user, self._client_id, size, now_ms)
        self._settle(request_ms, now_ms)
        if self._settled_ms:
            self._bytes.take_back(self._user, self._client_id, size, now_ms)
        return bool(self._settled_ms)

    def mutations(self, *, strict: bool) -> MutationQuota:
        """The quota of the partitions that the request creates or deletes."""
        self._mutations = MutationQuota(self._managers, self._user, self._client_id, strict=strict)
        return self._mutations

    def throttled(self, response: Any) -> Any:
        """Mute the connection for as long as the client is throttled, and return the response with that time."""
        if self._settled_ms is None:
            now_ms = self._managers.now_ms
            self._settle(self._request_ms(now_ms), now_ms)
        own_ms, in_answer = self._settled_ms or 0, getattr(response, "throttle_time", None)
        throttle_ms = own_ms if in_answer is None else max(own_ms, in_answer // timedelta(milliseconds=1))
        if throttle_ms == 0:
            return response
        if self._mute is not None:
            self._mute(throttle_ms)
        if in_answer is None or own_ms < throttle_ms:
            return response
        return replace(response, throttle_time=i32Timedelta.parse(timedelta(milliseconds=own_ms)))

    def _request_ms(self, now_ms: int) -> int:
        """Count the time in the handler's thread, and return the throttle time of the request quota."""
        self.leave_thread()
        percent = (self._thread_ns or 0) * _PERCENT_OF_NS
        managers = self._managers
        if not self.is_exempt:
            return managers.request.record(self._user, self._client_id, percent, now_ms)
        if managers.request.is_enabled:
            managers.record_exempt(percent, now_ms)
        return 0

    def _settle(self, request_ms: int, now_ms: int) -> None:
        """Take the longest throttle time, and count it for the quota that it is of."""
        managers = self._managers
        mutation_ms = 0 if self._mutations is None else self._mutations.throttle_ms(now_ms)
        times: list[tuple[int, ClientQuotaManager | ControllerMutationQuotaManager]] = [
            (request_ms, managers.request), (mutation_ms, managers.mutation),
        ]  # fmt: skip
        if self._bytes is not None:
            times.append((self._bytes_ms, self._bytes))
        self._settled_ms, manager = max(times, key=lambda one: one[0])
        if self._settled_ms and self._mute is not None:
            manager.throttled(self._user, self._client_id, self._settled_ms, now_ms)


class MutationQuota:
    """The quota of one request that creates or deletes partitions.

    Source: org.apache.kafka.server.quota.StrictControllerMutationQuota, PermissiveControllerMutationQuota.
    """

    def __init__(self, managers: QuotaManagers, user: str, client_id: str, *, strict: bool) -> None:
        self._managers = managers
        self._client = user, client_id
        self._strict = strict
        self._throttle_ms = 0
        self._since_ms = 0

    def record(self, partitions: int) -> None:
        """Count partitions; raises ControllerApiError(THROTTLING_QUOTA_EXCEEDED) if a strict quota is exceeded."""
        now_ms = self._managers.now_ms
        throttle_ms = self._managers.mutation.record(*self._client, partitions, now_ms, strict=self._strict)
        if throttle_ms:
            self._throttle_ms, self._since_ms = throttle_ms, now_ms
            if self._strict:
                raise ControllerApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")

    def throttle_ms(self, now_ms: int) -> int:
        """The rest of the throttle time."""
        return max(0, self._throttle_ms - (now_ms - self._since_ms)) if self._throttle_ms else 0
