"""Rates of clients, and the time for which a client above its quota is throttled. Pure: the time is passed in.

Source: org.apache.kafka.server.quota.ClientQuotaManager, ClientRequestQuotaManager, QuotaUtils.
"""

from __future__ import annotations

from hashlib import sha256
from threading import Lock
from typing import Final, Generic, TypeVar

from kraftlake.publisher.client_quotas import ClientQuotas, QuotaTypes
from kraftlake.runtime.rates import LONGEST_MS, Rate, TokenBucket, WindowedSum, Windows
from kraftlake.server.quotas.sensors import Sensors

_UNLIMITED: Final = float(2**63 - 1)
_MOST_SHOWN: Final = 1_000
_LONGEST_NAME: Final = 255
Client = tuple[str, str]
"""The user and the client id that a use is measured by; "" for one that the quotas ignore."""


class ClientSensor:
    """The measurements of one client: the rate of use, and the throttle times."""

    __slots__ = ("rate", "throttle_ms", "throttles")

    def __init__(self, windows: Windows) -> None:
        self.rate = Rate(windows)
        self.throttle_ms, self.throttles = WindowedSum(windows), WindowedSum(windows)


S = TypeVar("S", bound=ClientSensor)


class Measured(Generic[S]):
    """The sensors of the clients that have, or could have, a quota of one key (see QUOTA_KEYS). Thread-safe."""

    def __init__(self, quota_key: str, quotas: ClientQuotas, windows: Windows, kind: type[S]) -> None:
        self._key = quota_key
        self._quotas = quotas
        self._lock = Lock()
        self._sensors = Sensors[Client, S](lambda: kind(windows))

    @property
    def is_enabled(self) -> bool:
        """Whether any client has a quota of the key; otherwise nothing is measured."""
        return self._quotas.overrides(self._key).types is not QuotaTypes.NONE

    def throttled(self, user: str, client_id: str, throttle_ms: int, now_ms: int) -> None:
        """Count a throttle time that a client was given."""
        with self._lock:
            sensor, _ = self._sensor(user, client_id, now_ms)
            sensor.throttle_ms.record(throttle_ms, now_ms)
            sensor.throttles.record(1, now_ms)

    def rates(self, now_ms: int) -> dict[Client, float]:
        """The use per second of the clients that were measured last, 1,000 at most."""
        with self._lock:
            return {tags: one.rate.per_second(now_ms) for tags, one in self._sensors.newest(_MOST_SHOWN)}

    def throttle_times(self, now_ms: int) -> dict[Client, float]:
        """The average throttle time in ms of clients that were throttled within the windows, 1,000 at most."""
        with self._lock:
            return {
                tags: one.throttle_ms.measure(now_ms) / count
                for tags, one in self._sensors.newest(_MOST_SHOWN)
                if (count := one.throttles.measure(now_ms))
            }

    def _sensor(self, user: str, client_id: str, now_ms: int) -> tuple[S, float]:
        """Return the sensor of a client and its limit."""
        overrides = self._quotas.overrides(self._key)
        tags = overrides.tags(user, client_id)
        limit = overrides.limit_of_tags(tags)
        user, client_id = map(_short, tags)
        return self._sensors.get((user, client_id), now_ms), _UNLIMITED if limit is None else limit


def _short(name: str) -> str:
    """Return a name that takes little memory; clients choose their ids, of up to 32 kB."""
    return name if len(name) <= _LONGEST_NAME else sha256(name.encode()).hexdigest()


class ClientQuotaManager(Measured[ClientSensor]):
    """Quotas of a rate: of bytes, or of the time of request handlers. No throttle time is above `longest_ms`."""

    def __init__(self, quota_key: str, quotas: ClientQuotas, windows: Windows, *, longest_ms: int = LONGEST_MS) -> None:
        super().__init__(quota_key, quotas, windows, ClientSensor)
        self._windows = windows
        self._longest_ms = longest_ms

    def record(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        """Count a use, and return the throttle time in ms; 0 for a client within its quota."""
        if not self.is_enabled:
            return 0
        with self._lock:
            sensor, limit = self._sensor(user, client_id, now_ms)
            sensor.rate.record(value, now_ms)
            return min(sensor.rate.wait_ms(limit, now_ms), self._longest_ms)

    def take_back(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        """Count a use no longer, because the client gets an empty answer."""
        if self.is_enabled:
            with self._lock:
                sensor, _ = self._sensor(user, client_id, now_ms)
                sensor.rate.record(-value, now_ms)

    def most_at_once(self, user: str, client_id: str) -> float | None:
        """The largest use that is not certain to be throttled; None without a limit."""
        limit = self._quotas.limit(self._key, user=user, client_id=client_id)
        return None if limit is None else limit * (self._windows.number - 1) * self._windows.length_ms / 1_000


class MutationSensor(ClientSensor):
    """The measurements of one client that changes partitions, and its tokens."""

    __slots__ = ("bucket",)

    def __init__(self, windows: Windows) -> None:
        super().__init__(windows)
        self.bucket = TokenBucket(windows)


class ControllerMutationQuotaManager(Measured[MutationSensor]):
    """Quotas of created and deleted partitions, as buckets of tokens.

    Source: org.apache.kafka.server.quota.ControllerMutationQuotaManager.
    """

    def __init__(self, quotas: ClientQuotas, windows: Windows) -> None:
        super().__init__("controller_mutation_rate", quotas, windows, MutationSensor)

    def record(self, user: str, client_id: str, partitions: float, now_ms: int, *, strict: bool) -> int:
        """Take a token for each partition, and return the throttle time in ms.

        A `strict` quota takes none from a client that has less than 0, and throttles no other. Otherwise the tokens are
        always taken, and the client is throttled as soon as it has less than 0.
        """
        if not self.is_enabled:
            return 0
        with self._lock:
            sensor, limit = self._sensor(user, client_id, now_ms)
            wait_ms = sensor.bucket.wait_ms(limit, now_ms) if strict else 0
            if wait_ms == 0:
                sensor.rate.record(partitions, now_ms)
                sensor.bucket.take(partitions, limit, now_ms)
            return wait_ms if strict else sensor.bucket.wait_ms(limit, now_ms)

    def tokens(self, now_ms: int) -> dict[Client, float]:
        """The remaining tokens of the clients that were measured last, 1,000 at most."""
        overrides = self._quotas.overrides(self._key)
        with self._lock:
            return {
                tags: one.bucket.tokens(limit, now_ms)
                for tags, one in self._sensors.newest(_MOST_SHOWN)
                if (limit := overrides.limit_of_tags(tags)) is not None
            }
