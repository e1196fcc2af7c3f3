"""Real logs give the images and local changes that Kafka 4.4's own classes gave, whatever the log is kept in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import kraftlake
from kraftlake.api import Source
from kraftlake.image.metadata_image import MetadataImage, image_to_json
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.runtime.errors import OffsetError, ReplayError
from tests.replay.sample_logs import (
    NAMES,
    archived,
    directory_of,
    dumped_records,
    expected,
    expected_images,
    expected_local_changes,
    without_first_segments,
)


def as_json(image: MetadataImage) -> Any:
    return json.loads(json.dumps(image_to_json(image, show_secrets=True)))


def check_images(source: Source, sample: str, *, first: int = 0, from_snapshot: bool | None = None) -> int:
    checked = 0
    for at, path in expected_images(sample):
        if at >= first:
            assert as_json(source.image(at, from_snapshot=from_snapshot)) == expected(path), path.name
            checked += 1
    return checked


def check_local_changes(source: Source, sample: str, *, first: int = -1, from_snapshot: bool | None = None) -> int:
    checked = 0
    for low, high, broker, path in expected_local_changes(sample):
        if low >= first:
            changes = source.local_changes(broker, low, high, from_snapshot=from_snapshot)
            assert changes.to_json() == expected(path), path.name
            checked += 1
    return checked


@pytest.fixture(scope="module", params=NAMES)
def sample(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def lake(sample: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lakes") / sample
    import_source(directory_of(sample), path)
    return path


def test_every_expected_image_from_the_log_alone(sample: str) -> None:
    assert check_images(kraftlake.open(directory_of(sample)), sample, from_snapshot=False) >= 9


def test_every_expected_image_from_the_newest_snapshot_and_the_log(sample: str) -> None:
    source = kraftlake.open(directory_of(sample))
    assert check_images(source, sample) >= 9
    oldest = min(s.end_offset - 1 for s in source.snapshots if not s.bootstrap)
    assert check_images(source, sample, first=oldest, from_snapshot=True) >= 3


def test_every_expected_image_from_a_lake(sample: str, lake: Path) -> None:
    source = kraftlake.open(lake)
    assert check_images(source, sample) >= 9
    assert check_images(source, sample, from_snapshot=False) >= 9


def test_every_expected_local_change_from_the_directory(sample: str) -> None:
    source = kraftlake.open(directory_of(sample))
    assert check_local_changes(source, sample) >= 11
    assert check_local_changes(source, sample, from_snapshot=False) >= 11


def test_every_expected_local_change_from_a_lake(sample: str, lake: Path) -> None:
    assert check_local_changes(kraftlake.open(lake), sample) >= 11


@pytest.mark.parametrize(("name", "start", "first_image"), [("kafka-4.4", 2027, 3037), ("kafka-4.4", 3532, 4592)])
@pytest.mark.parametrize("in_lake", [False, True])
def test_a_log_whose_first_segments_were_removed_starts_from_the_snapshot(
    name: str, start: int, first_image: int, in_lake: bool, tmp_path: Path
) -> None:
    place: Path = without_first_segments(name, tmp_path / "copy", start)
    if in_lake:
        import_source(place, tmp_path / "lake")
        place = tmp_path / "lake"
    source = kraftlake.open(place)
    assert source.start_offset == start
    assert check_images(source, name, first=first_image) >= 3
    assert check_local_changes(source, name, first=first_image) >= 4
    assert [record.offset for record in source.records(to_offset=start + 5)] == list(range(start, start + 6))
    with pytest.raises(OffsetError, match=rf"starts at offset {start}.*offset {first_image}\b"):
        source.image(first_image - 1)
    assert source.image(first_image).provenance.offset == first_image


@pytest.mark.parametrize("suffix", ["tar.gz", "zip"])
def test_an_archive_is_as_good_as_the_directory(suffix: str, tmp_path: Path) -> None:
    source = kraftlake.open(archived(directory_of("crash-torn"), tmp_path / f"logs.{suffix}"))
    assert check_images(source, "crash-torn", first=1000) >= 5
    assert check_local_changes(source, "crash-torn", first=90) >= 5
    assert source.cluster_id == kraftlake.open(directory_of("crash-torn")).cluster_id
    report = import_source(source, tmp_path / "lake")
    assert (report.records, report.snapshots, report.committed_to) == (3467, 1, 1724)
    assert list(kraftlake.open(tmp_path / "lake").records()) == list(source.records())


def test_a_segment_alone_and_a_snapshot_alone_are_sources(sample: str) -> None:
    directory = directory_of(sample)
    segment = kraftlake.open(directory / "00000000000000000000.log")
    at, path = expected_images(sample)[0]
    assert as_json(segment.image(at)) == expected(path)
    newest = max((s for s in kraftlake.open(directory).snapshots), key=lambda s: s.end_offset)
    snapshot = kraftlake.open(directory / newest.name)
    last = dict(expected_images(sample)).get(newest.end_offset - 1)
    assert snapshot.image().provenance.offset == newest.end_offset - 1
    if last is not None:
        assert as_json(snapshot.image()) == expected(last)
    assert [r.offset for r in snapshot.records()] == list(range(sum(b.record_count for b in newest.batches())))


@pytest.mark.parametrize("name", [*NAMES, "legacy-33"])
def test_every_record_that_the_dump_tool_printed(name: str, tmp_path: Path) -> None:
    directory = directory_of(name)
    import_source(directory, tmp_path / "lake")
    lake = kraftlake.open(tmp_path / "lake")
    checked = 0
    for segment in sorted(directory.glob("*.log")):
        wanted = dumped_records(name, segment.name)
        checked += len(wanted)
        if not wanted:
            continue
        offsets = {record["offset"] for record in wanted}
        for source in (kraftlake.open(directory), lake):
            records = source.records(min(offsets), min(max(offsets), source.end_offset - 1))
            printed = [record.to_json() for record in records if not record.control]
            assert [{k: r[k] for k in ("offset", "type", "version", "data")} for r in printed] == wanted
    assert checked > 400


def test_one_delta_over_the_whole_log_is_the_same_as_one_a_batch(sample: str) -> None:
    source = kraftlake.open(directory_of(sample))
    images: list[MetadataImage] = []
    loader = MetadataBatchLoader(publish=lambda delta, image, manifest: images.append(image))
    for batch in source.batches():
        loader.load_batch(batch)
        loader.flush()
    assert images[-1] == source.image(from_snapshot=False)


def test_the_legacy_log_lists_records_but_its_image_is_refused_with_its_metadata_version(tmp_path: Path) -> None:
    source = kraftlake.open(directory_of("legacy-33"))
    types = {record.type for record in source.records()}
    assert {"FENCE_BROKER_RECORD", "UNFENCE_BROKER_RECORD"} <= types
    with pytest.raises(ReplayError, match=r"(?i)offset 1,.*metadata.version"):
        source.image()
    report = import_source(source, tmp_path / "lake")
    assert (report.records, report.committed_to) == (478, 235)
