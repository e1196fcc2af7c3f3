"""The diagnosis of a cluster: all checks, their findings by severity, and whether the cluster is healthy."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

import attrs

from kraftlake.diagnosis.doctor.broker_checks import BROKER_CHECKS
from kraftlake.diagnosis.doctor.check import Check
from kraftlake.diagnosis.doctor.check_input import WINDOW_MS, BrokerFolders, CheckInput, brokers_of
from kraftlake.diagnosis.doctor.checked_logs import checked_logs
from kraftlake.diagnosis.doctor.cleaning_checks import CLEANING_CHECKS
from kraftlake.diagnosis.doctor.config_checks import CONFIG_CHECKS
from kraftlake.diagnosis.doctor.directory_checks import DIRECTORY_CHECKS
from kraftlake.diagnosis.doctor.endpoint_checks import ENDPOINT_CHECKS
from kraftlake.diagnosis.doctor.feature_checks import FEATURE_CHECKS
from kraftlake.diagnosis.doctor.finding import Finding, Severity
from kraftlake.diagnosis.doctor.identity_checks import IDENTITY_CHECKS
from kraftlake.diagnosis.doctor.partition_checks import PARTITION_CHECKS
from kraftlake.diagnosis.doctor.quorum_checks import QUORUM_CHECKS
from kraftlake.diagnosis.doctor.risk_checks import RISK_CHECKS
from kraftlake.diagnosis.doctor.stability_checks import STABILITY_CHECKS
from kraftlake.image.cluster_counts import ClusterCounts, count_cluster
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.protocol.address import joined_addresses
from kraftlake.replay.loader.fold import Replay
from kraftlake.replay.queries.quorum_report import QuorumReport, describe_quorum
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.progress import Progress
from kraftlake.runtime.arguments import path_texts
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError, OffsetError, ReplayError, UnknownRecordError
from kraftlake.runtime.moments import Moment

CHECKS: Final[tuple[Check, ...]] = (
    *QUORUM_CHECKS, *PARTITION_CHECKS, *DIRECTORY_CHECKS, *IDENTITY_CHECKS, *BROKER_CHECKS, *CLEANING_CHECKS,
    *ENDPOINT_CHECKS, *STABILITY_CHECKS, *FEATURE_CHECKS, *RISK_CHECKS, *CONFIG_CHECKS,
)  # fmt: skip
"""All checks. Findings of the same severity are in this order."""


@attrs.frozen(kw_only=True)
class Diagnosis:
    """The findings of the checks, the worst first.

    `image` is the checked image, None where the log has none: then only findings on the quorum and the logs are
    possible. `offset` and `timestamp` (epoch ms) are the image's. `counts` are the cluster's, `sources` the paths read.
    `unread` are the first offset of the log and the first one whose changes are known, where there are records but no
    image between them.
    """

    sources: tuple[str, ...]
    quorum: QuorumReport
    image: MetadataImage | None
    counts: ClusterCounts | None
    findings: tuple[Finding, ...]
    cluster_id: str | None
    unread: tuple[int, int] | None = None
    source: LogSource | None = attrs.field(default=None, eq=False, repr=False)
    """The log that was checked."""

    @property
    def offset(self) -> int | None:
        """The offset of the image."""
        return None if self.image is None else self.image.provenance.offset

    @property
    def timestamp(self) -> int | None:
        """The time of the image in epoch ms, None for none."""
        time = -1 if self.image is None else self.image.provenance.timestamp
        return None if time < 0 else time

    @property
    def is_healthy(self) -> bool:
        """Whether there is an image, and no finding is worse than INFO."""
        return self.image is not None and all(finding.severity is Severity.INFO for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """The form of `kraftlake doctor --json`."""
        return {
            "clusterId": self.cluster_id,
            "offset": self.offset,
            "timestamp": self.timestamp,
            "findings": [finding.to_json() for finding in self.findings],
        }


def diagnose(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    at: Moment | None = None,
    *,
    log_dirs: Sequence[str | os.PathLike[str]] = (),
    cluster_id: str | None = None,
    command_config: str | os.PathLike[str] | None = None,
    window: timedelta = timedelta(milliseconds=WINDOW_MS),
    checks: Sequence[Check] = CHECKS,
    progress: Progress | None = None,
    thorough: bool = True,
) -> Diagnosis:
    """Check a cluster: one source, or those of all remaining nodes; of all their logs the furthest is used.

    The addresses of a live quorum (HOST:PORT) are a source, several of them one: its log is fetched, and its leader
    reports the fetching nodes. `command_config` is the properties file for these addresses, and `cluster_id` the
    cluster's id where the quorum does not report it.

    `at` is the offset or time to check, None for the end of the log. `log_dirs` are log directories of brokers, which
    are compared with the image. Fencings, elections and ISR changes are counted in the `window` before the image. A
    damaged log is checked as far as it can be replayed. For logs of two histories no image is checked: the advice would
    hold for only one of them. `progress` is called while logs are fetched and verified. Without `thorough` no log is
    verified, and the past is read from the newest snapshot before the recent time on, so that the cost is that of what
    a day adds; since when a finding holds is unknown then where that is longer.

    Raises UsageError where the sources are of several clusters or a log directory is of another or names no broker,
    NotASourceError where one of them is not a source, NodeError where a quorum does not answer, OffsetError where `at`
    is not in the log.
    """
    if log_dirs:
        from kraftlake.replica_manager.logs.log_dirs import check_log_dirs

        check_log_dirs(log_dirs)
    paths = joined_addresses(path_texts([sources] if isinstance(sources, (str, os.PathLike)) else sources))
    quorum = describe_quorum(paths, cluster_id=cluster_id, command_config=command_config, progress=progress)
    config_words = () if command_config is None else ("--command-config", *path_texts([command_config]))
    config_words += () if cluster_id is None else ("--cluster-id", cluster_id)
    logs, furthest = checked_logs(paths, quorum, config_words, progress, verifies=thorough)
    source = furthest.source
    if source is None:
        raise CorruptDataError(furthest.fault or "")
    known = source.cluster_id or quorum.cluster_id
    replay, stopped = _replayed(source, at, None if furthest.report is None else furthest.report.first_bad_offset)
    case = CheckInput(
        sources=(*paths, *config_words),
        quorum=quorum,
        logs=logs,
        furthest=furthest,
        source=source,
        replay=replay,
        stopped=stopped,
        as_asked=at is not None,
        window_ms=window // timedelta(milliseconds=1),
        thorough=thorough,
        folders=() if replay is None else tuple(_compared(replay.image, log_dirs, known)),
    )
    asked = [check for check in checks if not (quorum.rivals and check.of_image)]
    findings = [finding for check in asked for finding in check.findings(case)]
    return Diagnosis(
        sources=paths,
        quorum=quorum,
        image=None if replay is None else replay.image,
        counts=None if replay is None else count_cluster(replay.image),
        findings=tuple(sorted(findings, key=lambda finding: finding.severity)),
        cluster_id=known,
        source=source,
        unread=None if replay is None else _unread(source, replay.image.provenance.offset),
    )


def _unread(source: LogSource, at: int) -> tuple[int, int] | None:
    start, begin = source.start_offset, source.changes_begin
    return (start, begin) if start < begin and start <= at else None


def _replayed(
    source: LogSource, at: Moment | None, first_bad: int | None
) -> tuple[Replay | None, KraftlakeError | None]:
    """The replay up to `at`, or up to the last offset before the first that stops it, and the fault that stops it."""
    moment, stopped = at, None
    while True:
        try:
            return source.replay(moment), stopped
        except (CorruptDataError, ReplayError, UnknownRecordError) as fault:
            stopped = stopped or fault
            offset = getattr(fault, "offset", None)
            bad = first_bad if offset is None else offset
            if bad is None or bad <= 0 or (isinstance(moment, int) and bad > moment):
                return None, stopped
            moment = bad - 1
        except OffsetError as fault:
            if at is not None and stopped is None:
                raise
            return None, stopped or fault


def _compared(
    image: MetadataImage, paths: Sequence[str | os.PathLike[str]], known: str | None
) -> Iterator[BrokerFolders]:
    """The log directories of each broker, compared with the image."""
    from kraftlake.replica_manager.logs.log_dirs import check_log_dirs, compare_log_dirs

    check_log_dirs(paths, cluster_id=known)
    for broker, some in brokers_of(paths).items():
        yield BrokerFolders(broker=broker, paths=tuple(some), report=compare_log_dirs(image, broker, some))
