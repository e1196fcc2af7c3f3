from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import random
import stat
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.kafka_files.archives.archive import nodes_in_archives, open_archive
from kraftlake.kafka_files.archives.members import ArchiveLimits, unpacked_files
from kraftlake.kafka_files.check import check_directory
from kraftlake.kafka_files.directory import open_directory
from kraftlake.kafka_files.open_source import node_files, open_kafka_files
from kraftlake.kafka_files.sniffing.file_content import COMPRESSED as MAGICS
from kraftlake.kafka_files.sniffing.sniffing import sniff
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.kafka_files.stored_file import BLOCK_SIZE
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError, NotASourceError
from tests.kafka_files.sample_files import KAFKA_44, METADATA, SAMPLES, SEGMENTS_44, bulky, no_ops

Content: TypeAlias = dict[str, bytes]
Packer: TypeAlias = Callable[[Path, Content], Path]


def pack_tar(path: Path, content: Content, mode: str = "w", form: int = tarfile.PAX_FORMAT) -> Path:
    with tarfile.open(path, mode, format=form) as tar:  # type: ignore[call-overload]
        for name, data in content.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def pack_tar_gz(path: Path, content: Content) -> Path:
    return pack_tar(path, content, "w:gz")


def pack_tar_bz2(path: Path, content: Content) -> Path:
    return pack_tar(path, content, "w:bz2")


def pack_tar_xz(path: Path, content: Content) -> Path:
    return pack_tar(path, content, "w:xz")


def pack_tar_zst(path: Path, content: Content) -> Path:
    path.write_bytes(bytes(cramjam.zstd.compress(pack_tar(path, content).read_bytes())))
    return path


def pack_zip(path: Path, content: Content) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


COMPRESSED = [pack_tar_gz, pack_tar_bz2, pack_tar_xz, pack_tar_zst, pack_zip]
PACKERS = pytest.mark.parametrize("pack", [pack_tar, *COMPRESSED])
SEGMENT = encode_batch(no_ops(0, 3))
LOG = {f"{METADATA}/{0:020d}.log": SEGMENT}
LOG_AT_3 = {f"{METADATA}/{3:020d}.log": encode_batch(no_ops(3))}


