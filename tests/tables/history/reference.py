"""Histories record by record: an image after each of them, compared with the one before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import KRaftVersionRecord, LeaderChangeMessage, Voter, VotersRecord
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.loader.fold import Replay
from kraftlake.tables.history.entity_table import EntityTable
from kraftlake.tables.history.entity_tables import SMALL_TABLES

Row = dict[str, Any]
KEYS = {
    "partition_history": ("topic_id", "partition"),
    "topic_history": ("topic_id",),
    "broker_history": ("broker",),
    "config_history": ("resource_type", "resource_name", "config"),
    "acl_history": ("acl_id",),
    "quota_history": ("entity", "quota"),
    "feature_history": ("feature",),
    "scram_history": ("user", "mechanism"),
    "controller_history": ("controller",),
    "token_history": ("token_id",),
    "quorum_history": (),
    "voter_history": ("voter",),
    "directory_history": ("broker", "directory"),
}
PARTS = {
    "topic_history": "topics",
    "broker_history": "cluster",
    "config_history": "configs",
    "acl_history": "acls",
    "quota_history": "client_quotas",
    "feature_history": "features",
    "scram_history": "scram",
    "controller_history": "cluster",
    "token_history": "delegation_tokens",
}
"""The part of an image that has the rows of a table: an image shares with the one before what has not changed."""


def images(batches: Iterable[RecordBatch], start: MetadataImage = MetadataImage.EMPTY) -> Iterator[MetadataImage]:
    """The image after each offset that comes after `start`."""
    loader = MetadataBatchLoader(start)
    for batch in batches:
        for offset in range(max(batch.base_offset, loader.last_offset + 1), batch.last_offset + 1):
            loader.load_batch(batch, to_offset=offset)
            yield loader.take_image()


class History:
    """Makes rows with intervals from what is there after each offset."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._open: dict[Any, Row] = {}
        self._states: dict[Any, Row] = {}

    def see(self, offset: int, timestamp: int, changed: Mapping[Any, Row | None]) -> None:
        """What may have changed with an offset: None for what is gone."""
        time = None if timestamp < 0 else timestamp
        for key, state in changed.items():
            if self._states.get(key) == state:
                continue
            if key in self._open:
                self._open.pop(key).update(valid_to_offset=offset, valid_to=time)
                del self._states[key]
            if state is not None:
                row = dict(state, valid_from_offset=offset, valid_to_offset=None, valid_from=time, valid_to=None)
                self.rows.append(row)
                self._open[key], self._states[key] = row, state


def from_start(batches: Iterable[RecordBatch], start: MetadataImage) -> Iterator[MetadataImage]:
    """As `images`, with the image before them if there is one."""
    if start is not MetadataImage.EMPTY:
        yield start
    yield from images(batches, start)


def partition_rows(batches: Iterable[RecordBatch], start: MetadataImage = MetadataImage.EMPTY) -> list[Row]:
    """`partition_history/`, in the order of `in_order`."""
    return partition_rows_seen(from_start(batches, start))


def partition_rows_seen(seen: Iterable[MetadataImage]) -> list[Row]:
    """`partition_history/`, by images one by one."""
    history = History()
    before = MetadataImage.EMPTY
    for image in seen:
        changed: dict[Any, Row | None] = {}
        racks = racks_of(image)
        moved = image.cluster is not before.cluster and racks_of(before) != racks
        if image.topics is not before.topics or moved:
            old, new = before.topics.topics_by_id(), image.topics.topics_by_id()
            for topic_id in {*old, *new}:
                one, two = old.get(topic_id), new.get(topic_id)
                if one is two and not moved:
                    continue
                partitions = {*(one.partitions if one else ()), *(two.partitions if two else ())}
                for number in partitions:
                    state = two.partitions.get(number) if two else None
                    if not moved and one is not None and one.partitions.get(number) == state:
                        continue
                    changed[topic_id, number] = None if state is None or two is None else {
                        "topic": two.name,
                        "topic_id": str(topic_id),
                        "partition": number,
                        "leader": state.leader,
                        "leader_epoch": state.leader_epoch,
                        "partition_epoch": state.partition_epoch,
                        "replicas": [*state.replicas],
                        "isr": [*state.isr],
                        "elr": [*state.elr],
                        "last_known_elr": [*state.last_known_elr],
                        "adding_replicas": [*state.adding_replicas],
                        "removing_replicas": [*state.removing_replicas],
                        "leader_recovery_state": int(state.leader_recovery_state),
                        "directories": [str(directory) for directory in state.directories],
                        "leader_rack": racks.get(state.leader),
                    }  # fmt: skip
        history.see(image.provenance.offset, image.provenance.timestamp, changed)
        before = image
    return in_order(history.rows, KEYS["partition_history"])


def racks_of(image: MetadataImage) -> dict[int, str]:
    """The racks of the brokers that have one."""
    return {broker: each.rack for broker, each in image.cluster.brokers.items() if each.rack is not None}


def in_order(rows: Iterable[Row], key: Sequence[str]) -> list[Row]:
    return sorted(rows, key=lambda row: (*(repr(row[name]) for name in key), row["valid_from_offset"]))


def plain(rows: Iterable[Row], key: Sequence[str]) -> list[Row]:
    """Rows as Arrow gives them, with times as epoch milliseconds, in order."""
    made = []
    for row in rows:
        times = {
            name: None if row[name] is None else round(row[name].timestamp() * 1000)
            for name in ("valid_from", "valid_to")
        }
        made.append({name: value for name, value in row.items() if name != "cluster_id"} | times)
    return in_order(made, key)


