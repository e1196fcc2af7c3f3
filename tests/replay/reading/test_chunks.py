from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.kafka_files.directory import open_directory
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.rows import to_rows
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.reading.chunks import Chunk, chunks_of
from kraftlake.runtime.errors import CorruptDataError
from tests.metadata_log.log_batches import data_batch, leader_change, noop_batch
from tests.metadata_log.strategies import logs


def directory(folder: Path, batches: list[RecordBatch], damage_at: int | None = None) -> Path:
    source = folder / "__cluster_metadata-0"
    source.mkdir(parents=True, exist_ok=True)
    data = bytearray(b"".join(map(encode_batch, batches)))
    if damage_at is not None:
        data[damage_at] ^= 1
    (source / f"{batches[0].base_offset:020d}.log").write_bytes(data)
    return source


def batches_of(parts: list[Chunk]) -> list[RecordBatch]:
    return [batch for part in parts for batch in ([part] if isinstance(part, RecordBatch) else part.batches(0))]


@pytest.fixture(autouse=True)
def in_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraftlake.replay.reading.chunks.BULK_FROM", 0)


@given(data=st.data())
def test_parts_hold_the_batches_that_a_reader_gives_one_by_one(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    batches = data.draw(logs())
    reader = open_directory(directory(tmp_path_factory.mktemp("log"), batches))
    first = data.draw(st.integers(0, reader.end_offset - 1))
    last = data.draw(st.integers(first, reader.end_offset - 1))
    parts = list(chunks_of(reader, first, last))
    assert batches_of(parts) == list(reader.batches(first, last))
    assert to_rows(parts).equals(to_rows(reader.batches(first, last)))


LOG = [
    leader_change(0, epoch=1),
    *(noop_batch(offset) for offset in range(1, 50)),
    data_batch(50, 30),
    leader_change(80, epoch=2),
    *(noop_batch(offset, epoch=2) for offset in range(81, 100)),
]


def test_a_bulk_import_makes_the_lake_that_one_batch_by_batch_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = directory(tmp_path, LOG)
    in_bulk = import_source(str(source), str(tmp_path / "one"))
    monkeypatch.setattr("kraftlake.replay.reading.chunks.BULK_FROM", 10**9)
    import_source(str(source), str(tmp_path / "other"))
    one, other = (MetadataLog.open(tmp_path / name) for name in ("one", "other"))
    assert one.rows().equals(other.rows())
    assert one.committed_to == other.committed_to == 80
    assert (in_bulk.records, in_bulk.batches) == (100, len(LOG))


def test_a_bulk_import_goes_on_within_a_stretch_of_batches(tmp_path: Path) -> None:
    import_source(str(directory(tmp_path / "first", LOG[:30])), str(tmp_path / "lake"))
    report = import_source(str(directory(tmp_path / "all", LOG)), str(tmp_path / "lake"))
    assert (report.from_offset, report.to_offset, report.already_there) == (30, 99, 30)
    assert list(MetadataLog.open(tmp_path / "lake").batches()) == LOG


def test_damage_within_a_bulk_import_is_named_and_leaves_no_lake(tmp_path: Path) -> None:
    at = sum(len(encode_batch(batch)) for batch in LOG[:60]) + 70
    source = directory(tmp_path, LOG, damage_at=at)
    with pytest.raises(CorruptDataError, match="CRC"):
        import_source(str(source), str(tmp_path / "lake"))
    assert not (tmp_path / "lake").exists()
