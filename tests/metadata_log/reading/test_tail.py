from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from deltalake import DeltaTable

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.checkpointing import checkpoint_if_due, clean_up_commits
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.reading import tail
from kraftlake.records.batch import RecordBatch
from kraftlake.runtime.errors import CorruptDataError, OffsetError, RefusedReadError, UsageError
from tests.metadata_log.log_batches import UnsyncedDisk, data_batch

ROOT = Path(__file__).resolve().parents[3]
WRITER = """
import sys
from kraftlake.metadata_log.log import MetadataLog
from tests.metadata_log.log_batches import UnsyncedDisk, data_batch
log = MetadataLog.open(sys.argv[1], disk=UnsyncedDisk())
for _ in range(int(sys.argv[2])):
    log.append([data_batch(log.end_offset, 1 + log.end_offset % 3)])
"""


@pytest.fixture
def log(tmp_path: Path) -> MetadataLog:
    log = MetadataLog.create(tmp_path / "lake", disk=UnsyncedDisk())
    for offset in range(0, 20, 2):
        log.append([data_batch(offset, 2)])
    return log


def offsets(batches: list[RecordBatch]) -> list[int]:
    return [offset for batch in batches for offset in range(batch.base_offset, batch.last_offset + 1)]


def test_what_is_there_comes_first_and_then_what_is_committed(log: MetadataLog) -> None:
    with log.tail(7, timeout=60) as tailed:
        assert [next(tailed).base_offset for _ in range(7)] == [6, 8, 10, 12, 14, 16, 18]
        assert tailed.next_offset == 20
        log.append([data_batch(20), data_batch(21, 3)])
        log.append([data_batch(24)])
        assert next(tailed) == data_batch(20)
        assert tailed.next_offset == 21
        assert [next(tailed), next(tailed)] == [data_batch(21, 3), data_batch(24)]


def test_a_tail_begins_at_the_end_unless_another_offset_is_given(log: MetadataLog) -> None:
    with log.tail(timeout=60) as tailed:
        log.append([data_batch(20)])
        assert next(tailed).base_offset == 20
    with log.tail(log.end_offset, timeout=0) as tailed:
        assert list(tailed) == []


def test_a_tail_without_patience_ends_at_the_end(log: MetadataLog) -> None:
    assert offsets(list(log.tail(0, timeout=0))) == list(range(20))
    tailed = log.tail(0, timeout=0.01)
    assert offsets(list(tailed)) == list(range(20))
    log.append([data_batch(20)])
    assert list(tailed) == [], "what has ended stays so"


def test_closing_from_another_thread_ends_the_wait(log: MetadataLog) -> None:
    tailed = log.tail(18)
    found: list[RecordBatch] = []
    reader = threading.Thread(target=lambda: found.extend(tailed))
    reader.start()
    tailed.close()
    reader.join(120)
    assert not reader.is_alive()
    assert list(tailed) == []


@pytest.mark.parametrize("offset", [-1, 4])
def test_offsets_before_the_start_are_refused_with_the_first_there_is(tmp_path: Path, offset: int) -> None:
    log = MetadataLog.create(tmp_path / "lake", start_offset=5, disk=UnsyncedDisk())
    with pytest.raises(OffsetError, match="the first available offset is 5"):
        log.tail(offset)
    with pytest.raises(OffsetError, match="past the end"):
        log.tail(6)


def test_times_that_cannot_be_waited_for_are_refused(log: MetadataLog) -> None:
    with pytest.raises(UsageError):
        log.tail(0, poll=0)
    with pytest.raises(UsageError):
        log.tail(0, timeout=-1)


def test_a_tail_goes_on_over_compaction_and_vacuum(log: MetadataLog) -> None:
    with log.tail(0, timeout=60) as tailed:
        assert next(tailed).base_offset == 0
        log.append([data_batch(20)])
        table = DeltaTable(log.path / "log")
        table.optimize.compact()
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        log.append([data_batch(21)])
        assert offsets([next(tailed) for _ in range(11)]) == list(range(2, 22))


