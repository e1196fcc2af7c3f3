"""The checks of `kraftlake doctor` on followed lakes after changes, at a bounded cost, on one thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from kraftlake.runtime.errors import sentence_of
from kraftlake.runtime.log import get_logger
from kraftlake.runtime.metrics import MetricName, MetricsRegistry, Tags
from kraftlake.runtime.process_setup import collect_garbage
from kraftlake.server.cluster_follower import ClusterFollower
from kraftlake.server.cluster_status import ClusterStatus
from kraftlake.server.notices.notifier import Notifier
from kraftlake.server.notices.outbox import identity

SHARE: Final = 0.1
"""The share of one core's time that the checks take at most, of all clusters together."""
FIRST_SHARE: Final = 0.5
"""The same for the first checks of each cluster after a start."""
_PASSED_OVER: Final = ("quorum_partly_seen",)
"""Checks that say of every lake that it is no log of a voter."""
_COLLECT_EVERY: Final = 10
"""The number of checks after which their garbage is collected, at a cost that grows with the number of clusters."""
_LOOK_SECONDS: Final = 1.0
_AGAIN_SECONDS: Final = 3600.0
"""The time after which a cluster without changes is checked again: some findings come and go with age."""

Forms = Sequence[dict[str, Any]]
"""Findings as `kraftlake doctor --json` has them."""


def findings_of(lake: str) -> Forms:
    """The findings on a lake, at the cost of what a day adds to it."""
    from kraftlake.diagnosis.doctor.diagnosis import CHECKS, diagnose  # imports numpy

    checks = [check for check in CHECKS if check.name not in _PASSED_OVER]
    return [finding.to_json() for finding in diagnose(lake, checks=checks, thorough=False).findings]


class FollowDoctor:
    """Checks the lakes of followers whose image has changed, the longest unchecked first, and then pauses.

    The findings go into the status of the clusters, and to `notifiers`. A check that fails is logged and counted; it
    runs again after the next change.
    """

    def __init__(
        self,
        followers: Sequence[ClusterFollower],
        notifiers: Sequence[Notifier],
        *,
        stop: threading.Event,
        find: Callable[[str], Forms] = findings_of,
        now: Callable[[], float] = time.monotonic,
        look: float = _LOOK_SECONDS,
    ) -> None:
        self._followers = followers
        self._notifiers = notifiers
        self._stop = stop
        self._find = find
        self._now = now
        self._look = look
        self._checks = 0
        self._log = get_logger(__name__)

    def run(self) -> None:
        """Check until `stop` is set."""
        while not self._stop.wait(self._look):
            for follower in sorted(self._followers, key=lambda one: one.status.checked_at):
                if self._is_due(follower.status) and self._stop.wait(self._check(follower)):
                    return

    def _is_due(self, status: ClusterStatus) -> bool:
        if status.changed_to < 0:
            return False
        return status.changed_to > status.checked_to or self._now() - status.checked_at >= _AGAIN_SECONDS

    def _check(self, follower: ClusterFollower) -> float:
        """Check one cluster; returns the seconds to pause after it."""
        status, begun = follower.status, self._now()
        share = FIRST_SHARE if status.checked_at < 0 else SHARE
        status.checked_to, offset = status.changed_to, status.changed_to
        cpu = time.thread_time()
        try:
            findings = self._find(follower.config.lake)
        except Exception as fault:
            status.check_faults += 1
            self._log.warning("not_checked", cluster=status.name, reason=sentence_of(fault))
        else:
            self._take(status, findings, offset)
        self._checks += 1
        if self._checks % _COLLECT_EVERY == 0:
            collect_garbage()
        status.checked_at = self._now()
        status.check_seconds = status.checked_at - begun
        return (time.thread_time() - cpu) * (1 / share - 1)

    def _take(self, status: ClusterStatus, findings: Forms, offset: int) -> None:
        before = {identity(one): one for one in status.findings or ()}
        for one in findings:
            if identity(one) not in before:
                log = self._log.info if one["severity"] == "info" else self._log.warning
                facts = {name: one[name] for name in ("check", "severity", "sentence")}
                log("finding", cluster=status.name, **facts)
        for key in sorted(before.keys() - set(map(identity, findings))):
            one = before[key]
            self._log.info("finding_cleared", cluster=status.name, check=one["check"], severity=one["severity"])
        status.findings = findings
        for notifier in self._notifiers:
            notifier.offer(status.name, findings, offset=offset, timestamp=status.timestamp)


def register_doctor(
    registry: MetricsRegistry, clusters: Sequence[ClusterStatus], notifiers: Sequence[Notifier]
) -> None:
    """Register `kraftlake_doctor_…` and `kraftlake_notices_…`."""

    def findings() -> dict[Tags, float]:
        return {
            (("cluster", cluster.name), ("check", one["check"]), ("severity", one["severity"])): max(
                1, len(one["things"])
            )
            for cluster in clusters
            for one in cluster.findings or ()
        }

    def of_clusters(read: Callable[[ClusterStatus], float]) -> Callable[[], dict[Tags, float]]:
        return lambda: {(("cluster", one.name),): read(one) for one in clusters if one.checked_at >= 0}

    for name, text, read in (
        ("finding", "A finding of the check of that severity: the number of things that it concerns.", findings),
        (
            "checked_offset",
            "The last change that the checks have seen, an offset.",
            of_clusters(lambda one: one.checked_to),
        ),
        ("check_seconds", "The duration of the last checks, s.", of_clusters(lambda one: one.check_seconds)),
        ("check_faults", "How often the checks failed.", of_clusters(lambda one: one.check_faults)),
    ):
        registry.gauge(MetricName("kraftlake", "doctor", name), text, read)
    for name, text, number in _OF_NOTICES:
        registry.gauge(
            MetricName("kraftlake", "notices", name),
            text,
            partial(_by_receiver, notifiers, number),
        )


def _by_receiver(notifiers: Sequence[Notifier], number: Callable[[Notifier], float]) -> dict[Tags, float]:
    return {(("receiver", one.receiver.name),): number(one) for one in notifiers}


_OF_NOTICES: Final[tuple[tuple[str, str, Callable[[Notifier], float]], ...]] = (
    ("waiting", "Notices that wait for their receiver.", lambda one: len(one.outbox)),
    ("delivered", "Notices that were delivered since the start.", lambda one: one.delivered),
    ("failures", "Failed attempts to deliver since the start.", lambda one: one.failures),
    ("deferred", "How often a notice had no room in the queue.", lambda one: one.outbox.deferred),
)
