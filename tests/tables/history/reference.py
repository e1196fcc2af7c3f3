"""Histories record by record: an image after each of them, compared with the one before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.tables.history.entity_tables import EntityTable

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
}
PARTS = {
    "topic_history": "topics",
    "broker_history": "cluster",
    "config_history": "configs",
    "acl_history": "acls",
    "quota_history": "client_quotas",
    "feature_history": "features",
    "scram_history": "scram",
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
    """Tells rows with intervals from what is there after each offset."""

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


def partition_rows(batches: Iterable[RecordBatch], start: MetadataImage = MetadataImage.EMPTY) -> list[Row]:
    """`partition_history/`, in the order of `in_order`."""
    history = History()
    before = MetadataImage.EMPTY
    for image in (*([start] if start is not MetadataImage.EMPTY else ()), *images(batches, start)):
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
