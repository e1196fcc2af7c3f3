"""The broken logs of docs/incidents.md, made of those in samples/."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from kraftlake.image.broker_partitions import hosted_partitions
from kraftlake.kafka_files import write_segment
from kraftlake.replay import LogSource
from tests.cli.running import DIRECTORY, LEGACY

_SEGMENT = "00000000000000000000.log"


def cut(folder: Path, last: str) -> None:
    """A copy of the sample that ends with an offset: what an operator finds at that moment."""
    md = folder / "md"
    md.mkdir()
    batches = [batch for batch in LogSource.open(DIRECTORY).batches() if batch.last_offset <= int(last)]
    write_segment(md / _SEGMENT, batches)
    shutil.copy(DIRECTORY.parent / "meta.properties", md)


def flipped(folder: Path, offset: str) -> None:
    """A copy of the sample with one wrong bit in the batch that holds an offset."""
    md = folder / "md"
    shutil.copytree(DIRECTORY, md)
    shutil.copy(DIRECTORY.parent / "meta.properties", md)
    position = next(iter(LogSource.open(DIRECTORY).batches(int(offset), int(offset)))).position
    segment = md / _SEGMENT
    content = bytearray(segment.read_bytes())
    content[position + 70] ^= 1
    segment.write_bytes(content)


def restored(folder: Path, _: str) -> None:
    """The sample on a disk that was formatted anew: its directory has another id."""
    md = folder / "md"
    shutil.copytree(DIRECTORY, md)
    lines = (DIRECTORY.parent / "meta.properties").read_text().splitlines()
    other = "directory.id=2g0VtXhGTOKn3JdGT9yPxw"
    (md / "meta.properties").write_text("\n".join(other if "directory.id" in line else line for line in lines) + "\n")


def legacy(folder: Path, _: str) -> None:
    """The log of a Kafka 3.3 cluster, which Kafka 4 does not load."""
    shutil.copytree(LEGACY, folder / "md")


def folders(folder: Path, last: str) -> None:
    """A cut log, and in `d1` the folders of broker 1: a wrong topic id, a stray, one that is missing."""
    cut(folder, last)
    image = LogSource.open(folder / "md").replay().image
    cluster_id = LogSource.open(folder / "md").cluster_id
    d1 = folder / "d1"
    hosted = sorted(hosted_partitions(image.topics, 1), key=lambda one: one[:2])
    for number, (topic, partition, _) in enumerate(hosted):
        known = image.topics.get_topic(topic)
        assert known is not None
        if number:
            (d1 / f"{topic}-{partition}").mkdir(parents=True)
            id_ = known.id if number > 1 else "xQj5Jw5BQmS5mjX9R2o0hA"
            (d1 / f"{topic}-{partition}" / "partition.metadata").write_text(f"version: 0\ntopic_id: {id_}\n")
    (d1 / "old-orders-0").mkdir()
    (d1 / "meta.properties").write_text(f"version=1\ncluster.id={cluster_id}\nnode.id=1\n")


BROKEN: Mapping[str, Callable[[Path, str], None]] = {
    "cut": cut, "flipped": flipped, "restored": restored, "legacy": legacy, "folders": folders,
}  # fmt: skip
"""The ways to break a log, by the words that docs/incidents.md has for them."""
