"""What a record takes in a lake, appended one a commit and after its compaction: `python -m benchmarks.size`.

No-ops half a second apart, as an idle controller writes them, and topics with random ids. Bytes are those of the
files; a disk keeps each file in whole blocks, `on disk` counts those too.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable
from pathlib import Path

from benchmarks.folders import made_folder
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.storage.disk import disk_for
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import NoOpRecord, TopicRecord
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid

TIME = 1_700_000_000_000
POLICY = UpkeepPolicy(compact_from=2)


def no_op(_offset: int) -> ApiMessageAndVersion:
    return ApiMessageAndVersion(NoOpRecord(), 0)


def topic(offset: int) -> ApiMessageAndVersion:
    return ApiMessageAndVersion(TopicRecord(name=f"payments.{offset:06d}", topic_id=Uuid.random()), 0)


def sizes(files: Iterable[Path]) -> tuple[int, int]:
    """The bytes of files, and of the blocks that they take."""
    found = [file.stat() for file in files]
    return sum(each.st_size for each in found), sum(512 * each.st_blocks for each in found)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.size", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--commits", type=int, default=2_000)
    parser.add_argument("--folder", type=made_folder, help="where the lakes lie; by default among the temporary files")
    options = parser.parse_args()
    print(f"{'bytes a record':40} {'files':>9} {'on disk':>9}")
    with tempfile.TemporaryDirectory(prefix="kraftlake-size-", dir=options.folder) as folder:
        for name, make in (("no-op", no_op), ("topic", topic)):
            lake = Path(folder) / name
            log = MetadataLog.create(lake, role="controlled", durability="os")
            epoch = log.claim(1)
            for offset in range(1, options.commits + 1):
                log.append([RecordBatch.of(offset, epoch, TIME + 500 * offset, [make(offset)])], epoch=epoch)
            table = lake / "log"
            show(f"{name}, one a commit: data file", table.glob("*.parquet"), options.commits)
            show(f"{name}, one a commit: commit", (table / "_delta_log").glob("*.json"), options.commits)
            Upkeep(lake, POLICY, disk=disk_for(lake, "os")).run(force_checkpoint=True)
            show(f"{name}, compacted", [table / path for path in read_table(table).files], options.commits)
            show(f"{name}, compacted: checkpoint", (table / "_delta_log").glob("*.parquet"), options.commits)


def show(what: str, files: Iterable[Path], records: int) -> None:
    size, blocks = sizes(files)
    print(f"{what:40} {size / records:9.1f} {blocks / records:9.1f}")


if __name__ == "__main__":
    main()
