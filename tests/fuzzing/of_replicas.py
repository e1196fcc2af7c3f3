"""A reader of a replica's folder: one file has any bytes, and the others are as a broker has left them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from kraftlake.replica_manager.logs.disk.log_loader import StoredState
from simulator.data_batches import batch, marker
from tests.fuzzing.of_logs import with_right_sums
from tests.fuzzing.target import FILES, Target
from tests.replica_manager.logs.disk.opened import opened, reopened


def load_replica(data: bytes) -> None:
    """The first byte chooses the file, and whether the broker was shut down in order; then all is read."""
    names = sorted(_whole())
    if not data or data[0] >= 2 * len(names):
        return
    name, stored = names[data[0] // 2], StoredState(clean=data[0] % 2 == 1)
    with tempfile.TemporaryDirectory(prefix="kraftlake-fuzzed-") as folder:
        replica = Path(folder, "foo-0")
        replica.mkdir()
        for other, content in _whole().items():
            (replica / other).write_bytes(content)
        (replica / name).write_bytes(with_right_sums(data[1:]) if name.endswith(".log") else data[1:])
        log = opened(Path(folder), stored=stored)
        try:
            found = list(log.batches)
            assert [one.last_offset < log.log_end_offset for one in found] == [True] * len(found)
            log.offset_for_timestamp(3)
            log.append_as_leader(batch(b"more"), 99)
            log.flush()
        finally:
            log.close_files()


@lru_cache
def _whole() -> dict[str, bytes]:
    """The files of a replica with several segments, a producer and a transaction that was aborted."""
    folder = Path(tempfile.mkdtemp(prefix="kraftlake-replica-"))
    try:
        log = opened(folder)
        for number in range(6):
            log.append_as_leader(batch(b"x" * 100, times=(number,), producer=7, sequence=number), number // 2)
        log.append_as_leader(batch(b"y", producer=8, transactional=True), 3)
        log.append_as_leader(marker(8, commit=False), 3)
        reopened(log, folder).close_files()
        return {path.name: path.read_bytes() for path in (folder / "foo-0").iterdir()}
    finally:
        shutil.rmtree(folder)


def replicas() -> Iterable[bytes]:
    """Each file as it is, after an orderly shutdown and after a crash."""
    for at, name in enumerate(sorted(_whole())):
        for clean in range(2):
            yield bytes([2 * at + clean]) + _whole()[name]


TARGETS = {"replicas": Target(load_replica, FILES, replicas)}
