"""The soft state of brokers: when each was heard of last, how far it has read, and whether it is shutting down.

Nothing of it is in the log; a new controller begins anew. Source: org.apache.kafka.controller.BrokerHeartbeatManager
and BrokerHeartbeatTracker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

import attrs

from kraftlake.image import BrokerRegistration

NO_OFFSET = -1


class BrokerControlState(Enum):
    """What a broker is, and what a heartbeat makes of it."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "in controlled shutdown"
    SHUTDOWN_NOW = "may shut down now"

    @property
    def fenced(self) -> bool:
        """Whether it takes no part in the cluster."""
        return self in (BrokerControlState.FENCED, BrokerControlState.SHUTDOWN_NOW)


@attrs.define(kw_only=True)
class BrokerHeartbeat:
    """One broker: `metadata_offset` is what it has applied, `controlled_shutdown_offset` where its leaders had moved.

    Both are -1 while unknown.
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
        """As heartbeats see it."""
        if self.shutting_down:
            return BrokerControlState.CONTROLLED_SHUTDOWN
        return BrokerControlState.FENCED if self.fenced else BrokerControlState.UNFENCED


class BrokerHeartbeats:
    """The brokers that have registered, by id, and the times of contact of each id and broker epoch.

    Times are nanoseconds of one monotonic clock, passed in.
    """

    def __init__(self, session_timeout_ns: int) -> None:
        self.session_timeout_ns = session_timeout_ns
        self._brokers: dict[int, BrokerHeartbeat] = {}
        self._contacts: dict[tuple[int, int], int] = {}

    @classmethod
    def of(
        cls, registrations: Iterable[BrokerRegistration], *, session_timeout_ns: int, now_ns: int
    ) -> BrokerHeartbeats:
        """What a controller begins with: each unfenced broker counts as heard of just now."""
        heartbeats = cls(session_timeout_ns)
        for registration in registrations:
            heartbeats.register(registration.id, fenced=registration.fenced)
            if not registration.fenced:
                heartbeats.touch_contact(registration.id, registration.epoch, now_ns)
        return heartbeats

    def get(self, broker_id: int) -> BrokerHeartbeat | None:
        """A broker's state; None when it has not registered."""
        return self._brokers.get(broker_id)

    def items(self) -> Iterable[tuple[int, BrokerHeartbeat]]:
        """All of them by id, in the order of ids."""
        return sorted(self._brokers.items())

    def register(self, broker_id: int, *, fenced: bool) -> None:
        """A record has registered it, or changed whether it is fenced."""
        broker = self._brokers.get(broker_id)
        offset = NO_OFFSET
        if broker is None:
            self._brokers[broker_id] = BrokerHeartbeat(fenced=fenced)
        elif broker.fenced != fenced:
            offset = broker.metadata_offset
        self.touch(broker_id, fenced=fenced, metadata_offset=offset)

    def touch(self, broker_id: int, *, fenced: bool, metadata_offset: int) -> None:
        """Note what a heartbeat says; a fenced broker is in no controlled shutdown."""
        broker = self._brokers[broker_id]
        broker.fenced = fenced
        broker.metadata_offset = metadata_offset
        if fenced:
            broker.controlled_shutdown_offset = NO_OFFSET

    def remove(self, broker_id: int) -> None:
        """It has unregistered, or a new incarnation takes its place."""
        self._brokers.pop(broker_id, None)

    def fence(self, broker_id: int) -> None:
        """Its session is over."""
        if broker_id in self._brokers:
            self._brokers[broker_id].fenced = True

    def begin_controlled_shutdown(self, broker_id: int, offset: int) -> None:
        """Its leaders move with the record at `offset`, which the others must have applied before it may go."""
        broker = self._brokers[broker_id]
        assert not broker.fenced, "a fenced broker leads nothing"
        if not broker.shutting_down:
            broker.controlled_shutdown_offset = offset

    def lowest_active_offset(self) -> int | None:
        """What every active broker has applied at least; None when there is no active one."""
        active = (b.metadata_offset for b in self._brokers.values() if not b.fenced and not b.shutting_down)
        return min(active, default=None)

    def touch_contact(self, broker_id: int, epoch: int, now_ns: int) -> None:
        """A heartbeat of that broker epoch has arrived: also one that is refused later."""
        self._contacts[broker_id, epoch] = now_ns

    def last_contacts(self) -> dict[int, int]:
        """When each registered broker was heard of last, by id, for any thread; none for one whose session is over."""
        latest: dict[int, int] = {}
        for (broker_id, _), contact in list(self._contacts.items()):
            if broker_id in self._brokers:
                latest[broker_id] = max(contact, latest.get(broker_id, contact))
        return latest

    def has_valid_session(self, broker_id: int, epoch: int, now_ns: int) -> bool:
        """Whether it was heard of within the session timeout."""
        contact = self._contacts.get((broker_id, epoch))
        return contact is not None and not self._is_expired(contact, now_ns)

    def remove_expired(self, now_ns: int) -> tuple[int, int] | None:
        """Forget one contact that is older than a session, and tell which: broker id and epoch."""
        for key, contact in list(self._contacts.items()):  # other threads note contacts meanwhile
            if self._is_expired(contact, now_ns):
                del self._contacts[key]
                return key
        return None

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
        """What the broker is, and what a heartbeat makes of it.

        A fenced one is unfenced when it has read its own registration; a shutdown is granted when it leads nothing
        any more and all active brokers have read that.
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