def sample_content(sample: str, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    folder = SAMPLES / sample / "log"
    for file in sorted(folder.rglob("*"), reverse=True):
        if file.is_file():
            yield prefix + str(file.relative_to(folder)), file.read_bytes()


@PACKERS
@pytest.mark.parametrize("sample", ["kafka-4.4", "crash-torn", "legacy-33"])
@pytest.mark.parametrize("prefix", ["", "./", "bundle/node-1/data/"])
def test_an_archive_gives_the_same_as_the_directory(tmp_path: Path, pack: Packer, sample: str, prefix: str) -> None:
    directory = open_directory(SAMPLES / sample / "log" / METADATA)
    path = pack(tmp_path / "archive", dict(sample_content(sample, prefix)))

    archive = open_archive(path)

    assert sniff(path) is archive.kind is SourceKind.ARCHIVE
    assert (archive.start_offset, archive.end_offset) == (directory.start_offset, directory.end_offset)
    assert (archive.torn, archive.cluster_id, archive.name) == (directory.torn, directory.cluster_id, METADATA)
    assert list(archive.batches()) == list(directory.batches())
    assert list(archive.batches(100, 200)) == list(directory.batches(100, 200))
    assert archive.snapshots == directory.snapshots
    assert [list(s.batches()) for s in archive.snapshots] == [list(s.batches()) for s in directory.snapshots]
    assert list(check_directory(archive)) == list(check_directory(directory))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_long_names_of_every_tar_format_are_read(tmp_path: Path, form: int) -> None:
    folder = "/".join(["a-rather-long-folder"] * 6)
    path = pack_tar(tmp_path / "x.tar", {f"{folder}/{name}": data for name, data in LOG.items()}, form=form)

    assert open_archive(path).end_offset == 3


@PACKERS
def test_a_segment_of_many_blocks_is_read_at_any_position(tmp_path: Path, pack: Packer) -> None:
    batches = [bulky(offset, 300) for offset in range(0, 3000, 300)]
    content = b"".join(map(encode_batch, batches))
    assert len(content) > 2 * BLOCK_SIZE
    archive = open_archive(pack(tmp_path / "x", {f"{METADATA}/{0:020d}.log": content}))

    assert list(archive.batches(2000, 2001)) == [batches[6]]
    assert list(archive.batches()) == batches


@PACKERS
def test_files_without_a_folder_are_a_directory_too(tmp_path: Path, pack: Packer) -> None:
    path = pack(tmp_path / "x", {f"{0:020d}.log": SEGMENT, "meta.properties": b"cluster.id=abc\n"})

    archive = open_archive(path)

    assert (archive.end_offset, archive.cluster_id, archive.name) == (3, "abc", "x")


@PACKERS
def test_the_metadata_directory_is_found_among_data_topics(tmp_path: Path, pack: Packer) -> None:
    data = bytearray(SEGMENT)
    data[43:51] = (9).to_bytes(8, "big")
    content = {f"data/foo-0/{0:020d}.log": bytes(data), **{f"data/{name}": file for name, file in LOG.items()}}
    renamed = {f"data/foo-0/{0:020d}.log": bytes(data), f"data/mine/{0:020d}.log": SEGMENT}

    assert open_archive(pack(tmp_path / "a", content)).end_offset == 3
    assert open_archive(pack(tmp_path / "b", renamed)).name == "mine"
    with pytest.raises(NotASourceError, match="only data topics' segments"):
        open_archive(pack(tmp_path / "c", {f"data/foo-0/{0:020d}.log": bytes(data)}))


@PACKERS
def test_several_metadata_directories_are_named(tmp_path: Path, pack: Packer) -> None:
    content = {f"node-{n}/{name}": data for n in (1, 2) for name, data in LOG.items()}
    message = (
        rf"2 metadata directories \(node \? in node-1/{METADATA}, node \? in node-2/{METADATA}\): name one of these"
    )

    with pytest.raises(NotASourceError, match=message):
        open_archive(pack(tmp_path / "x", content))


@PACKERS
def test_of_several_nodes_one_is_chosen_by_its_id(tmp_path: Path, pack: Packer) -> None:
    content = {f"data-{n}/{METADATA}/{0:020d}.log": encode_batch(no_ops(0, n)) for n in (1, 2)}
    content |= {f"data-{n}/meta.properties": f"node.id={n}\ncluster.id=abc".encode() for n in (1, 2)}
    content |= {f"data-1/{METADATA}/quorum-state": b"{}"}
    path = pack(tmp_path / "x", content)

    assert [open_archive(path, node=n).end_offset for n in (1, 2)] == [1, 2]
    assert [(one.properties.node_id, one.quorum_state) for one in node_files(path)] == [(1, b"{}"), (2, None)]
    with pytest.raises(NotASourceError, match="choose one with --node ID"):
        open_archive(path)
    with pytest.raises(NotASourceError, match=r"no metadata log of node 3: there is node 1 in data-1/.*, node 2 in"):
        open_archive(path, node=3)


@PACKERS
@pytest.mark.parametrize("content", [{}, {"readme.txt": b"hello"}])
def test_an_archive_of_other_things_is_refused(tmp_path: Path, pack: Packer, content: Content) -> None:
    with pytest.raises((NotASourceError, CorruptDataError)):
        open_archive(pack(tmp_path / "x", content))


CODECS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: bytes(cramjam.zstd.compress(data)),
}


