"""The real logs of the samples, in every form that a source can have, and what Kafka's own classes made of them."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import tarfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
METADATA = "__cluster_metadata-0"
NAMES = ("kafka-4.4", "crash-torn")


def directory_of(sample: str) -> Path:
    return SAMPLES / sample / "log" / METADATA


@cache
def expected(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def expected_images(sample: str) -> list[tuple[int, Path]]:
    files = (SAMPLES / sample / "expected").glob("image-*.json.gz")
    return sorted((int(re.findall(r"\d+", path.name)[0]), path) for path in files)


def expected_local_changes(sample: str) -> list[tuple[int, int, int, Path]]:
    """From, to, broker, file."""
    found = []
    for path in (SAMPLES / sample / "expected").glob("local-*.json.gz"):
        first, last, broker = map(int, re.findall(r"\d+", path.name))
        found.append((first, last, broker, path))
    return sorted(found)


def dumped_records(sample: str, file: str) -> list[dict[str, Any]]:
    """The records that the dump tool printed as JSON, control records left out: offset, type, version, data."""
    text = gzip.decompress((SAMPLES / sample / "expected" / f"dump-{file}.txt.gz").read_bytes()).decode()
    records = []
    for line in text.splitlines():
        match = re.search(r"\| offset: (\d+) .* payload: (\{.*\})$", line)
        if match:
            records.append({"offset": int(match[1]), **json.loads(match[2])})
    return records


def copy_of(sample: str, folder: Path) -> Path:
    """A copy that a test may spoil, meta.properties beside it; returns the directory."""
    shutil.copytree(SAMPLES / sample / "log", folder)
    return folder / METADATA


def without_first_segments(sample: str, folder: Path, start: int) -> Path:
    """A copy that starts at the segment with base offset `start`, older snapshots removed as Kafka does."""
    directory = copy_of(sample, folder)
    for path in directory.iterdir():
        number = re.match(r"(\d{20})", path.name)
        if number and int(number[1]) < start:
            path.unlink()
    return directory


def archived(directory: Path, archive: Path) -> Path:
    """The directory and the meta.properties beside it in a `.tar.gz` or `.zip`."""
    members = [*sorted(directory.iterdir()), directory.parent / "meta.properties"]
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
            for member in members:
                target.write(member, member.relative_to(directory.parent).as_posix())
    else:
        with tarfile.open(archive, "w:gz") as target:
            for member in members:
                target.add(member, member.relative_to(directory.parent).as_posix())
    return archive
