"""The logs of all nodes that some sources hold, each with what `verify` says of it."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kraftlake.kafka_files import NodeFiles, node_files
from kraftlake.replay import LogSource, Progress, VerifyReport, is_lake, verify_source
from kraftlake.runtime import CorruptDataError


@attrs.frozen(kw_only=True)
class CheckedLog:
    """The log of a node, or of a lake; `path` is where it lies, perhaps within an archive.

    `words` are those of a command line that names it. `source` is None where it can't be opened, as `fault` says, and
    `report` is what `verify` says of it else.
    """

    path: str
    words: tuple[str, ...]
    source: LogSource | None = None
    report: VerifyReport | None = None
    fault: str | None = None


def checked_logs(path: str, progress: Progress | None) -> Iterator[CheckedLog]:
    """The logs that a path holds, in the order in which `describe_quorum` has their copies."""
    try:
        nodes = () if is_lake(path) else node_files(path)
    except CorruptDataError as fault:
        yield CheckedLog(path=path, words=(path,), fault=str(fault))
        return
    if len(nodes) <= 1:
        yield _checked(CheckedLog(path=path, words=(path,)), None, progress)
        return
    for node in nodes:
        id_ = node.properties.node_id
        chosen = () if node.archive is None or id_ is None else ("--node", str(id_))
        words = (node.archive or node.folder, *chosen)
        yield _checked(CheckedLog(path=node.folder, words=words), node, progress)


def _checked(log: CheckedLog, node: NodeFiles | None, progress: Progress | None) -> CheckedLog:
    """Open a log, one of several of a path where `node` is given, and verify it."""
    try:
        if node is None:
            source = LogSource.open(log.path)
        else:
            reader = node.open()
            source = LogSource(reader, reader.kind, node.folder, node.properties.cluster_id)
        return attrs.evolve(log, source=source, report=verify_source(source, progress=progress))
    except CorruptDataError as fault:
        return attrs.evolve(log, fault=str(fault))
