"""A lake for controllers."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftlake.controller.quorum.bootstrap import BootstrapMetadata, BootstrapSnapshot
from kraftlake.metadata_log.append.creation import Contents
from kraftlake.metadata_log.log import MetadataLog
from tests.controller.controlled_cluster import CLUSTER_ID


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    path = tmp_path / "lake"
    bootstrap = BootstrapSnapshot(metadata=BootstrapMetadata.of(), timestamp=1_700_000_000_000)
    contents = Contents(snapshots=[(bootstrap, bootstrap.batches())])
    MetadataLog.create(path, CLUSTER_ID, "controlled", contents=contents, durability="os")
    return path