@pytest.mark.parametrize("suffix", CODECS)
def test_a_file_that_is_compressed_alone_is_read_as_what_it_unpacks_to(tmp_path: Path, suffix: str) -> None:
    for name in (SEGMENTS_44[0], "00000000000000004593-0000000002.checkpoint"):
        packed = tmp_path / f"{name}.{suffix}"
        packed.write_bytes(CODECS[suffix]((KAFKA_44 / name).read_bytes()))
        unpacked, plain = open_kafka_files(packed), open_kafka_files(KAFKA_44 / name)

        assert (unpacked.kind, unpacked.name, unpacked.end_offset) == (plain.kind, name, plain.end_offset)
        assert list(unpacked.batches()) == list(plain.batches())
        assert [list(one.batches()) for one in unpacked.snapshots] == [list(one.batches()) for one in plain.snapshots]


@pytest.mark.parametrize("suffix", CODECS)
def test_a_compressed_file_of_something_else_is_refused(tmp_path: Path, suffix: str) -> None:
    for content in (b"", b"hello", bytes(10_000), gzip.compress(SEGMENT)):
        (tmp_path / "x").write_bytes(CODECS[suffix](content))

        with pytest.raises(NotASourceError, match="is compressed, and what it unpacks to is"):
            open_archive(tmp_path / "x")


@pytest.mark.parametrize("suffix", CODECS)
def test_a_compressed_file_that_unpacks_to_too_much_is_refused(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "x.log").write_bytes(CODECS[suffix](SEGMENT + bytes(3_000_000)))

    assert open_archive(tmp_path / "x.log").end_offset == 3
    with pytest.raises(CorruptDataError, match="zip bomb"):
        open_archive(tmp_path / "x.log", ArchiveLimits(unpacked=1_000_000))
    with pytest.raises(CorruptDataError, match="too large to be read compressed"):
        open_archive(tmp_path / "x.log", ArchiveLimits(held=100))


@pytest.mark.parametrize("suffix", CODECS)
def test_streams_one_after_the_other_are_one_file(tmp_path: Path, suffix: str) -> None:
    """As parallel compressors write them, and as files that were appended to each other."""
    whole = encode_batch(no_ops(0, 300)) + encode_batch(no_ops(300, 300))
    cut = len(whole) // 2
    (tmp_path / "x.log").write_bytes(CODECS[suffix](whole[:cut]) + CODECS[suffix](whole[cut:]))

    assert open_archive(tmp_path / "x.log").end_offset == 600


def test_an_xz_stream_that_asks_for_very_much_memory_is_refused(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 30}]
    compressor = lzma.LZMACompressor(filters=filters)
    (tmp_path / "x.xz").write_bytes(compressor.compress(SEGMENT) + compressor.flush())
    with pytest.raises(CorruptDataError, match="Memory usage limit"):
        open_archive(tmp_path / "x.xz")


@pytest.mark.parametrize("suffix", CODECS)
def test_a_log_whose_files_are_compressed_one_by_one_is_the_log(tmp_path: Path, suffix: str) -> None:
    """In a folder as in each kind of archive."""
    plain = open_directory(KAFKA_44)
    content = {f"{name}.{suffix}": CODECS[suffix](data) for name, data in sample_content("kafka-4.4", "copied/")
               if name.endswith((".log", ".checkpoint"))}  # fmt: skip
    content |= {"copied/meta.properties": b"cluster.id=abc\nnode.id=7", f"copied/{METADATA}/x.log.gz": b"of something"}
    for name, data in content.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    packed = [pack(tmp_path / pack.__name__, content) for pack in (pack_tar, pack_tar_gz, pack_zip)]
    renamed = (tmp_path / "copied" / METADATA).rename(tmp_path / "copied" / "md")
    for path in (renamed, renamed.parent, *packed):
        read = open_kafka_files(path)
        assert (read.start_offset, read.end_offset, read.cluster_id) == (0, plain.end_offset, "abc")
        assert [segment.file.name for segment in read.segments] == [*SEGMENTS_44]
        assert list(read.batches()) == list(plain.batches())
        assert [one.name for one in read.snapshots] == [one.name for one in plain.snapshots]
        assert plain.may_grow
        assert not read.may_grow
        assert all(list(one.batches()) for one in read.snapshots)


