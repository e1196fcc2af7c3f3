from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.kafka_files.check import check_directory
from kraftlake.kafka_files.directory import open_directory
from kraftlake.kafka_files.faults import BrokenFileError
from kraftlake.kafka_files.stored_file import DiskFile
from kraftlake.kafka_files.writer import write_segment
from kraftlake.records.batch import encode_batch
from kraftlake.runtime.errors import KraftlakeError, NotASourceError
from tests.kafka_files.sample_files import (
    CRASH_TORN,
    KAFKA_44,
    NEWEST_44,
    SAMPLES,
    SEGMENTS_44,
    bulky,
    copy_of,
    expected,
    no_ops,
)


@pytest.mark.parametrize(
    ("sample", "end_offset", "snapshot_ends"),
    [("kafka-4.4", 5737, [0, 3038, 4593]), ("crash-torn", 3467, [0, 1724]), ("legacy-33", 478, [])],
)
def test_a_sample_opens_with_its_offsets_and_snapshots(sample: str, end_offset: int, snapshot_ends: list[int]) -> None:
    directory = open_directory(SAMPLES / sample / "log" / "__cluster_metadata-0")

    assert (directory.start_offset, directory.end_offset) == (0, end_offset)
    assert [snapshot.end_offset for snapshot in directory.snapshots] == snapshot_ends
    assert all(snapshot.finished for snapshot in directory.snapshots)
    assert directory.name == "__cluster_metadata-0"


@pytest.mark.parametrize("sample", ["kafka-4.4", "crash-torn", "legacy-33"])
def test_the_batches_are_those_that_kafka_counts(sample: str) -> None:
    directory = open_directory(SAMPLES / sample / "log")
    rows = [row[1:] for row in expected(sample, "offsets")["batches"]]

    found = [
        [b.position, b.size_in_bytes, b.base_offset, b.last_offset, b.epoch, b.timestamp, b.record_count, b.control]
        for b in directory.batches()
    ]

    assert found == rows


def test_a_log_directory_opens_the_metadata_directory_in_it() -> None:
    assert open_directory(KAFKA_44.parent).path == str(KAFKA_44)


def test_a_torn_tail_is_named_with_file_position_and_offset() -> None:
    torn = open_directory(CRASH_TORN).torn

    assert torn is not None
    assert (torn.file, torn.position, torn.offset) == ("00000000000000002265.log", 61042, 3467)
    assert torn.reason == "a batch of 72 bytes, only 35 of which are there"
    assert open_directory(KAFKA_44).torn is None


@given(offsets=st.tuples(st.integers(-1, 5740), st.integers(-1, 5740)))
def test_a_range_gives_the_batches_that_hold_any_offset_of_it(offsets: tuple[int, int]) -> None:
    from_offset, to_offset = offsets
    directory = open_directory(KAFKA_44)

    found = list(directory.batches(from_offset, to_offset))

    wanted = range(from_offset, to_offset + 1)
    assert found == [
        b for b in directory.batches() if wanted and b.last_offset >= wanted[0] and b.base_offset <= wanted[-1]
    ]


def test_of_segments_out_of_the_range_only_the_end_before_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    directory = open_directory(KAFKA_44)
    opened: set[str] = set()
    original = DiskFile.open
    monkeypatch.setattr(DiskFile, "open", lambda self: opened.add(self.name) or original(self))

    (batch,) = directory.batches(3000, 3001)
    assert batch.base_offset <= 3000
    assert batch.last_offset >= 3001
    assert opened == {SEGMENTS_44[0], SEGMENTS_44[1]}


def test_opening_reads_only_the_last_segment_and_ends_of_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: set[str] = set()
    original = DiskFile.open
    monkeypatch.setattr(DiskFile, "open", lambda self: opened.add(self.name) or original(self))

    open_directory(KAFKA_44)

    assert not opened & set(SEGMENTS_44[:3])


def test_a_log_whose_first_segments_are_gone_starts_above_zero(tmp_path: Path) -> None:
    folder = copy_of(KAFKA_44, tmp_path)
    (folder / SEGMENTS_44[0]).unlink()
    (folder / SEGMENTS_44[1]).unlink()

    directory = open_directory(folder)

    assert (directory.start_offset, directory.end_offset) == (3532, 5737)
    assert next(directory.batches()).base_offset == 3532


