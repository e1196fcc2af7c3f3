"""The columns of a lake's snapshots: the same images as from records, and nothing that anybody depends on."""

from __future__ import annotations

import importlib.util
import stat
import subprocess
import sys
from pathlib import Path

import attrs
import pyarrow as pa
import pytest
from hypothesis import given

import kraftlake
from kraftlake.api import open_source
from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.metadata_log.snapshots.snapshot_table import LakeSnapshot
from kraftlake.records import metadata_records as r
from kraftlake.records.control_records import Voter, VoterEndpoint, VotersRecord
from kraftlake.records.serde import encode_value
from kraftlake.replay.imports import cached_images
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.loader import image_cache
from kraftlake.replay.loader.image_columns import SCHEMA, image_from_arrow, image_to_arrow
from tests.few_examples import few_examples
from tests.histories import histories, uuid_of

SAMPLE = Path(__file__).resolve().parents[3] / "samples" / "kafka-4.4" / "log" / "__cluster_metadata-0"


@pytest.fixture
def lake(tmp_path, monkeypatch):
    """A lake whose snapshots are all worth a cache."""
    monkeypatch.setattr(cached_images, "WORTH_CACHING", 1)
    import_source(open_source(SAMPLE), tmp_path / "lake")
    return tmp_path / "lake"


@pytest.fixture
def read_from_cache(monkeypatch):
    """The names of the snapshots whose images came from columns."""
    used = []

    def load(folder, snapshot):
        cached = image_cache_load(folder, snapshot)
        if cached is not None:
            used.append(snapshot.name)
        return cached

    image_cache_load = image_cache.load_cached
    monkeypatch.setattr(image_cache, "load_cached", load)
    return used


def files(lake):
    return sorted((lake / image_cache.FOLDER).iterdir())


@few_examples
@given(histories(min_steps=5))
def test_an_image_is_the_same_after_it_was_columns(records):
    delta = MetadataDelta(MetadataImage.EMPTY)
    for record in records:
        delta.replay(record.message)
    provenance = MetadataProvenance(offset=7, epoch=2, timestamp=3)
    image = delta.apply(provenance)
    written = [encode_value(record.message, record.version) for record in image.write()]
    others = [v for v, record in zip(written, image.write(), strict=True) if not _is_of_topics(record.message)]
    again = image_from_arrow(image_to_arrow(image, others), provenance)
    assert again == image
    assert list(again.write()) == list(image.write())


def _is_of_topics(message):
    return isinstance(message, r.TopicRecord | r.PartitionRecord)


def test_images_come_from_columns_and_are_those_of_the_log(lake, read_from_cache):
    ours, source = kraftlake.open(lake), open_source(SAMPLE)
    ends = [snapshot.end_offset for snapshot in ours.snapshots if not snapshot.bootstrap]
    assert ends
    assert len(files(lake)) == len(ends)
    for end in ends:
        for at in (end - 1, end, source.end_offset - 1):
            assert ours.image(at) == source.image(at, from_snapshot=False)
        assert ours.local_changes(1, end - 1).to_json() == source.local_changes(1, end - 1).to_json()
    assert len(read_from_cache) == 4 * len(ends)


