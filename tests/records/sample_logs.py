"""The files of the sample folders and what Kafka's dump tool says about them."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kraftlake.records.batch import RecordBatch, TornBatchError, read_batches

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
LOG_FILES = sorted([*SAMPLES.glob("*/log/__cluster_metadata-0/*.log"), *SAMPLES.glob("*/log/*/*.checkpoint")])
TORN = SAMPLES / "crash-torn/log/__cluster_metadata-0/00000000000000002265.log"

_CONTROL_NAMES = {
    "LeaderChange": "LEADER_CHANGE",
    "SnapshotHeader": "SNAPSHOT_HEADER",
    "SnapshotFooter": "SNAPSHOT_FOOTER",
    "KRaftVersion": "KRAFT_VERSION",
    "KRaftVoters": "KRAFT_VOTERS",
}


def whole_batches(path: Path) -> Iterator[RecordBatch]:
    """The whole batches of a sample file; only one file is known to be torn."""
    try:
        yield from read_batches(path.read_bytes(), file=path.name)
    except TornBatchError:
        assert path == TORN


def dumped_records(path: Path) -> list[dict[str, Any]]:
    """What the dump tool printed for a sample file, in the form of `kraftlake log --json`."""
    dump = path.parents[2] / "expected" / f"dump-{path.name}.txt.gz"
    records = []
    epoch = -1
    for line in gzip.decompress(dump.read_bytes()).decode("utf-8").split("\n"):
        if found := re.match(r"baseOffset: .* partitionLeaderEpoch: (\d+)", line):
            epoch = int(found[1])
        elif found := re.match(r"\| offset: (\d+) CreateTime: (-?\d+) .*? headerKeys: \[\] (\w+):? (\{.*\})$", line):
            data = json.loads(found[4])
            if found[3] != "payload":
                data = {"type": _CONTROL_NAMES[found[3]], "version": data["version"], "data": data}
            records.append({"offset": int(found[1]), "epoch": epoch, "timestamp": int(found[2]), **data})
        else:
            assert not line.startswith("|"), line
    return records
