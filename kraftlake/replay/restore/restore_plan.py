"""Plans a restore: reads the source and the brokers' directories, and returns the files to write and the losses.

Source of the checks by a starting controller and broker: org.apache.kafka.raft.KafkaRaftClient, KafkaMetadataLog,
VoterSet and org.apache.kafka.metadata.properties.MetaPropertiesEnsemble.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from kraftlake.image.diff import ImageDiff, diff_images
from kraftlake.image.features_image import KRAFT_VERSION
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.kafka_files.file_names import snapshot_name
from kraftlake.kafka_files.node.broker_directory import BrokerDirectory, read_broker_directory
from kraftlake.records.control_records import KRaftVersionFeature, Voter, VoterEndpoint, VotersRecord
from kraftlake.records.uuid import Uuid
from kraftlake.replay.comparing.histories import compare_copies
from kraftlake.replay.comparing.log_comparison import LogComparison, Relation
from kraftlake.replay.comparing.log_copy import LogCopy, read_copy, read_log_copies
from kraftlake.replay.comparing.words import comparison_sentence, held_words
from kraftlake.replay.loader.fold import Replay
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.queries.export import check_exportable
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.progress import Progress
from kraftlake.replay.restore.broker_facts import BrokerFacts, broker_facts
from kraftlake.replay.restore.restored_image import MAX_EPOCH, RestoredPartitions, restored_image
from kraftlake.runtime.arguments import instance, path_texts, several, text, whole
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.moments import Moment
from kraftlake.runtime.words import counted, in_words

MARGIN: Final = 1_000_000
"""The default margin of offsets, epochs and producer ids above all known ones."""
CONTROLLER_LISTENER: Final = "CONTROLLER"
_KRAFT_VERSIONS: Final = (0, 1)
_KRAFT_VERSION_1_FROM: Final = 21
"""The level of metadata.version 3.9-IV0, on which kraft.version 1 depends."""
_NAMED: Final = 5
"""The number of partitions that a warning names."""
_HAS_SPECIAL: Final = {
    "unseen": "in-sync replicas whose logs are not shown: they may lead if no log shows a later leader",
    "lacking": "in-sync replicas whose logs lack records of another replica: the others lead",
    "missing": "no log in the directories given: they come back empty if nobody has one",
    "moved": "their records on brokers that were no replicas at offset {offset}: they come back as being reassigned "
    "from there",
    "leaderless": "no replica that is known to have all records: they stay offline",
}
"""The warnings on the partitions of RestoredPartitions: what they have."""


@attrs.frozen(kw_only=True)
class RestoredVoter:
    """A controller of the restored quorum; `directory_id` is that of its log directory."""

    id: int
    host: str
    port: int
    directory_id: Uuid

    def to_json(self) -> dict[str, Any]:
        """The voter in the report."""
        return {"id": self.id, "host": self.host, "port": self.port, "directoryId": str(self.directory_id)}


@attrs.frozen(kw_only=True)
class RestorePlan:
    """The plan of a restore: the state to write, and the losses.

    `image` is the one to restore; `at` and `newest_offset` are the offset restored and the newest one known, of the log
    `newest_in`. `logs_of` are the brokers whose logs choose the ISRs; without any the newest image does. `lost` are the
    changes from the newest known image to the one at the offset. `strays` are the partitions, by broker, whose folders
    in the given directories a starting broker will set aside as strays. `others` are the brokers' own copies of the
    metadata log by their paths, each compared with the source's.
    """

    at: MetadataImage
    image: MetadataImage
    newest_offset: int
    newest_in: str
    logs_of: tuple[int, ...]
    cluster_id: str
    kraft_version: int
    listener: str
    voters: tuple[RestoredVoter, ...]
    margin: int
    lost: ImageDiff = attrs.field(repr=False)
    strays: Mapping[int, tuple[str, ...]] = attrs.field(repr=False)
    special: RestoredPartitions = attrs.field(repr=False)
    others: Mapping[str, LogComparison] = attrs.field(factory=dict, repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def checkpoint_name(self) -> str:
        """The name of the snapshot file, with the offset and the epoch from which the new log continues."""
        return snapshot_name(self.image.offset + 1, self.image.provenance.epoch)

    @property
    def voters_record(self) -> VotersRecord | None:
        """The voters as a record of the snapshot; None for static ones, which the controllers' configuration names."""
        if self.kraft_version < 1:
            return None
        feature = KRaftVersionFeature(
            min_supported_version=_KRAFT_VERSIONS[0], max_supported_version=_KRAFT_VERSIONS[-1]
        )
        return VotersRecord(
            voters=tuple(
                Voter(
                    voter_id=voter.id,
                    voter_directory_id=voter.directory_id,
                    endpoints=(VoterEndpoint(name=self.listener, host=voter.host, port=voter.port),),
                    k_raft_version_feature=feature,
                )
                for voter in self.voters
            )
        )

    def to_json(self) -> dict[str, Any]:
        """The form of `kraftlake restore --json`."""
        return {
            "clusterId": self.cluster_id,
            "offset": self.at.offset,
            "timestamp": self.at.provenance.to_json()["timestamp"],
            "newestOffset": self.newest_offset,
            "newestIn": self.newest_in,
            "logsOf": list(self.logs_of),
            "checkpoint": self.checkpoint_name,
            "endOffset": self.image.offset + 1,
            "epoch": self.image.provenance.epoch,
            "margin": self.margin,
            "nextProducerId": self.image.producer_ids.next_producer_id,
            "kraftVersion": self.kraft_version,
            "listener": self.listener,
            "voters": [voter.to_json() for voter in self.voters],
            "brokers": sorted(self.image.cluster.brokers),
            "topics": self.image.topics.topic_count,
            "partitions": self.image.topics.partition_count,
            "lost": self.lost.to_json(),
            "strays": {str(broker): list(names) for broker, names in sorted(self.strays.items())},
            **{kind: list(names) for kind, names in attrs.asdict(self.special).items()},
            "otherHistories": {path: found.to_json() for path, found in self.others.items() if found.differs},
            "warnings": list(self.warnings),
        }