@pytest.mark.parametrize("suffix", CODECS)
def test_a_compressed_segment_among_others_keeps_within_the_limits(tmp_path: Path, suffix: str) -> None:
    bomb = {f"{METADATA}/{0:020d}.log.{suffix}": CODECS[suffix](SEGMENT + bytes(3_000_000))}
    for pack in (pack_tar, pack_tar_gz, pack_zip):
        path = pack(tmp_path / "x", bomb)
        assert open_archive(path).end_offset == 3
        with pytest.raises(CorruptDataError, match="zip bomb"):
            open_archive(path, ArchiveLimits(unpacked=1_000_000))
        with pytest.raises(CorruptDataError, match="too large to be read compressed"):
            open_archive(path, ArchiveLimits(held=100))
    ((name, data),) = bomb.items()
    (tmp_path / METADATA).mkdir()
    (tmp_path / name).write_bytes(data)
    names = [Path(name).name]
    assert unpacked_files(tmp_path / METADATA, names)[0].size == len(SEGMENT) + 3_000_000
    with pytest.raises(CorruptDataError, match=rf"the folder {tmp_path / METADATA} is refused: its .* zip bomb"):
        unpacked_files(tmp_path / METADATA, names, ArchiveLimits(unpacked=1_000_000))


@pytest.mark.parametrize("suffix", CODECS)
def test_a_compressed_segment_that_is_broken_is_named(tmp_path: Path, suffix: str) -> None:
    name = f"{0:020d}.log.{suffix}"
    for data, why in (
        (CODECS[suffix](encode_batch(bulky(0, 9)))[:-9], rf"{name} of the archive .* is (cut short|broken)"),
        (SEGMENT, rf"{name} of the archive .* is not compressed, though its name says so"),
    ):
        for pack in (pack_tar, pack_tar_gz, pack_zip):
            with pytest.raises(CorruptDataError, match=why):
                open_archive(pack(tmp_path / "x", {f"{METADATA}/{name}": data, **LOG_AT_3}))
        (tmp_path / METADATA).mkdir(exist_ok=True)
        (tmp_path / METADATA / name).write_bytes(data)
        assert sniff(tmp_path / METADATA) is SourceKind.DIRECTORY
        with pytest.raises(CorruptDataError, match=why.replace("archive", "folder")):
            open_directory(tmp_path / METADATA)


def test_a_segment_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    """One may be newer than the other."""
    content = {**LOG, f"{METADATA}/{0:020d}.log.gz": gzip.compress(SEGMENT)}
    (tmp_path / METADATA).mkdir()
    for name, data in content.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(CorruptDataError, match=r"holds both 0{20}\.log and 0{20}\.log\.gz"):
        open_directory(tmp_path)
    with pytest.raises(CorruptDataError, match="has two members"):
        open_archive(pack_tar(tmp_path / "x", content))


def test_a_data_topic_that_is_compressed_is_no_metadata(tmp_path: Path) -> None:
    values = RecordBatch(base_offset=0, epoch=1, timestamp=1, values=(b"hello world",), timestamps=(1,))
    (tmp_path / "foo-0").mkdir()
    (tmp_path / "foo-0" / f"{0:020d}.log.gz").write_bytes(gzip.compress(encode_batch(values)))
    with pytest.raises(NotASourceError, match="the folder of a data topic's partition"):
        sniff(tmp_path / "foo-0")
    with pytest.raises(NotASourceError, match="folder without segments"):
        sniff(tmp_path)