def test_a_hole_between_segments_is_named_by_its_offsets(tmp_path: Path) -> None:
    folder = copy_of(KAFKA_44, tmp_path)
    (folder / SEGMENTS_44[1]).unlink()
    directory = open_directory(folder)

    assert sum(1 for _ in directory.batches(0, 2026)) > 0
    assert [(one.first, one.last) for one in directory.broken_ranges] == [(2027, 3531)]
    for offsets in ((0, None), (2027, 2027), (2500, 2600), (3531, 3532)):
        with pytest.raises(BrokenFileError, match=r"0+3532\.log: .*offsets 2027 to 3531 are missing"):
            list(directory.batches(*offsets))
    assert next(directory.batches(3532)).base_offset == 3532


def test_segments_that_overlap_are_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "overlap"
    folder.mkdir()
    write_segment(folder / f"{0:020d}.log", [no_ops(0, 5), no_ops(5, 5)])
    write_segment(folder / f"{7:020d}.log", [no_ops(7, 3), no_ops(10, 3)])

    with pytest.raises(BrokenFileError, match=r"starts at offset 7, but the one before it goes up to 9") as caught:
        list(open_directory(folder).batches())
    assert (caught.value.file, caught.value.position, caught.value.offset) == (f"{7:020d}.log", 0, 7)
    directory = open_directory(folder)
    assert [(one.first, one.last) for one in directory.broken_ranges] == [(7, 9)]
    with pytest.raises(BrokenFileError, match="starts at offset 7"):
        list(directory.batches(8, 8))
    assert list(directory.bulk_batches(8, 8)) == []
    assert [batch.base_offset for batch in directory.batches(10)] == [10]


def test_a_segment_ends_where_its_last_batch_ends_however_large_that_is(tmp_path: Path) -> None:
    write_segment(tmp_path / f"{0:020d}.log", [no_ops(0, 5), bulky(5, 100)])
    write_segment(tmp_path / f"{105:020d}.log", [no_ops(105)])

    assert open_directory(tmp_path).broken_ranges == ()


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (no_ops(6), r"position 90, offset 5: offsets 5 to 5 are missing"),
        (no_ops(4), r"offset 5: a batch that starts at offset 4, which the log already has"),
        (no_ops(5, epoch=0), r"offset 5: a batch of epoch 0 after one of epoch 1"),
    ],
)
def test_a_batch_that_does_not_follow_is_an_error(tmp_path: Path, second: object, message: str) -> None:
    folder = tmp_path / "steps"
    folder.mkdir()
    batches = [no_ops(0, 5), second, no_ops(20, 1)]
    parts = [encode_batch(batch) for batch in batches]  # type: ignore[arg-type]
    (folder / f"{0:020d}.log").write_bytes(b"".join(parts))
    message = message.replace("position 90", f"position {len(parts[0])}")

    with pytest.raises(BrokenFileError, match=message):
        list(open_directory(folder).batches())


def test_a_segment_that_starts_at_another_offset_than_its_name_says_is_an_error(tmp_path: Path) -> None:
    (tmp_path / f"{0:020d}.log").write_bytes(encode_batch(no_ops(3)))

    with pytest.raises(BrokenFileError, match="offsets 0 to 2 are missing"):
        list(open_directory(tmp_path).batches())


@pytest.mark.parametrize("cut", [1, 37, 61, 71])
def test_a_torn_tail_in_a_segment_that_is_not_the_last_is_an_error(tmp_path: Path, cut: int) -> None:
    folder = copy_of(KAFKA_44, tmp_path)
    first = folder / SEGMENTS_44[0]
    os.truncate(first, first.stat().st_size - cut)

    directory = open_directory(folder)

    assert directory.torn is None
    with pytest.raises(BrokenFileError, match=r"0+\.log: broken at position \d+, offset 2026"):
        list(directory.batches())


def test_a_segment_cut_between_batches_leaves_a_hole(tmp_path: Path) -> None:
    folder = copy_of(KAFKA_44, tmp_path)
    first = folder / SEGMENTS_44[0]
    last = [row for row in expected("kafka-4.4", "offsets")["batches"] if row[0] == first.name][-1]
    os.truncate(first, last[1])

    with pytest.raises(BrokenFileError, match="offsets 2026 to 2026 are missing"):
        list(open_directory(folder).batches())