def plan_restore(
    source: LogSource,
    at: Moment | None = None,
    *,
    voters: Sequence[tuple[int, str, int]],
    broker_dirs: Iterable[str | os.PathLike[str]] = (),
    margin: int = MARGIN,
    kraft_version: int | None = None,
    listener: str | None = None,
    progress: Progress | None = None,
    new_id: Callable[[], Uuid] = Uuid.random,
) -> RestorePlan:
    """Plan the restore of the image at `at` (an offset or a time, None is the end) to the `voters` (id, host, port).

    `broker_dirs` are log directories of brokers that are down. `kraft_version` and the name of the controllers'
    `listener` are those of the log unless given. Offsets and epochs are `margin` above all in the source and the
    directories. A voter whose directory is one of `broker_dirs` keeps its directory id, others get one of `new_id`.
    Raises UsageError for arguments that contradict each other or the cluster, and for a snapshot of unknown offset
    alone, NotASourceError for a path that is not a broker's directory, UnwritableMetadataError for an image that can't
    be written, else as a replay.
    """
    instance(source, LogSource, "an opened source")
    margin = whole(margin, "a margin", least=1)
    new_voters = _checked_voters(voters)
    given_dirs = [Path(path) for path in path_texts(broker_dirs)]
    replay = source.replay(at, progress=progress)
    check_exportable(source, replay, "restore")
    directories = [read_broker_directory(path) for path in given_dirs]
    cluster_id = _cluster_id(source, directories)
    copies = [copy for one in directories if one.metadata_log for copy in read_log_copies(str(one.metadata_log))]
    if not source.has_offsets and not _sound(copies):
        raise UsageError(
            f"{source.name} is not named END-EPOCH.checkpoint, so its offset is unknown, which a restored log must go "
            "above: give the file the name that Kafka gave it, or a --broker-dir with a metadata log."
        )
    end = replay if at is None else source.replay(progress=progress)
    others = _other_histories(source, copies)
    newest, newest_in = _newest(source, end, [copy for copy in copies if not others[copy.path].differs])
    facts = broker_facts(directories, newest)
    provenance = _provenance(source, replay, end, copies, margin=margin, cluster_id=cluster_id)
    level = _kraft_version(replay, kraft_version)
    image, special = restored_image(
        replay.image, newest, facts, provenance=provenance, voters={id_ for id_, _, _ in new_voters}, margin=margin
    )
    return RestorePlan(
        at=replay.image,
        image=image,
        newest_offset=newest.offset,
        newest_in=newest_in,
        logs_of=tuple(sorted(facts.clean_epochs)),
        cluster_id=cluster_id,
        kraft_version=level,
        listener=listener or _listener(end.quorum, newest) or CONTROLLER_LISTENER,
        voters=_voters(new_voters, directories, new_id),
        margin=margin,
        lost=diff_images(newest, replay.image),
        strays=_strays(image, directories),
        special=special,
        others=others,
        warnings=(*_history_warnings(source, others, newest_in), *_warnings(replay, newest, copies, facts, special)),
    )


