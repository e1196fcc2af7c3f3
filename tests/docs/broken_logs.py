"""The broken logs of docs/incidents.md, made of those in samples/."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from kraftlake.controller.cluster.brokers import process_heartbeat
from kraftlake.controller.quorum.trial_controller import TrialController
from kraftlake.image.broker_partitions import hosted_partitions
from kraftlake.kafka_files.writer import write_segment
from kraftlake.protocol.broker_requests import BrokerHeartbeatRequest
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.queries.source import LogSource
from tests.cli.running import DIRECTORY, LEGACY
from tests.diagnosis.doctor.clusters import Step, cluster, log_of, register, unfence, uuid
from tests.replay.comparing.odd_quorums import quorum_log

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


def disk(folder: Path, last: str) -> None:
    """A cut log, and the heartbeat with which broker 2 says that a log directory of it failed."""
    cut(folder, last)
    image = LogSource.open(folder / "md").replay().image
    broker = image.cluster.brokers[2]
    request = BrokerHeartbeatRequest(
        broker_id=2, broker_epoch=broker.epoch, current_metadata_offset=image.offset,
        offline_log_dirs=broker.directories[:1],
    )  # fmt: skip
    records = process_heartbeat(TrialController(image).state, request).records
    at = image.provenance
    batch = RecordBatch.of(at.offset + 1, at.epoch, at.timestamp + 1_000, records)
    write_segment(folder / "md" / f"{at.offset + 1:020d}.log", [batch])


def _small(folder: Path, *steps: Step, level: int = 33) -> None:
    """The log of three brokers, and what befalls them."""
    log_of(folder, [*cluster(1, 2, 3, level=level), *steps]).rename(folder / "md")


def twins(folder: Path, _: str) -> None:
    """Two machines start a broker 2 in turn."""
    places = [
        {"host": "kafka-2a", "log_dirs": (uuid("disk-a"),)},
        {"host": "kafka-2b", "log_dirs": (uuid("disk-b"),)},
    ]
    steps: list[Step] = []
    for turn in range(1, 5):
        epoch = 100 + turn
        started = register(2, epoch, process=f"process-{turn}", **places[turn % 2])  # type: ignore[arg-type]
        steps += [(60 * turn, started), (60 * turn + 1, unfence(2, epoch))]
    _small(folder, *steps)


def loopback(folder: Path, _: str) -> None:
    """Broker 4 advertises an address of its own machine, broker 5 that of broker 3."""
    hosts = {4: "localhost", 5: "b3.example"}
    started = [(60, message) for id_, host in hosts.items() for message in (
        register(id_, id_, host=host), unfence(id_, id_))]  # fmt: skip
    _small(folder, *started)


def mixed(folder: Path, _: str) -> None:
    """Brokers of two releases, of which one has yet to be upgraded."""
    tops = {1: 33, 2: 33, 3: 25}
    started = [
        (60, register(id_, 100 + id_, features=(r.BrokerFeature(
            name="metadata.version", min_supported_version=7, max_supported_version=top),)))
        for id_, top in tops.items()
    ]  # fmt: skip
    _small(folder, *started, *[(61, unfence(id_, 100 + id_)) for id_ in tops], level=25)


def second(folder: Path, _: str) -> None:
    """The sample, and in `md2` what a controller wrote that was formatted with the same ids and elected itself."""
    for name in ("md", "md2"):
        (folder / name).mkdir()
        shutil.copy(DIRECTORY.parent / "meta.properties", folder / name)
    shutil.copytree(DIRECTORY, folder / "md", dirs_exist_ok=True)
    write_segment(folder / "md2" / _SEGMENT, quorum_log(3000, epochs=4, begins=1_795_253_100_000))


BROKEN: Mapping[str, Callable[[Path, str], None]] = {
    "cut": cut, "flipped": flipped, "restored": restored, "legacy": legacy, "folders": folders, "disk": disk,
    "twins": twins, "loopback": loopback, "mixed": mixed,
    "second": second,
}  # fmt: skip
"""The ways to break a log, by the words that docs/incidents.md has for them."""
