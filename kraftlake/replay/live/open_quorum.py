"""Opens a live quorum as a source: everything it has committed at this moment."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kraftlake.kafka_files.directory import MetadataDirectory
from kraftlake.protocol.address import parse_addresses
from kraftlake.protocol.node_connector import connector_of
from kraftlake.protocol.observer.quorum_observer import QuorumObserver
from kraftlake.replay.live.mirror import mirror_quorum
from kraftlake.replay.live.retry_policy import RetryPolicy
from kraftlake.replay.reading.progress import Progress, no_progress
from kraftlake.runtime.arguments import path_text, text
from kraftlake.runtime.log import get_logger

_WAITS_AT_MOST = 20.0
"""The seconds that a request waits for a quorum without a leader; an election takes a few."""


def observer_of(
    addresses: str,
    *,
    cluster_id: str | None = None,
    command_config: str | os.PathLike[str] | None = None,
    warn: Callable[[str], None] | None = None,
) -> QuorumObserver:
    """An observer of the quorum whose controllers have these addresses; it connects on first use.

    `warn` gets a sentence on each unsafe setting in the properties file. Raises UsageError for addresses or a file that
    can't be read.
    """
    addresses = text(addresses, "the addresses of a quorum")
    path = None if command_config is None else path_text(command_config)
    connect = connector_of(path, tell=warn or get_logger(__name__).warning)
    return QuorumObserver(parse_addresses(addresses), connect=connect, cluster_id=cluster_id)


def open_quorum(
    addresses: str,
    *,
    cluster_id: str | None = None,
    command_config: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    warn: Callable[[str], None] | None = None,
) -> MetadataDirectory:
    """The committed log of a quorum, copied into a folder that is removed when the process ends.

    Raises as `observer_of`, and NodeError where the quorum does not answer, OtherClusterError for a cluster other than
    `cluster_id`.
    """
    folder = tempfile.mkdtemp(prefix="kraftlake-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with observer_of(addresses, cluster_id=cluster_id, command_config=command_config, warn=warn) as observer:
        patience = RetryPolicy(wait=time.sleep, limit=_WAITS_AT_MOST)
        return mirror_quorum(
            observer, Path(folder), name=addresses, patience=patience, progress=progress or no_progress
        )