def test_a_bad_crc_in_the_middle_is_an_error_with_file_position_and_offset(tmp_path: Path) -> None:
    folder = copy_of(KAFKA_44, tmp_path)
    last = folder / SEGMENTS_44[3]
    content = bytearray(last.read_bytes())
    content[14037 - 72 + 70] ^= 1
    last.write_bytes(content)

    directory = open_directory(folder)

    assert (directory.end_offset, directory.torn) == (5737, None)
    assert sum(1 for _ in directory.batches(5488, 5734)) > 0
    with pytest.raises(BrokenFileError) as caught:
        list(directory.batches(5488))
    assert (caught.value.file, caught.value.position, caught.value.offset) == (SEGMENTS_44[3], 14037 - 72, 5735)
    assert "CRC" in str(caught.value)


def test_batches_before_the_range_are_passed_by_their_headers(tmp_path: Path) -> None:
    folder = copy_of(KAFKA_44, tmp_path)
    content = bytearray((folder / SEGMENTS_44[3]).read_bytes())
    content[70] ^= 1
    (folder / SEGMENTS_44[3]).write_bytes(content)

    assert [batch.last_offset for batch in open_directory(folder).batches(5736)] == [5736]


def test_a_broken_length_with_whole_batches_behind_it_is_no_torn_tail(tmp_path: Path) -> None:
    folder = copy_of(KAFKA_44, tmp_path)
    last = folder / SEGMENTS_44[3]
    content = bytearray(last.read_bytes())
    content[8:12] = b"\x7f\xff\xff\xff"
    last.write_bytes(content)

    directory = open_directory(folder)

    assert (directory.end_offset, directory.torn) == (5737, None)
    with pytest.raises(BrokenFileError, match="position 0, offset 5488: a batch length of 2147483647 bytes"):
        list(directory.batches(5488))