def quorum_rows(batches: Iterable[RecordBatch], start: Replay | None = None) -> dict[str, list[Row]]:
    """The histories of the quorum, by the control records of batches one by one, which may follow a snapshot."""
    leaders, voters, version = History(), History(), 0
    state: Row | None = None
    known: dict[Any, Row] = {}
    if start is not None and start.quorum.voters is not None:
        version, at = start.quorum.kraft_version, start.image.provenance
        known = {v.voter_id: _voter_row(v) for v in start.quorum.voters.voters}
        voters.see(at.offset, at.timestamp, known)
    for batch in batches:
        for offset, record in enumerate(batch.messages() if batch.control else (), start=batch.base_offset):
            match record.message:
                case LeaderChangeMessage(leader_id=leader) as message:
                    ids = [sorted(v.voter_id for v in of) for of in (message.voters, message.granting_voters)]
                    state = {"epoch": batch.epoch, "leader": leader, "kraft_version": version}
                    state |= {"voters": ids[0], "granting_voters": ids[1]}
                case KRaftVersionRecord(k_raft_version=version):
                    state = None if state is None else {**state, "kraft_version": version}
                case VotersRecord(voters=now):
                    rows = {v.voter_id: _voter_row(v) for v in now}
                    voters.see(offset, batch.timestamp, {**dict.fromkeys(known), **rows})
                    known = rows
            leaders.see(offset, batch.timestamp, {(): state})
    return {"quorum_history": in_order(leaders.rows, ()), "voter_history": in_order(voters.rows, ("voter",))}


def _voter_row(voter: Voter) -> Row:
    levels = voter.k_raft_version_feature
    return {
        "voter": voter.voter_id,
        "directory_id": str(voter.voter_directory_id),
        "endpoints": [f"{each.name}://{each.host}:{each.port}" for each in voter.endpoints],
        "min_kraft_version": levels.min_supported_version,
        "max_kraft_version": levels.max_supported_version,
    }


def all_small_rows(batches: Sequence[RecordBatch], start: MetadataImage = MetadataImage.EMPTY) -> dict[str, list[Row]]:
    """All history tables but that of partitions."""
    return _small_rows_seen(batches, [*from_start(batches, start)])


def all_rows(batches: Sequence[RecordBatch], start: MetadataImage = MetadataImage.EMPTY) -> dict[str, list[Row]]:
    """All history tables."""
    seen = [*from_start(batches, start)]
    return {"partition_history": partition_rows_seen(seen), **_small_rows_seen(batches, seen)}


def _small_rows_seen(batches: Sequence[RecordBatch], seen: Sequence[MetadataImage]) -> dict[str, list[Row]]:
    of_images = {table.name: small_rows(table, seen) for table in SMALL_TABLES if table.name in PARTS}
    return {**of_images, **quorum_rows(batches), "directory_history": directory_rows(seen)}


def rows_until(rows: Iterable[Row], offset: int) -> list[Row]:
    """The rows of the log up to an offset, of those of a longer one."""
    begun = (row for row in rows if row["valid_from_offset"] <= offset)
    still = {"valid_to_offset": None, "valid_to": None}
    return [row if (end := row["valid_to_offset"]) is not None and end <= offset else row | still for row in begun]


def directory_rows(seen: Iterable[MetadataImage]) -> list[Row]:
    """The history of directories, by the registrations in images one by one."""
    history, processes, known = History(), dict[int, Any](), dict[tuple[int, str], Row]()
    for image in seen:
        now: dict[tuple[int, str], Row] = {}
        for id_, broker in image.cluster.brokers.items():
            if processes.get(id_) == broker.incarnation_id:
                now |= {key: {**row, "online": False} for key, row in known.items() if key[0] == id_}
            for directory in broker.directories:
                cordoned = directory in (broker.cordoned_directories or ())
                now[id_, str(directory)] = {
                    "broker": id_, "directory": str(directory), "online": True, "cordoned": cordoned
                }  # fmt: skip
        history.see(image.provenance.offset, image.provenance.timestamp, {**dict.fromkeys(known), **now})
        processes = {id_: broker.incarnation_id for id_, broker in image.cluster.brokers.items()}
        known = now
    return in_order(history.rows, ("broker", "directory"))


def small_rows(table: EntityTable, seen: Iterable[MetadataImage]) -> list[Row]:
    """One of the other history tables, by asking each image, from the first on, for all that it has of it."""
    history = History()
    before: dict[Any, Row | None] = {}
    names = [field.name for field, _ in table.own_columns]
    last = MetadataImage.EMPTY
    for image in seen:
        if getattr(image, PARTS[table.name]) is getattr(last, PARTS[table.name]):
            continue
        last = image
        now: dict[Any, Row | None] = {}
        for key in table.keys(image):
            state, row = table.look(image, key), before.get(key)
            now[key] = row if row is not None and row["state"] is state else _with_state(table, names, key, state)
        changed = {key: now.get(key) for key in {*before, *now} if before.get(key) is not now.get(key)}
        history.see(image.provenance.offset, image.provenance.timestamp, changed)
        before = now
    rows = [{name: value for name, value in row.items() if name != "state"} for row in history.rows]
    return in_order(rows, table.key)


def _with_state(table: EntityTable, names: Sequence[str], key: Any, state: Any) -> Row:
    return {**dict(zip(names, table.row(key, state), strict=True)), "state": state}
