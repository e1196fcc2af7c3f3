"""Every source replayed in bulk and batch by batch: the same answers, the same errors."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kraftlake
from kraftlake.image.metadata_image import image_to_json
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.records.batch import RecordBatch
from kraftlake.records.batch_values import BatchValues
from kraftlake.replay.imports.fork import fork_source
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.reading import chunks
from kraftlake.runtime.errors import CorruptDataError

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
LOGS = [
    path.parent
    for sample in ("kafka-4.4", "crash-torn")
    for path in sorted((SAMPLES / sample).glob("log/**/00000000000000000000.log"))
]


@pytest.fixture
def always_bulk(monkeypatch):
    monkeypatch.setattr(chunks, "BULK_FROM", 0)
    monkeypatch.setattr(chunks, "BULK_SNAPSHOT_FROM", 0)


def never_bulk(monkeypatch):
    monkeypatch.setattr(chunks, "BULK_FROM", 10**12)
    monkeypatch.setattr(chunks, "BULK_SNAPSHOT_FROM", 10**12)


def answers(source):
    last = source.last_image_offset
    offsets = sorted({*range(0, last, max(1, last // 7)), last})
    images = [source.replay(at) for at in offsets]
    as_json = [image_to_json(found.image, show_secrets=True) for found in images]
    changes = [source.local_changes(broker, at, last).to_json() for broker in (1, 2, 3) for at in offsets[::3]]
    return as_json, changes, source.diff(offsets[0], last).to_json(), [found.quorum for found in images]


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.parts[-3])
def test_a_directory_answers_the_same_in_bulk(path, monkeypatch, always_bulk):
    ours = answers(kraftlake.open(path))
    never_bulk(monkeypatch)
    assert ours == answers(kraftlake.open(path))


def test_a_lake_answers_the_same_in_bulk(tmp_path, monkeypatch, always_bulk):
    import_source(kraftlake.open(LOGS[0]), tmp_path / "lake")
    ours = answers(kraftlake.open(tmp_path / "lake"))
    never_bulk(monkeypatch)
    assert ours == answers(kraftlake.open(LOGS[0]))


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.parts[-3])
def test_lakes_that_are_made_in_bulk_are_the_same(path, tmp_path, monkeypatch, always_bulk):
    def made(folder):
        folder.mkdir()
        source = kraftlake.open(path)
        import_source(source, folder / "imported")
        fork_source(source, folder / "fork")
        fork_source(kraftlake.open(folder / "imported"), folder / "fork of the lake")
        logs = [MetadataLog.open(lake) for lake in sorted(folder.iterdir())]
        kept = [(snapshot, list(snapshot.batches())) for log in logs for snapshot in log.snapshots()]
        return [log.rows(log.start_offset, log.end_offset - 1) for log in logs], kept

    in_bulk = made(tmp_path / "in bulk")
    never_bulk(monkeypatch)
    rows, kept = made(tmp_path / "one by one")
    assert all(one.equals(other) for one, other in zip(in_bulk[0], rows, strict=True))
    assert in_bulk[1] == kept
    assert len(kept) >= 3


def test_bulk_replay_takes_nearly_all_batches_of_a_source(tmp_path):
    directory = kraftlake.open(LOGS[0]).reader
    import_source(kraftlake.open(LOGS[0]), tmp_path / "lake")
    for reader in (directory, kraftlake.open(tmp_path / "lake").reader):
        parts = list(reader.bulk_batches(reader.start_offset, reader.end_offset))
        assert parts[-1].last_offset == reader.end_offset - 1
        assert all(part.control for part in parts if isinstance(part, RecordBatch))


@pytest.mark.parametrize("where", [0.2, 0.5, 0.9])
def test_damage_raises_the_same_message(tmp_path, monkeypatch, always_bulk, where):
    shutil.copytree(LOGS[0], tmp_path / "log")
    segment = max((tmp_path / "log").glob("*.log"), key=lambda file: file.stat().st_size)
    data = bytearray(segment.read_bytes())
    data[int(len(data) * where)] ^= 0x40
    segment.write_bytes(data)

    def outcome():
        try:
            return image_to_json(kraftlake.open(tmp_path / "log").image(from_snapshot=False))
        except CorruptDataError as error:
            return str(error)

    ours = outcome()
    never_bulk(monkeypatch)
    assert ours == outcome()


@pytest.mark.parametrize(("enough", "bulk_parts"), [(10, True), (10_000, False)])
def test_a_snapshot_that_a_lake_made_is_large_by_its_records_for_it_has_no_size(
    tmp_path, monkeypatch, enough, bulk_parts
):
    monkeypatch.setattr(chunks, "BULK_SNAPSHOT_FROM", enough)
    (first, *_) = [snapshot for snapshot in kraftlake.open(LOGS[0]).snapshots if not snapshot.bootstrap]
    log = MetadataLog.create(tmp_path / "lake")
    log.add_snapshot(
        SnapshotFacts(
            end_offset=first.end_offset,
            epoch=first.epoch,
            last_contained_log_timestamp=first.last_contained_log_timestamp,
        ),
        first.batches(),
    )
    (snapshot,) = log.snapshots()
    assert (snapshot.size_in_bytes, snapshot.record_count > 10) == (0, True)
    assert any(isinstance(part, BatchValues) for part in chunks.chunks_of_snapshot(snapshot)) == bulk_parts


def test_a_small_source_is_replayed_without_numpy():
    code = "import sys, kraftlake; kraftlake.open(sys.argv[1]).image(); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, LOGS[0]], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"