def test_archives_in_a_folder_are_searched_together(tmp_path: Path) -> None:
    folder = tmp_path / "case" / "2026"
    folder.mkdir(parents=True)
    for node, (pack, name) in enumerate(((pack_tar_gz, "a.tgz"), (pack_zip, "b.zip"), (pack_tar, "c.tar")), start=1):
        log = {
            f"{METADATA}/{0:020d}.log": encode_batch(no_ops(0, node)),
            "meta.properties": b"cluster.id=abc\nnode.id=%d" % node,
        }
        pack(folder / name, log)
    pack_tar(folder / "logs-of-the-jvm.tar", {"gc.log": b"hello"})
    (folder / "empty.tar.gz").write_bytes(b"")
    case = folder.parent
    assert sniff(case) is SourceKind.DIRECTORY
    assert [open_kafka_files(case, node=node).end_offset for node in (1, 2, 3)] == [1, 2, 3]
    with pytest.raises(NotASourceError, match=rf"3 metadata directories \(node 1 in {folder}/a.tgz/{METADATA}, node 2"):
        open_kafka_files(case)
    (folder / "c.tar").write_bytes(pack_tar_gz(tmp_path / "x", LOG).read_bytes()[:60])
    broken = node_files(case)[2]
    assert (broken.folder, broken.archive) == (f"{folder}/c.tar", f"{folder}/c.tar")
    with pytest.raises(CorruptDataError, match=r"c\.tar is cut short"):
        broken.open()
    assert open_kafka_files(case, node=2).end_offset == 2


def test_archives_in_a_folder_share_the_limits(tmp_path: Path) -> None:
    paths = [pack_tar_gz(tmp_path / f"{n}.tgz", {f"{METADATA}/{0:020d}.log": encode_batch(bulky(0, 9))}) for n in "abc"]
    assert [one.open().end_offset for one in nodes_in_archives(paths)] == [9, 9, 9]
    for limits in (ArchiveLimits(unpacked=20_000), ArchiveLimits(members=2)):
        *whole, last = nodes_in_archives(paths, limits)
        assert [one.open().end_offset for one in whole] == [9, 9]
        with pytest.raises(CorruptDataError, match="is refused"):
            last.open()


def test_archives_without_a_log_say_what_they_hold(tmp_path: Path) -> None:
    pack_tar(tmp_path / "a.tar", {"gc.log": b"hello"})
    with pytest.raises(NotASourceError, match=r"the archive .*a\.tar holds no segments"):
        open_kafka_files(tmp_path)
    outer = pack_zip(tmp_path / "outer", {"x/node-1.tar.gz": b"", "x/node-2.tar.gz": b""})
    with pytest.raises(
        NotASourceError, match=r"but 2 archives, x/node-1\.tar\.gz first: unpack it, and name the folder"
    ):
        open_archive(outer)


@PACKERS
@pytest.mark.parametrize(
    ("name", "why"),
    [
        (f"/etc/{0:020d}.log", "absolute"),
        (f"../{0:020d}.log", "outside"),
        ("a/../../b", "outside"),
        ("a/..", "outside"),
        ("C:/x", "absolute or foreign"),
        ("a\\b", "absolute or foreign"),
    ],
)
def test_members_that_point_elsewhere_are_refused(tmp_path: Path, pack: Packer, name: str, why: str) -> None:
    with pytest.raises(CorruptDataError, match=f"is refused: its member .* {why}"):
        open_archive(pack(tmp_path / "x", {**LOG, name: b""}))


@pytest.mark.parametrize("mode", ["w", "w:gz"])
@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE])
def test_links_and_devices_in_a_tar_are_refused(tmp_path: Path, mode: str, kind: bytes) -> None:
    path = pack_tar(tmp_path / "x", LOG, mode)
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        info = tarfile.TarInfo("link")
        info.type = kind
        info.linkname = "/etc/passwd"
        tar.addfile(info)

    with pytest.raises(CorruptDataError, match="'link' is a link or a special file"):
        open_archive(path)