def _provenance(
    source: LogSource, replay: Replay, end: Replay, copies: Sequence[LogCopy], *, margin: int, cluster_id: str
) -> MetadataProvenance:
    """Offset and epoch `margin` above those of the source and of the brokers' copies and elections."""
    epochs = [end.image.provenance.epoch, *(copy.position[0] for copy in copies)]
    epochs += [copy.election.leader_epoch for copy in copies if copy.election is not None]
    if max(epochs) + margin > MAX_EPOCH:
        raise UsageError(f"The epoch {max(epochs) + margin:,} would exceed Kafka's 32 bits: give a smaller --margin.")
    return MetadataProvenance(
        offset=max([source.end_offset, *(copy.end_offset for copy in copies)]) + margin - 1,
        epoch=max(epochs) + margin,
        timestamp=replay.image.provenance.timestamp,
        batch_aligned=True,
        cluster_id=cluster_id,
    )


def _cluster_id(source: LogSource, directories: Iterable[BrokerDirectory]) -> str:
    cluster_id = source.cluster_id
    for directory in directories:
        if cluster_id is not None and directory.cluster_id != cluster_id:
            raise UsageError(
                f"{directory.path} is of cluster {directory.cluster_id}, and {source.name} of cluster {cluster_id}: "
                "give directories of the same cluster."
            )
        cluster_id = directory.cluster_id
    if cluster_id is None:
        raise UsageError(f"{source.name} does not say which cluster it is of: give --cluster-id.")
    return cluster_id


def _newest(source: LogSource, end: Replay, copies: Sequence[LogCopy]) -> tuple[MetadataImage, str]:
    """The newest image of the source or of a broker's own copy of the log, and its place."""
    furthest = max(_sound(copies), key=lambda copy: copy.position, default=None)
    if furthest is None or furthest.position <= (end.image.provenance.epoch, source.end_offset):
        return end.image, source.name
    return LogSource.open(furthest.path).replay().image, furthest.path


def _other_histories(source: LogSource, copies: Sequence[LogCopy]) -> dict[str, LogComparison]:
    """The comparison of the log of each broker's copy with that of the source."""
    if not copies:
        return {}
    ours = read_copy(LogCopy(path=source.path), source.reader)
    return {copy.path: compare_copies(ours, copy) for copy in copies}


def _history_warnings(source: LogSource, others: Mapping[str, LogComparison], newest_in: str) -> Iterable[str]:
    """Sentences on the brokers' copies that are not known to belong to the restored history."""
    for path, found in others.items():
        if found.differs:
            ours, theirs = ("nothing" if held is None else held_words(found, held) for held in found.alone)
            yield (
                f"{comparison_sentence(found, source.path, path)}; {source.path} alone has {ours}, and {path}, which "
                f"its broker has followed, {theirs}: nothing of the latter is restored. If brokers follow the latter, "
                f"restore that: `kraftlake restore {path}`"
            )
        elif path == newest_in and found.relation is Relation.UNKNOWN:
            yield f"{comparison_sentence(found, source.path, path)}, and the latter is taken for the newer state"


def _sound(copies: Iterable[LogCopy]) -> list[LogCopy]:
    return [copy for copy in copies if copy.fault is None and copy.epoch_ends]


def _kraft_version(replay: Replay, wanted: int | None) -> int:
    known = replay.quorum.kraft_version
    level = known if wanted is None else whole(wanted, f"a {KRAFT_VERSION}", least=0)
    if level > max(_KRAFT_VERSIONS[-1], known):
        raise UsageError(f"{KRAFT_VERSION} {level} is not known: it is {_KRAFT_VERSIONS[0]} or {_KRAFT_VERSIONS[-1]}.")
    version = replay.image.features.metadata_version
    if level >= 1 and version is not None and version.level < _KRAFT_VERSION_1_FROM:
        raise UsageError(
            f"{KRAFT_VERSION} {level} needs metadata.version 3.9-IV0, and at offset {replay.image.offset} the cluster "
            f"had {version}: give --kraft-version 0."
        )
    return level


