"""The soft state of brokers: last contact, metadata offset, and controlled shutdown.

None of it is in the log; every new controller starts without it. Source:
org.apache.kafka.controller.BrokerHeartbeatManager and BrokerHeartbeatTracker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

import attrs

from kraftlake.image.broker_registration import BrokerRegistration

NO_OFFSET = -1


class BrokerControlState(Enum):
    """The states of a broker."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "in controlled shutdown"
    SHUTDOWN_NOW = "may shut down now"

    @property
    def fenced(self) -> bool:
        """Whether the broker is fenced in this state."""
        return self in (BrokerControlState.FENCED, BrokerControlState.SHUTDOWN_NOW)


@attrs.define(kw_only=True)
class BrokerHeartbeat:
    """The state of one broker.

    `metadata_offset` is the broker's last applied offset, `controlled_shutdown_offset` the offset at which its
    leaderships had moved. Both are -1 while unknown.
    """

    fenced: bool
    metadata_offset: int = NO_OFFSET
    controlled_shutdown_offset: int = NO_OFFSET

    @property
    def shutting_down(self) -> bool:
        """Whether a controlled shutdown has begun."""
        return self.controlled_shutdown_offset >= 0

    @property
    def state(self) -> BrokerControlState:
        """The current state."""
        if self.shutting_down:
            return BrokerControlState.CONTROLLED_SHUTDOWN
        return BrokerControlState.FENCED if self.fenced else BrokerControlState.UNFENCED


class BrokerHeartbeats:
    """The registered brokers by id, and the last contact of each broker id and epoch.

    Times are nanoseconds of one monotonic clock, given by the caller.
    """

    def __init__(self, session_timeout_ns: int) -> None:
        self.session_timeout_ns = session_timeout_ns
        self._brokers: dict[int, BrokerHeartbeat] = {}
        self._contacts: dict[tuple[int, int], int] = {}

    @classmethod
    def of(
        cls, registrations: Iterable[BrokerRegistration], *, session_timeout_ns: int, now_ns: int
    ) -> BrokerHeartbeats:
        """Return the first state of a new controller: `now_ns` counts as the last contact of every unfenced broker."""
        heartbeats = cls(session_timeout_ns)
        for registration in registrations:
            heartbeats.register(registration.id, fenced=registration.fenced)
            if not registration.fenced:
                heartbeats.touch_contact(registration.id, registration.epoch, now_ns)
        return heartbeats

    def get(self, broker_id: int) -> BrokerHeartbeat | None:
        """A broker's state; None if it is not registered."""
        return self._brokers.get(broker_id)

    def items(self) -> Iterable[tuple[int, BrokerHeartbeat]]:
        """All brokers with their ids, in the order of ids."""
        return sorted(self._brokers.items())

    def register(self, broker_id: int, *, fenced: bool) -> None:
        """Note a record that registers a broker, or changes whether it is fenced."""
        broker = self._brokers.get(broker_id)
        offset = NO_OFFSET
        if broker is None:
            self._brokers[broker_id] = BrokerHeartbeat(fenced=fenced)
        elif broker.fenced != fenced:
            offset = broker.metadata_offset
        self.touch(broker_id, fenced=fenced, metadata_offset=offset)

    def touch(self, broker_id: int, *, fenced: bool, metadata_offset: int) -> None:
        """Note the values of a heartbeat; fencing ends a controlled shutdown."""
        broker = self._brokers[broker_id]
        broker.fenced = fenced
        broker.metadata_offset = metadata_offset
        if fenced:
            broker.controlled_shutdown_offset = NO_OFFSET

    def remove(self, broker_id: int) -> None:
        """Remove a broker that has unregistered, or is replaced by a new incarnation."""
        self._brokers.pop(broker_id, None)

    def fence(self, broker_id: int) -> None:
        """Fence a broker whose session has expired."""
        if broker_id in self._brokers:
            self._brokers[broker_id].fenced = True

    def begin_controlled_shutdown(self, broker_id: int, offset: int) -> None:
        """Begin a shutdown; leaderships move by the record at `offset`, which all active brokers must apply first."""
        broker = self._brokers[broker_id]
        assert not broker.fenced, "a fenced broker leads nothing"
        if not broker.shutting_down:
            broker.controlled_shutdown_offset = offset

    def lowest_active_offset(self) -> int | None:
        """The lowest offset that every active broker has applied; None without an active broker."""
        active = (b.metadata_offset for b in self._brokers.values() if not b.fenced and not b.shutting_down)
        return min(active, default=None)

    def touch_contact(self, broker_id: int, epoch: int, now_ns: int) -> None:
        """Note a heartbeat of that broker epoch, even if it is refused later."""
        self._contacts[broker_id, epoch] = now_ns

    def last_contacts(self) -> dict[int, int]:
        """The last contact of each registered broker by id, without expired sessions. Thread-safe."""
        latest: dict[int, int] = {}
        for (broker_id, _), contact in list(self._contacts.items()):
            if broker_id in self._brokers:
                latest[broker_id] = max(contact, latest.get(broker_id, contact))
        return latest

    def has_valid_session(self, broker_id: int, epoch: int, now_ns: int) -> bool:
        """Whether the last contact is within the session timeout."""
        contact = self._contacts.get((broker_id, epoch))
        return contact is not None and not self._is_expired(contact, now_ns)

    def remove_expired(self, now_ns: int) -> tuple[int, int] | None:
        """Remove one expired contact; returns its broker id and epoch."""
        for key, contact in list(self._contacts.items()):  # other threads may note contacts
            if self._is_expired(contact, now_ns):
                del self._contacts[key]
                return key
        return None

    def next_expiry_ns(self, now_ns: int) -> int:
        """The time at which the next session expires if its broker stays silent.

        Without sessions, the expiry of a session that starts now. No session expires earlier, since every later contact
        comes after `now_ns`.
        """
        oldest = min(list(self._contacts.values()), default=now_ns)  # other threads may note contacts
        return oldest + self.session_timeout_ns + 1

    def _is_expired(self, contact_ns: int, now_ns: int) -> bool:
        return now_ns > contact_ns and contact_ns + self.session_timeout_ns < now_ns

    def next_state(
        self,
        broker_id: int,
        *,
        want_fence: bool,
        want_shut_down: bool,
        metadata_offset: int,
        registration_offset: int,
        has_leaderships: Callable[[], bool],
    ) -> tuple[BrokerControlState, BrokerControlState]:
        """The current state of a broker, and its state after a heartbeat.

        A fenced broker is unfenced when it has applied its own registration. A shutdown is granted once the broker
        leads no partition and all active brokers have applied this state.
        """
        broker = self._brokers[broker_id]
        now = broker.state
        if now is BrokerControlState.FENCED:
            if want_shut_down:
                return now, BrokerControlState.SHUTDOWN_NOW
            caught_up = metadata_offset >= registration_offset
            return now, BrokerControlState.UNFENCED if caught_up and not want_fence else BrokerControlState.FENCED
        if now is BrokerControlState.UNFENCED:
            if want_fence:
                return now, BrokerControlState.SHUTDOWN_NOW if want_shut_down else BrokerControlState.FENCED
            if want_shut_down:
                leads = has_leaderships()
                return now, BrokerControlState.CONTROLLED_SHUTDOWN if leads else BrokerControlState.SHUTDOWN_NOW
            return now, BrokerControlState.UNFENCED
        lowest = self.lowest_active_offset()
        if has_leaderships() or (lowest is not None and broker.controlled_shutdown_offset > lowest):
            return now, BrokerControlState.CONTROLLED_SHUTDOWN
        return now, BrokerControlState.SHUTDOWN_NOW
