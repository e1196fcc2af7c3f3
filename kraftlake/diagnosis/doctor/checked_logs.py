"""The logs of all nodes that some sources hold, and of a live quorum, each with its report of `verify`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from kraftlake.kafka_files.directory import MetadataDirectory, NodeFiles
from kraftlake.kafka_files.open_source import node_files
from kraftlake.replay.comparing.log_copy import LogCopy
from kraftlake.replay.queries.quorum_report import QuorumReport
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.open_reader import is_lake
from kraftlake.replay.reading.progress import Progress
from kraftlake.replay.verify.findings import VerifyReport
from kraftlake.replay.verify.verification import verify_source
from kraftlake.runtime.errors import CorruptDataError


@attrs.frozen(kw_only=True)
class CheckedLog:
    """The log of a node, of a lake, or of a live quorum; `path` is its place, perhaps within an archive.

    `words` name it on a command line. `source` is None where the log can't be opened, and `fault` is the cause;
    otherwise `report` is the report of `verify`.
    """

    path: str
    words: tuple[str, ...]
    source: LogSource | None = None
    report: VerifyReport | None = None
    fault: str | None = None


def checked_logs(
    paths: Sequence[str],
    quorum: QuorumReport,
    config_words: Sequence[str],
    progress: Progress | None,
    *,
    verifies: bool = True,
) -> tuple[tuple[CheckedLog, ...], CheckedLog]:
    """The logs at the paths of a report, and the one of them that goes furthest.

    `config_words` are the words of a command line that are needed to query a live quorum. Without `verifies` they have
    no reports.
    """
    logs: list[CheckedLog] = []
    of_copies: list[CheckedLog] = []
    for path in paths:
        live = [copy for copy in quorum.copies if copy.fetching is not None and copy.path == path]
        some = (
            [_of_quorum(live[0], config_words, progress)]
            if live
            else list(_in_files(path, progress, verifies=verifies))
        )
        logs += some
        of_copies += some * max(1, len(live))  # the log of a quorum is that of all its nodes
    return tuple(logs), of_copies[quorum.copies.index(quorum.furthest)]


def _of_quorum(copy: LogCopy, config_words: Sequence[str], progress: Progress | None) -> CheckedLog:
    """The committed log that was fetched from a quorum."""
    reader = copy.reader
    assert isinstance(reader, MetadataDirectory), "it was fetched into a folder"
    source = LogSource(reader, reader.kind, copy.path, reader.cluster_id)
    return _verified(CheckedLog(path=copy.path, words=(copy.path, *config_words)), source, progress)


def _in_files(path: str, progress: Progress | None, *, verifies: bool) -> Iterator[CheckedLog]:
    """The logs that a path holds, in the order in which `describe_quorum` has their copies."""
    try:
        nodes = () if is_lake(path) else node_files(path)
    except CorruptDataError as fault:
        yield CheckedLog(path=path, words=(path,), fault=str(fault))
        return
    if len(nodes) <= 1:
        yield _checked(CheckedLog(path=path, words=(path,)), None, progress, verifies=verifies)
        return
    for node in nodes:
        id_ = node.properties.node_id
        chosen = () if node.archive is None or id_ is None else ("--node", str(id_))
        words = (node.archive or node.folder, *chosen)
        yield _checked(CheckedLog(path=node.folder, words=words), node, progress, verifies=verifies)


def _checked(log: CheckedLog, node: NodeFiles | None, progress: Progress | None, *, verifies: bool) -> CheckedLog:
    """Open a log, one of several of a path where `node` is given, and verify it if `verifies`."""
    try:
        if node is None:
            source = LogSource.open(log.path)
        else:
            reader = node.open()
            source = LogSource(reader, reader.kind, node.folder, node.properties.cluster_id)
    except CorruptDataError as fault:
        return attrs.evolve(log, fault=str(fault))
    return _verified(log, source, progress) if verifies else attrs.evolve(log, source=source)


def _verified(log: CheckedLog, source: LogSource, progress: Progress | None) -> CheckedLog:
    try:
        return attrs.evolve(log, source=source, report=verify_source(source, progress=progress))
    except CorruptDataError as fault:
        return attrs.evolve(log, fault=str(fault))