def test_a_member_of_a_zip_without_a_name_is_passed_over(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x", "w") as archive:
        archive.writestr(zipfile.ZipInfo("\0"), b"")
        for name, data in LOG.items():
            archive.writestr(name, data)
    assert open_archive(tmp_path / "x").end_offset == open_archive(pack_zip(tmp_path / "whole", LOG)).end_offset


def test_links_in_a_zip_are_refused(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "x", "w") as archive:
        archive.writestr(info, "/etc/passwd")

    with pytest.raises(CorruptDataError, match="'link' is a link or a special file"):
        open_archive(tmp_path / "x")


@PACKERS
def test_too_many_members_are_refused(tmp_path: Path, pack: Packer) -> None:
    path = pack(tmp_path / "x", {**LOG, "a": b"", "b": b"", "c": b""})

    assert open_archive(path, ArchiveLimits(members=4)).end_offset == 3
    with pytest.raises(CorruptDataError, match="more than 3 members"):
        open_archive(path, ArchiveLimits(members=3))


@pytest.mark.parametrize("pack", COMPRESSED)
def test_a_bomb_is_refused_by_what_it_unpacks_to(tmp_path: Path, pack: Packer) -> None:
    path = pack(tmp_path / "x", {**LOG, "zeros": bytes(3_000_000)})

    assert open_archive(path).end_offset == 3
    with pytest.raises(CorruptDataError, match="zip bomb"):
        open_archive(path, ArchiveLimits(ratio=200, ratio_from=1_000_000))
    with pytest.raises(CorruptDataError, match="zip bomb"):
        open_archive(path, ArchiveLimits(unpacked=1_000_000))


@pytest.mark.parametrize("pack", [pack_tar_gz, pack_tar_zst, pack_zip])
def test_a_large_archive_takes_little_memory(tmp_path: Path, pack: Packer) -> None:
    log = f"{METADATA}/{0:020d}.log"
    path = pack(tmp_path / "x", {"zeros": bytes(40_000_000), log: encode_batch(no_ops(0)) + bytes(40_000_000)})

    tracemalloc.start()
    try:
        archive = open_archive(path)
        assert archive.end_offset == 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000


@pytest.mark.parametrize("pack", COMPRESSED)
def test_a_log_that_takes_too_much_memory_is_refused(tmp_path: Path, pack: Packer) -> None:
    path = pack(tmp_path / "x", dict(sample_content("kafka-4.4")))

    with pytest.raises(CorruptDataError, match="unpack it and name the directory"):
        open_archive(path, ArchiveLimits(held=10_000))


def test_a_tar_whose_header_promises_more_than_it_has_is_refused(tmp_path: Path) -> None:
    for mode in ("w", "w:gz"):
        raw = bytearray(pack_tar(tmp_path / "x", LOG).read_bytes())
        raw[124:136] = b"77777777777\0"
        raw[148:156] = b" " * 8
        raw[148:156] = b"%06o\0 " % sum(raw[:512])
        (tmp_path / "y").write_bytes(raw if mode == "w" else gzip.compress(raw))

        with pytest.raises(CorruptDataError, match=r"bomb|ends inside"):
            open_archive(tmp_path / "y")


def test_a_huge_extended_header_is_not_read(tmp_path: Path) -> None:
    for kind in (b"x", b"L", b"K", b"g"):
        info = tarfile.TarInfo("header")
        info.type, info.size = kind, 2_000_000
        raw = info.tobuf(tarfile.USTAR_FORMAT) + bytes(2_000_896)
        (tmp_path / "x").write_bytes(gzip.compress(raw))

        with pytest.raises(CorruptDataError, match="an extended header in it takes 2,000,000 bytes"):
            open_archive(tmp_path / "x")


@pytest.mark.parametrize("pax", [b"9999 path=x\n", b"12 pathx\n", b"x", b"0 path=x\n", b"11 size=-1\n", b"3 =\n" * 4])
def test_a_broken_extended_header_is_refused(tmp_path: Path, pax: bytes) -> None:
    info = tarfile.TarInfo("header")
    info.type, info.size = b"x", len(pax)
    raw = info.tobuf(tarfile.USTAR_FORMAT) + pax.ljust(512, b"\0") + pack_tar(tmp_path / "x", LOG).read_bytes()
    (tmp_path / "x").write_bytes(raw)

    with pytest.raises(CorruptDataError, match="broken extended header"):
        open_archive(tmp_path / "x")


def test_a_sparse_index_is_skipped_and_a_sparse_segment_refused(tmp_path: Path) -> None:
    def sparse(name: str) -> bytes:
        info = tarfile.TarInfo(name)
        info.type, info.size = b"S", 512
        header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
        header[482] = 1  # a map of the holes goes on in the next block
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
        return bytes(header) + bytes(512) + bytes(512)

    rest = pack_tar(tmp_path / "x", LOG).read_bytes()
    (tmp_path / "x").write_bytes(sparse(f"{METADATA}/{0:020d}.index") + rest)
    assert open_archive(tmp_path / "x").end_offset == 3
    (tmp_path / "x").write_bytes(sparse(f"{METADATA}/{9:020d}.log") + rest)
    with pytest.raises(CorruptDataError, match="sparse file"):
        open_archive(tmp_path / "x")


def test_a_sparse_map_without_end_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.type = b"S"
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[482] = 1
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    (tmp_path / "x").write_bytes(gzip.compress(bytes(header) + b"\1" * 6_000_000))

    with pytest.raises(CorruptDataError, match="a map of more than"):
        open_archive(tmp_path / "x")


def test_a_name_that_comes_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with tarfile.open(path, "w") as tar:
        for _ in range(2):
            info = tarfile.TarInfo(next(iter(LOG)))
            info.size = len(SEGMENT)
            tar.addfile(info, io.BytesIO(SEGMENT))

    with pytest.raises(CorruptDataError, match="it has two members"):
        open_archive(path)


def test_an_encrypted_or_strangely_packed_zip_is_refused(tmp_path: Path) -> None:
    path = pack_zip(tmp_path / "x", LOG)
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(raw)
    with pytest.raises(CorruptDataError, match="is encrypted"):
        open_archive(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr(*next(iter(LOG.items())))
    with pytest.raises(CorruptDataError, match="other than deflate"):
        open_archive(path)


@PACKERS
def test_an_archive_that_is_cut_short_is_refused(tmp_path: Path, pack: Packer) -> None:
    path = pack(tmp_path / "x", dict(sample_content("crash-torn")))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    with pytest.raises(CorruptDataError, match=r"the archive .* (cut short|broken|ends inside|refused)"):
        open_archive(path)


@PACKERS
def test_an_archive_that_is_cut_inside_a_member_that_is_passed_over_is_refused(tmp_path: Path, pack: Packer) -> None:
    index = random.Random(1).randbytes(100_000)
    path = pack(tmp_path / "x", {**LOG, f"{METADATA}/{0:020d}.index": index, **LOG_AT_3})
    path.write_bytes(path.read_bytes()[:50_000])

    with pytest.raises(CorruptDataError, match=r"the archive .* (cut short|broken|ends inside)"):
        open_archive(path)


def test_a_hostile_name_is_escaped_in_the_message(tmp_path: Path) -> None:
    with pytest.raises(CorruptDataError) as caught:
        open_archive(pack_tar(tmp_path / "x", {"../\x1b[31m\n": b""}))

    assert "\x1b" not in str(caught.value)
    assert "\n" not in str(caught.value)


@PACKERS
@given(data=st.data())
def test_arbitrary_changes_raise_only_our_errors(
    pack: Packer, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = pack(tmp_path_factory.mktemp("mutated") / "x", {**LOG, "meta.properties": b"cluster.id=a"})
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(content)))
        content[at : at + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
    path.write_bytes(content)
    with contextlib.suppress(KraftlakeError):
        list(open_archive(path).batches())


@given(
    content=st.binary(max_size=2000),
    magic=st.sampled_from([b"", b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b\x08", *MAGICS]),
)
def test_arbitrary_bytes_raise_only_our_errors(
    content: bytes, magic: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("any") / "x"
    path.write_bytes(magic + content)
    with contextlib.suppress(KraftlakeError):
        list(open_archive(path).batches())
