"""Bad input gets one clear sentence, an error of ours, and changes nothing."""

from __future__ import annotations

import contextlib
import io
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

import kraftlake
from kraftlake.kafka_files.writer import write_segment
from kraftlake.replay.imports.import_log import import_source
from kraftlake.runtime.errors import KraftlakeError, LakeError, NotASourceError, OffsetError
from tests.replay.made_logs import small_log, write_directory
from tests.replay.sample_logs import directory_of

Make = Callable[[Path], Path]


def missing(folder: Path) -> Path:
    return folder / "missing"


def empty_folder(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


def empty_file(folder: Path) -> Path:
    (folder / "empty.log").touch()
    return folder / "empty.log"


def other_file(folder: Path) -> Path:
    (folder / "notes.txt").write_text("hello" * 100)
    return folder / "notes.txt"


def producer_snapshot(folder: Path) -> Path:
    return Path(shutil.copy(directory_of("kafka-4.4") / "00000000000000002027.snapshot", folder))


def data_topic_segment(folder: Path) -> Path:
    from kraftlake.records.batch import RecordBatch, encode_batch

    values = (b'{"order": 1}', b"plain text")
    batch = RecordBatch(base_offset=0, epoch=0, timestamp=5, values=values, timestamps=(5, 5))
    path = folder / "orders-0" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(encode_batch(batch))
    return path


def data_topic_folder(folder: Path) -> Path:
    return data_topic_segment(folder).parent


def other_delta_table(folder: Path) -> Path:
    write_deltalake(folder / "table", pa.table({"a": [1, 2]}))
    return folder / "table"


def delta_table_named_log(folder: Path) -> Path:
    write_deltalake(folder / "lakelike" / "log", pa.table({"a": [1, 2]}))
    return folder / "lakelike"


def climbing_archive(folder: Path) -> Path:
    with tarfile.open(folder / "evil.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("../../__cluster_metadata-0/00000000000000000000.log")
        member.size = 4
        archive.addfile(member, io.BytesIO(b"boom"))
    return folder / "evil.tar.gz"


BAD: list[Make] = [
    missing,
    empty_folder,
    empty_file,
    other_file,
    producer_snapshot,
    data_topic_segment,
    data_topic_folder,
    other_delta_table,
    delta_table_named_log,
    climbing_archive,
]


def one_sentence(error: KraftlakeError, named: str) -> None:
    text = str(error)
    assert "\n" not in text
    assert 20 < len(text) < 500
    assert named in text
    assert error.exit_code in (1, 2)


@pytest.mark.parametrize("make", BAD)
def test_what_is_no_source_is_named_and_makes_no_lake(make: Make, tmp_path: Path) -> None:
    path = make(tmp_path)
    with pytest.raises(KraftlakeError) as opened:
        kraftlake.open(path).image()
    one_sentence(opened.value, path.name)
    lake = tmp_path / "lake"
    with pytest.raises(KraftlakeError) as imported:
        import_source(path, lake)
    one_sentence(imported.value, path.name)
    assert not lake.exists()


@pytest.mark.parametrize("make", [make for make in BAD if make is not delta_table_named_log])
def test_a_path_that_is_no_source_and_a_broken_source_raise_different_errors(make: Make, tmp_path: Path) -> None:
    path = make(tmp_path)
    if make is climbing_archive:
        with pytest.raises(KraftlakeError):
            kraftlake.open(path)
    else:
        with pytest.raises(NotASourceError):
            kraftlake.open(path)


@pytest.mark.parametrize("make", [other_delta_table, delta_table_named_log, other_file, data_topic_folder])
def test_what_is_no_lake_is_not_imported_into(make: Make, tmp_path: Path) -> None:
    place = make(tmp_path)
    before = {p: p.stat().st_mtime_ns for p in [place, *place.rglob("*")]}
    with pytest.raises(LakeError) as refused:
        import_source(directory_of("crash-torn"), place)
    one_sentence(refused.value, place.name)
    assert {p: p.stat().st_mtime_ns for p in [place, *place.rglob("*")]} == before


@pytest.mark.parametrize("offset", [-7, 5737, 2**62])
def test_offsets_outside_of_the_sample_name_what_it_holds(offset: int) -> None:
    source = kraftlake.open(directory_of("kafka-4.4"))
    asked: list[Callable[[], object]] = [
        lambda: source.image(offset),
        lambda: source.records(offset),
        lambda: source.diff(0, offset),
        lambda: source.local_changes(1, 0, offset) if offset > 0 else source.image(offset),
    ]
    for ask in asked:
        with pytest.raises(OffsetError, match="0 to 5736"):
            ask()


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("segment") / "00000000000000000000.log"
    write_segment(path, small_log())
    return path.read_bytes()


@given(position=st.integers(0, 5000), change=st.binary(min_size=1, max_size=20), cut=st.booleans())
def test_a_spoiled_log_is_refused_or_read_and_nothing_else(
    position: int, change: bytes, cut: bool, segment: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = position % len(segment)
    spoiled = segment[:place] + change + (b"" if cut else segment[place + len(change) :])
    folder = tmp_path_factory.mktemp("spoiled")
    directory = write_directory(folder, small_log())
    (directory / "00000000000000000000.log").write_bytes(spoiled)
    with contextlib.suppress(KraftlakeError):
        source = kraftlake.open(directory)
        assert source.verify().end_offset == source.end_offset
        assert [record.offset for record in source.records()] == list(range(source.end_offset))
        assert source.image().provenance.offset == source.end_offset - 1
    lake = folder / "lake"
    try:
        report = import_source(directory, lake)
    except KraftlakeError:
        assert not lake.exists()
    else:
        assert list(kraftlake.open(lake).records()) == list(kraftlake.open(directory).records())
        assert report.end_offset <= 18