def test_a_tail_that_was_left_behind_by_a_clean_up_goes_on_at_the_checkpoint(
    log: MetadataLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "_CHECKED_EVERY", 0.003)
    policy = UpkeepPolicy(checkpoint_after=1, keep_commits=0)
    with log.tail(20, timeout=60) as tailed:
        for offset in range(20, 30):
            log.append([data_batch(offset)])
        checkpoint_if_due(log.path / "log", UnsyncedDisk(), policy)
        for path in (log.path / "log" / "_delta_log").glob("*.json"):
            os.utime(path, (1, 1))
        assert clean_up_commits(log.path / "log", UnsyncedDisk(), policy).commits == 20
        log.append([data_batch(30)])
        assert offsets([next(tailed) for _ in range(11)]) == list(range(20, 31))


def test_offsets_that_something_else_wrote_end_a_tail(log: MetadataLog) -> None:
    with log.tail(20, timeout=60) as tailed:
        log.append([data_batch(20)])
        (path,) = (log.path / "log").glob(f"{20:020d}-*.parquet")
        path.write_bytes(b"")
        with pytest.raises(CorruptDataError, match=path.name):
            next(tailed)
        assert list(tailed) == []


def test_a_look_for_news_that_the_disk_refuses_is_reported_as_such(
    log: MetadataLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    cursor = tail.TailCursor(MetadataLog.open(log.path), None, 0.001)

    def refuse(path: Path) -> bool:
        raise OSError(5, "Input/output error", str(path))

    with monkeypatch.context() as refusing:
        refusing.setattr(Path, "exists", refuse)
        with pytest.raises(RefusedReadError, match=r"0011\.json can't be read: Input/output error\.$"):
            cursor.has_news()
    log.append([data_batch(20)])
    assert cursor.has_news()


def test_another_process_is_followed_batch_by_batch(log: MetadataLog) -> None:
    end = log.end_offset
    with log.tail(0, timeout=60) as tailed:
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(log.path), "60"], cwd=ROOT)
        batches = [next(tailed) for _ in range(10 + 60)]
        assert process.wait() == 0
    assert offsets(batches) == list(range(batches[-1].last_offset + 1))
    assert batches == list(MetadataLog.open(log.path).batches())
    assert batches[-1].last_offset > end


def test_the_asyncio_form_gives_the_same_and_lets_others_run(log: MetadataLog) -> None:
    async def write() -> None:
        for offset in range(20, 30):
            await asyncio.to_thread(log.append, [data_batch(offset)])

    async def read() -> list[RecordBatch]:
        found = []
        async for batch in log.tail_async(4, timeout=120):
            found.append(batch)
            if batch.last_offset == 29:
                break
        return found

    async def both() -> list[RecordBatch]:
        found, _ = await asyncio.gather(read(), write())
        return found

    assert offsets(asyncio.run(both())) == list(range(4, 30))

    async def to_the_end() -> list[RecordBatch]:
        return [batch async for batch in log.tail_async(0, timeout=0)]

    assert offsets(asyncio.run(to_the_end())) == list(range(30))


def test_the_asyncio_form_asks_for_news_on_another_thread(log: MetadataLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an object store the question is a request, which may take as long as any."""
    asked, has_news = set(), tail.TailCursor.has_news

    def ask(self: tail.TailCursor) -> bool:
        asked.add(threading.current_thread())
        return has_news(self)

    monkeypatch.setattr(tail.TailCursor, "has_news", ask)

    async def read() -> list[RecordBatch]:
        return [batch async for batch in log.tail_async(0, timeout=0)]

    assert asyncio.run(read()) == list(log.batches())
    assert asked
    assert threading.main_thread() not in asked


def test_the_asyncio_form_goes_on_behind_a_clean_up(log: MetadataLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "_CHECKED_EVERY", 0.003)
    policy = UpkeepPolicy(checkpoint_after=1, keep_commits=0)

    async def read() -> list[int]:
        tailed = log.tail_async(20, timeout=120)
        first = asyncio.ensure_future(anext(tailed))
        for offset in range(20, 25):
            log.append([data_batch(offset)])
        checkpoint_if_due(log.path / "log", UnsyncedDisk(), policy)
        for path in (log.path / "log" / "_delta_log").glob("*.json"):
            os.utime(path, (1, 1))
        clean_up_commits(log.path / "log", UnsyncedDisk(), policy)
        found = [await first, *[await anext(tailed) for _ in range(4)]]
        await tailed.aclose()  # type: ignore[attr-defined]
        return offsets(found)

    assert asyncio.run(read()) == list(range(20, 25))