@given(cut=st.integers(0, 14109), zeros=st.sampled_from([0, 1, 16, 61, 4096]))
def test_any_cut_of_the_last_segment_leaves_all_whole_batches_usable(
    tmp_path_factory: pytest.TempPathFactory, cut: int, zeros: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    content = (KAFKA_44 / SEGMENTS_44[3]).read_bytes()[:cut]
    (folder / SEGMENTS_44[3]).write_bytes(content + bytes(zeros))
    rows = [row for row in expected("kafka-4.4", "offsets")["batches"] if row[0] == SEGMENTS_44[3]]
    original = (KAFKA_44 / SEGMENTS_44[3]).read_bytes()
    whole = [row for row in rows if (content + bytes(zeros)).startswith(original[: row[1] + row[2]])]

    directory = open_directory(folder)

    good_end = whole[-1][1] + whole[-1][2] if whole else 0
    assert [batch.position for batch in directory.batches()] == [row[1] for row in whole]
    assert directory.end_offset == (whole[-1][4] + 1 if whole else 5488)
    if good_end == len(content) + zeros:
        assert directory.torn is None
    else:
        assert directory.torn is not None
        assert (directory.torn.position, directory.torn.offset) == (good_end, directory.end_offset)


def test_a_bad_crc_in_the_very_last_batch_is_a_torn_tail(tmp_path: Path) -> None:
    folder = copy_of(KAFKA_44, tmp_path)
    last = folder / SEGMENTS_44[3]
    content = bytearray(last.read_bytes())
    content[-1] ^= 1
    last.write_bytes(content)

    directory = open_directory(folder)

    assert directory.end_offset == 5736
    assert directory.torn is not None
    assert (directory.torn.position, directory.torn.offset) == (14037, 5736)
    assert next(iter(directory.batches(5735))).last_offset == 5735


def test_an_empty_segment_is_a_fresh_roll(tmp_path: Path) -> None:
    folder = copy_of(KAFKA_44, tmp_path)
    (folder / f"{5737:020d}.log").touch()

    directory = open_directory(folder)

    assert (directory.end_offset, directory.torn) == (5737, None)
    assert len(list(directory.batches())) == len(expected("kafka-4.4", "offsets")["batches"])


def test_other_files_of_the_folder_are_ignored(tmp_path: Path) -> None:
    folder = copy_of(KAFKA_44, tmp_path)
    content = (folder / SEGMENTS_44[3]).read_bytes()
    for suffix in (".deleted", ".swap", ".cleaned", ".part"):
        (folder / f"{9000:020d}.log{suffix}").write_bytes(content)
    for suffix in (".deleted", ".part"):
        (folder / f"{9000:020d}-{2:010d}.checkpoint{suffix}").write_bytes(content)
    (folder / f"{4593:020d}-{2:010d}-1234.checkpoint.part").write_bytes(b"")
    (folder / "9000.log").write_bytes(b"")
    (folder / f"{9000:020d}.index").write_bytes(bytes(10))
    (folder / f"{9000:020d}.log").mkdir()

    directory = open_directory(folder)

    assert directory.end_offset == 5737
    assert len(directory.snapshots) == 3


def test_a_folder_of_snapshots_alone_is_a_log_that_starts_at_the_newest_end(tmp_path: Path) -> None:
    (tmp_path / NEWEST_44).write_bytes((KAFKA_44 / NEWEST_44).read_bytes())

    directory = open_directory(tmp_path)

    assert (directory.start_offset, directory.end_offset) == (4593, 4593)
    assert list(directory.batches()) == []


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_the_cluster_id_comes_from_the_nearest_meta_properties(tmp_path: Path, levels: int) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    (folder / SEGMENTS_44[3]).write_bytes((KAFKA_44 / SEGMENTS_44[3]).read_bytes())
    (tmp_path / "meta.properties").write_text("cluster.id=far\n")
    home = [folder, folder.parent, tmp_path][levels]
    (home / "meta.properties").write_text("#\n#Sat\nversion=1\n cluster.id : near \n")

    assert open_directory(folder).cluster_id == "near"


def test_without_meta_properties_the_cluster_id_is_unknown(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b" / "c"
    folder.mkdir(parents=True)
    (folder / SEGMENTS_44[3]).write_bytes((KAFKA_44 / SEGMENTS_44[3]).read_bytes())
    (folder / "meta.properties").write_bytes(b"\xff\xfe version=1")

    assert open_directory(folder).cluster_id is None


def test_what_is_appended_after_the_opening_is_not_seen(tmp_path: Path) -> None:
    folder = copy_of(KAFKA_44, tmp_path)
    directory = open_directory(folder)
    with (folder / SEGMENTS_44[3]).open("ab") as file:
        file.write(encode_batch(no_ops(5737, epoch=2)))

    assert [batch.last_offset for batch in directory.batches(5736)] == [5736]


def test_a_file_that_shrinks_or_vanishes_while_it_is_read_is_our_error(tmp_path: Path) -> None:
    folder = copy_of(KAFKA_44, tmp_path)
    directory = open_directory(folder)
    os.truncate(folder / SEGMENTS_44[3], 1000)
    (folder / SEGMENTS_44[0]).unlink()

    with pytest.raises(BrokenFileError, match="cut"):
        list(directory.batches(5488))
    with pytest.raises(NotASourceError, match="does not exist"):
        list(directory.batches())


@given(data=st.data())
def test_arbitrary_changes_raise_only_our_errors(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("mutated")
    for name in (SEGMENTS_44[2], SEGMENTS_44[3], NEWEST_44):
        content = bytearray((KAFKA_44 / name).read_bytes()[-20000:] if data.draw(st.booleans()) else b"")
        content = content or bytearray((KAFKA_44 / name).read_bytes()[: data.draw(st.integers(0, 40000))])
        for _ in range(data.draw(st.integers(0, 4))):
            at = data.draw(st.integers(0, len(content)))
            content[at : at + data.draw(st.integers(0, 80))] = data.draw(st.binary(max_size=80))
        (folder / name).write_bytes(content)
    directory = open_directory(folder)
    found = list(check_directory(directory))
    with contextlib.suppress(KraftlakeError):  # may assert nothing: any other error fails
        list(directory.batches())
        assert [problem for problem in found if not problem.in_snapshot] == []
    with contextlib.suppress(KraftlakeError):
        list(directory.batches(data.draw(st.integers(3532, 6000))))