def test_an_image_from_columns_imports_nothing_that_it_does_without(lake):
    end = kraftlake.open(lake).snapshots[-1].end_offset
    script = (
        f"import sys, kraftlake; print(kraftlake.open({str(lake)!r}).image({end - 1}).topics.partition_count)\n"
        "heavy = ['pandas', 'pyarrow.compute', 'pyarrow.parquet', 'ssl', 'kraftlake.kafka_files.directory']\n"
        "found = [name for name in heavy if name in sys.modules]\n"
        "assert not found, found"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


UNUSED = {
    "metadata_log": "delta_table.checkpoint_writer maintenance.upkeep",
    "records": "json_form log_record",
    "delta": "from_empty topics.local_replica_changes topics.bulk_change topics.row_changes topics.topic_delta",
    "replay": "loader.metadata_publisher queries.local_changes queries.record_types",
}
"""Modules for upkeep, publishers and printed records: a process that reads an image imports none of them."""


def test_an_image_from_columns_imports_no_module_that_writes_or_follows(lake):
    end = kraftlake.open(lake).snapshots[-1].end_offset
    script = f"import kraftlake, sys; assert kraftlake.open({str(lake)!r}).image({end - 1}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    unused = {f"kraftlake.{room}.{name}" for room, names in UNUSED.items() for name in names.split()}
    assert all(importlib.util.find_spec(name) for name in unused), "a module has another name now"
    found = unused & set(done.stdout.split())
    assert not found


def test_export_knows_the_quorum_of_a_cached_snapshot(lake, tmp_path, read_from_cache):
    end = kraftlake.open(lake).snapshots[-1].end_offset
    kraftlake.open(lake).export(tmp_path / "cached.checkpoint", end - 1)
    assert read_from_cache
    for file in files(lake):
        file.unlink()
    kraftlake.open(lake).export(tmp_path / "read.checkpoint", end - 1)
    assert (tmp_path / "cached.checkpoint").read_bytes() == (tmp_path / "read.checkpoint").read_bytes()


def test_leader_version_and_voters_survive():
    directory, endpoint = uuid_of(5), VoterEndpoint(name="C", host="h", port=9093)
    voter = Voter(voter_id=3, voter_directory_id=directory, endpoints=(endpoint,))
    voters = VotersRecord(version=0, voters=(voter,))
    for state in (image_cache.QuorumState(), image_cache.QuorumState(leader_id=1, kraft_version=1, voters=voters)):
        assert image_cache.quorum_from_json(image_cache.quorum_to_json(state)) == state


def test_a_deleted_cache_is_made_again_by_the_next_import(lake, read_from_cache):
    before = [file.read_bytes() for file in files(lake)]
    image = kraftlake.open(lake).image()
    for file in files(lake):
        file.unlink()
    (lake / image_cache.FOLDER).rmdir()
    read_from_cache.clear()
    assert kraftlake.open(lake).image() == image
    assert read_from_cache == []
    import_source(open_source(SAMPLE), lake)
    assert [file.read_bytes() for file in files(lake)] == before


def test_the_cache_is_for_its_owner_alone(lake):
    assert stat.S_IMODE((lake / image_cache.FOLDER).stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in files(lake)} == {0o600}


@pytest.mark.parametrize("damage", ["a bit", "cut", "empty", "other bytes"])
def test_a_damaged_cache_is_not_used(lake, read_from_cache, damage):
    image = kraftlake.open(lake).image()
    read_from_cache.clear()
    for file in files(lake):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        made = {"a bit": content, "cut": content[: len(content) // 2], "empty": b"", "other bytes": b"x" * 500}[damage]
        file.unlink()
        file.write_bytes(made)
    assert kraftlake.open(lake).image() == image
    assert read_from_cache == []


@pytest.mark.parametrize("fact", ["end_offset", "epoch", "record_count", "last_contained_log_timestamp", "checksum"])
def test_columns_of_another_snapshot_are_not_used(lake, fact):
    snapshot = kraftlake.open(lake).snapshots[-1]
    assert image_cache.load_cached(lake, snapshot) is not None
    other = attrs.evolve(snapshot, **{fact: getattr(snapshot, fact) + 1})
    image_cache.cache_path(lake, snapshot).rename(image_cache.cache_path(lake, other))
    assert image_cache.load_cached(lake, other) is None


@pytest.mark.parametrize("facts", ["x", [1], 7, None, {}])
def test_columns_with_facts_of_another_form_are_not_used(lake, facts):
    snapshot = kraftlake.open(lake).snapshots[-1]
    path = image_cache.cache_path(lake, snapshot)
    image_cache._write(path, image_cache._read(path)[0], facts)
    assert image_cache.load_cached(lake, snapshot) is None


def test_columns_of_a_snapshot_without_a_checksum_are_not_used(lake):
    snapshot = kraftlake.open(lake).snapshots[-1]
    assert image_cache.load_cached(lake, attrs.evolve(snapshot, checksum=None)) is None


def test_the_records_of_a_snapshot_with_cached_columns_are_not_read(lake, read_from_cache, monkeypatch):
    end = kraftlake.open(lake).snapshots[-1].end_offset
    expected = kraftlake.open(lake).image(end - 1)
    monkeypatch.setattr(LakeSnapshot, "_rows", None)
    monkeypatch.setattr(LakeSnapshot, "damage", None)
    assert kraftlake.open(lake).image(end - 1) == expected


def test_an_image_from_columns_takes_no_pandas(lake):
    code = (
        "import sys, kraftlake; at = int(sys.argv[2]); print(kraftlake.open(sys.argv[1]).image(at).provenance.offset);"
        "print('pandas' in sys.modules)"
    )
    at = kraftlake.open(lake).snapshots[-1].end_offset - 1
    command = [sys.executable, "-c", code, str(lake), str(at)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == f"{at}\nFalse\n"


def test_verify_finds_columns_that_are_not_the_image_of_the_records(lake):
    assert kraftlake.open(lake).verify().sound
    snapshot = kraftlake.open(lake).snapshots[-1]
    batch, facts = image_cache._read(image_cache.cache_path(lake, snapshot))
    fewer = batch.set_column(8, SCHEMA[8], pa.array([batch.column(8)[0].as_py()[1:]], SCHEMA[8].type))
    image_cache._write(image_cache.cache_path(lake, snapshot), fewer, facts)
    report = kraftlake.open(lake).verify()
    assert not report.sound
    assert "columns" in report.problems[0].message


def test_a_disk_that_refuses_the_cache_does_not_refuse_the_import(tmp_path, monkeypatch):
    monkeypatch.setattr(cached_images, "WORTH_CACHING", 1)

    def refuse(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(image_cache, "_write", refuse)
    report = import_source(open_source(SAMPLE), tmp_path / "lake")
    assert report.snapshots > 0
    assert kraftlake.open(tmp_path / "lake").image() == open_source(SAMPLE).image()


def test_small_snapshots_are_not_cached(tmp_path):
    import_source(open_source(SAMPLE), tmp_path / "lake")
    assert not (tmp_path / "lake" / image_cache.FOLDER).exists()