def _listener(quorum: QuorumState, newest: MetadataImage) -> str | None:
    """The name of the controllers' listener, as the voters or the controllers' registrations state it."""
    voters = () if quorum.voters is None else quorum.voters.voters
    names = [endpoint.name for voter in voters for endpoint in voter.endpoints]
    names += [name for controller in newest.cluster.controllers.values() for name in sorted(controller.listeners)]
    return next(iter(names), None)


def _checked_voters(given: Iterable[tuple[int, str, int]]) -> list[tuple[int, str, int]]:
    """The voters by id; raises UsageError for none, and for two of one id or address."""
    voters = []
    for one in several(given, "a list of voters"):
        if len(three := several(one, "a voter: id, host and port")) != 3:
            raise UsageError(f"{one!r} is not a voter: give id, host and port.")
        id_, host, port = three
        voters.append((whole(id_, "a voter's id", least=0), text(host, "a host"), whole(port, "a port", least=1)))
    if not voters:
        raise UsageError("A quorum has voters: give --voter ID@HOST:PORT for each controller.")
    addresses = {(host, port) for _, host, port in voters}
    if len({id_ for id_, _, _ in voters}) < len(voters) or len(addresses) < len(voters):
        raise UsageError("Two voters have the same id or the same address: give each controller once, with its own.")
    return sorted(voters)


def _voters(
    given: Sequence[tuple[int, str, int]], directories: Sequence[BrokerDirectory], new_id: Callable[[], Uuid]
) -> tuple[RestoredVoter, ...]:
    """The voters. A node that is broker and controller keeps the directory in which its metadata log lies."""
    kept: dict[int, Uuid] = {}
    for one in sorted(directories, key=lambda one: one.metadata_log is None):
        if one.directory_id is not None:
            kept.setdefault(one.node_id, one.directory_id)
    return tuple(
        RestoredVoter(id=id_, host=host, port=port, directory_id=kept.get(id_) or new_id()) for id_, host, port in given
    )


def _strays(image: MetadataImage, directories: Iterable[BrokerDirectory]) -> dict[int, tuple[str, ...]]:
    """The partitions that a broker holds and that the image does not place on it. Source: LogManager.isStrayReplica."""
    strays: dict[int, list[str]] = {}
    for directory in directories:
        for log in directory.replicas:
            partition = image.topics.get_partition(log.topic_id, log.partition)
            if partition is None or directory.node_id not in partition.replicas:
                strays.setdefault(directory.node_id, []).append(log.name)
    return {broker: tuple(sorted(names)) for broker, names in strays.items()}


def _warnings(
    replay: Replay, newest: MetadataImage, copies: Iterable[LogCopy], facts: BrokerFacts, special: RestoredPartitions
) -> Iterable[str]:
    """Sentences on gaps in the directories, and on partitions that differ from the state at the offset."""
    for copy in copies:
        if copy.fault is not None:
            yield f"{copy.path} is read up to a fault only: {copy.fault}"
    image = replay.image
    if replay.open_since is not None:
        yield f"a metadata transaction is open since offset {replay.open_since}: nothing of it is restored"
    if words := image.configs.ignored_words:
        yield f"configs that Kafka 4.4 does not know are not restored: {words}"
    topics = image.topics.topics_by_id().items()
    deleted = sorted(topic.name for id_, topic in topics if newest.topics.get_topic_by_id(id_) is None)
    if deleted:
        yield f"{_some(deleted, 'topic')} deleted since come back, with the records that brokers still hold"
    unknown = sorted(id_ for id_ in image.cluster.brokers if id_ not in facts.complete)
    if unknown and facts.directories:
        yield f"of {_brokers(unknown)} not all log directories are given: what their logs hold is not known"
    for kind, has in _HAS_SPECIAL.items():
        if names := getattr(special, kind):
            yield f"{_some(names, 'partition')} {'have' if len(names) > 1 else 'has'} {has.format(offset=image.offset)}"
    if unknown and image.features.is_elr_enabled:
        yield (
            f"{_brokers(unknown)} must have shut down in order: eligible leader replicas are enabled, and a controller "
            "removes a broker that crashed from all ISRs unless its --broker-dir shows the crash"
        )


def _brokers(ids: Sequence[int]) -> str:
    return f"broker{'s' if len(ids) > 1 else ''} {in_words(ids)}"


def _some(names: Sequence[str], noun: str) -> str:
    more = ", …" if len(names) > _NAMED else ""
    return f"{counted(len(names), noun)} ({', '.join(names[:_NAMED])}{more})"
