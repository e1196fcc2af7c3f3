"""What the tests of imports share: a source made of batches, and a lake that must not change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kraftlake.api import Source
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.imports.import_log import import_source
from kraftlake.runtime.errors import (
    KraftlakeError,
)
from tests.replay.made_logs import (
    CLUSTER,
    MadeLog,
)


def made(log: MadeLog | Sequence[RecordBatch], cluster_id: str | None = CLUSTER) -> Source:
    reader = log if isinstance(log, MadeLog) else MadeLog(records=tuple(log))
    return Source(reader, SourceKind.DIRECTORY, "made", cluster_id)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else b"" for p in folder.rglob("*")}


def holds(lake: Path, batches: Sequence[RecordBatch]) -> None:
    assert list(MetadataLog.open(lake).batches()) == list(batches)


def refused(source: Source, lake: Path, error: type[KraftlakeError], message: str, **options: str) -> None:
    """The import is refused with this message, and the lake is byte for byte as it was, or still not there."""
    before = tree(lake.parent)
    with pytest.raises(error, match=message):
        import_source(source, lake, **options)  # type: ignore[arg-type]
    assert tree(lake.parent) == before
