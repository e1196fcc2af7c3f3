"""Checks a table against what the Delta transaction log protocol requires of commits and checkpoints, and their fields.

For tables on a disk and in an object store.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

import attrs
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kraftlake.metadata_log.storage.location import Location

KINDS = {"commitInfo", "protocol", "metaData", "txn", "add", "remove"}
Found = list[tuple[str, dict[str, Any]]]


@attrs.define
class _Replayed:
    """What a table is after some of its commits."""

    live: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    configuration: dict[str, str] = attrs.field(factory=dict)
    applications: dict[str, int] = attrs.field(factory=dict)

    def apply(self, found: Found) -> None:
        appends_only = self.configuration.get("delta.appendOnly") == "true"
        for kind, fields in found:
            if kind == "metaData":
                self.configuration = fields["configuration"]
            elif kind == "txn":
                self.applications[fields["appId"]] = fields["version"]
        appends_only |= self.configuration.get("delta.appendOnly") == "true"
        _check_files(found, self.live, appends_only=appends_only)


def check_commits(table: Location, *, files: bool = True) -> int:
    """Assert that every commit and checkpoint of a table is correct; returns the number of its commits.

    The commits go from version 0, or, where the beginning was cleaned up, from before a checkpoint. Every checkpoint
    says what the commits say. With `files`, every live data file must be there, of its stated size and with what its
    statistics say.
    """
    log = table / "_delta_log"
    names = sorted(path.name for path in log.iterdir())
    commits = [name for name in names if name.endswith(".json") and not name.startswith(".")]
    assert commits, "there is no table"
    first = int(commits[0].removesuffix(".json"))
    assert commits == [f"{version:020d}.json" for version in range(first, first + len(commits))]
    last = first + len(commits) - 1
    checkpoints = {int(name.split(".")[0]): name for name in names if name.endswith(".checkpoint.parquet")}
    for name in checkpoints.values():
        assert len(name) == len(f"{0:020d}.checkpoint.parquet")
    found = {version: _check_checkpoint((log / name).read_bytes()) for version, name in checkpoints.items()}
    _check_hint(log, names, found, checkpoints)
    state = _Replayed()
    begin = 0
    if first > 0:
        begin = min(version for version in found if first - 1 <= version <= last) + 1
        state.apply(found[begin - 1])
    for version in range(first, last + 1):
        actions = _check_commit((log / f"{version:020d}.json").read_bytes(), version)
        if version >= begin:
            state.apply(actions)
            if version in found:
                _check_agreement(found[version], state)
    for add in state.live.values() if files else ():
        _check_file(table, add)
    return len(commits)


def _check_commit(data: bytes, version: int) -> Found:
    actions = [json.loads(line) for line in data.decode().splitlines()]
    found = [(kind, fields) for action in actions for kind, fields in action.items()]
    assert len(found) == len(actions), "an action a line"
    names = [kind for kind, _ in found]
    assert set(names) <= KINDS
    assert names[0] == "commitInfo"
    assert max(names.count("protocol"), names.count("metaData"), names.count("commitInfo")) <= 1
    assert version > 0 or {"protocol", "metaData"} <= set(names)
    for kind, fields in found:
        _CHECKS[kind](fields)
    applications = [fields["appId"] for kind, fields in found if kind == "txn"]
    assert len(applications) == len(set(applications))
    return found


def _check_checkpoint(data: bytes) -> Found:
    """A checkpoint's actions, the required ones all there, with the fields that are required of each."""
    found: Found = []
    for row in pq.read_table(io.BytesIO(data)).to_pylist():
        (action,) = [(kind, fields) for kind, fields in row.items() if fields is not None]
        found.append((action[0], _without_nulls(action[1])))
    names = [kind for kind, _ in found]
    assert set(names) <= KINDS - {"commitInfo"}
    assert names.count("protocol") == names.count("metaData") == 1
    for kind, fields in found:
        for pairs in fields.keys() & {"partitionValues", "configuration"}:
            fields[pairs] = dict(fields[pairs])
        if kind == "metaData":
            fields["format"]["options"] = dict(fields["format"]["options"])
        if kind == "txn":
            _has(fields, appId=str, version=int)  # when it was last updated is optional
        else:
            _CHECKS[kind](fields)
        assert not fields.get("dataChange", False), "a checkpoint changes no data"
    for kind, identity in (("add", "path"), ("remove", "path"), ("txn", "appId")):
        identities = [fields[identity] for name, fields in found if name == kind]
        assert len(identities) == len(set(identities))
    return found


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(part) for name, part in value.items() if part is not None}
    return value


def _check_hint(log: Location, names: list[str], found: dict[int, Found], checkpoints: dict[int, str]) -> None:
    """`_last_checkpoint` names a checkpoint that is there, and counts what is in it."""
    assert ("_last_checkpoint" in names) == bool(found)
    if not found:
        return
    hint = json.loads((log / "_last_checkpoint").read_bytes())
    _has(hint, version=int, size=int)
    actions = found[hint["version"]]
    assert hint["size"] == len(actions)
    assert hint["numOfAddFiles"] == sum(kind == "add" for kind, _ in actions)
    assert hint["sizeInBytes"] == len((log / checkpoints[hint["version"]]).read_bytes())
    assert "parts" not in hint


def _check_agreement(checkpoint: Found, state: _Replayed) -> None:
    """A checkpoint holds what the commits up to it make."""
    adds = {fields["path"]: (fields["size"], fields["stats"]) for kind, fields in checkpoint if kind == "add"}
    assert adds == {path: (fields["size"], fields["stats"]) for path, fields in state.live.items()}
    (configuration,) = [fields["configuration"] for kind, fields in checkpoint if kind == "metaData"]
    assert configuration == state.configuration
    assert {f["appId"]: f["version"] for kind, f in checkpoint if kind == "txn"} == state.applications
    assert not adds.keys() & {fields["path"] for kind, fields in checkpoint if kind == "remove"}


def _check_files(found: Found, live: dict[str, dict[str, Any]], *, appends_only: bool) -> None:
    if found[0][0] == "commitInfo":
        touched = [fields["path"] for kind, fields in found if kind in ("add", "remove")]
        assert len(touched) == len(set(touched)), "a path is added or removed once in a commit"
        _check_rewrite(found, live)
    for kind, fields in found:
        if kind == "remove" and found[0][0] == "commitInfo":
            assert not (appends_only and fields["dataChange"]), "delta.appendOnly forbids it"
            assert live.pop(fields["path"], None) is not None, "a file is removed that isn't there"
        elif kind == "add":
            assert fields["path"] not in live
            live[fields["path"]] = fields


def _check_rewrite(found: Found, live: dict[str, dict[str, Any]]) -> None:
    """What is added and removed in one commit is the same rows in other files, and says so."""
    adds = [fields for kind, fields in found if kind == "add"]
    removes = [live[fields["path"]] for kind, fields in found if kind == "remove" and fields["path"] in live]
    if adds and removes:
        changes = [fields["dataChange"] for kind, fields in found if kind in ("add", "remove")]
        assert not any(changes), "a rewrite changes no data"
        assert _span(adds) == _span(removes)


def _span(adds: Iterable[dict[str, Any]]) -> tuple[int, int, int]:
    statistics = [json.loads(add["stats"]) for add in adds]
    return (
        sum(each["numRecords"] for each in statistics),
        min(each["minValues"]["offset"] for each in statistics),
        max(each["maxValues"]["offset"] for each in statistics),
    )


def _check_file(table: Location, add: dict[str, Any]) -> None:
    path = table / unquote(add["path"])
    assert path.exists(), f"a commit adds {path}, which is not there"
    data = path.read_bytes()
    assert len(data) == add["size"]
    statistics = json.loads(add["stats"])
    rows = pq.read_table(io.BytesIO(data))
    assert rows.num_rows == statistics["numRecords"]
    for name in {"offset", "batch", "epoch"} & set(rows.schema.names):
        ends = pc.min_max(rows.column(name)).as_py()
        assert (ends["min"], ends["max"]) == (statistics["minValues"][name], statistics["maxValues"][name])
        assert statistics["nullCount"][name] == rows.column(name).null_count


def _has(fields: dict[str, Any], **types: type) -> None:
    for name, kind in types.items():
        assert type(fields[name]) is kind, f"{name} of {fields}"


def _check_info(fields: dict[str, Any]) -> None:
    _has(fields, timestamp=int, operation=str, operationParameters=dict, txnId=str)
    assert all(type(value) is str for value in fields["operationParameters"].values())


def _check_protocol(fields: dict[str, Any]) -> None:
    assert fields == {"minReaderVersion": 1, "minWriterVersion": 2}


def _check_metadata(fields: dict[str, Any]) -> None:
    _has(fields, id=str, format=dict, schemaString=str, partitionColumns=list, configuration=dict, createdTime=int)
    assert fields["format"] == {"provider": "parquet", "options": {}}
    assert fields["partitionColumns"] == []
    assert all(type(value) is str for value in fields["configuration"].values())
    schema = json.loads(fields["schemaString"])
    assert schema["type"] == "struct"
    for field in schema["fields"]:
        _has(field, name=str, type=str, nullable=bool, metadata=dict)


def _check_transaction(fields: dict[str, Any]) -> None:
    _has(fields, appId=str, version=int, lastUpdated=int)


def _check_add(fields: dict[str, Any]) -> None:
    _has(fields, path=str, partitionValues=dict, size=int, modificationTime=int, dataChange=bool, stats=str)
    assert fields["partitionValues"] == {}
    assert not fields["path"].startswith("/")
    _has(json.loads(fields["stats"]), numRecords=int, minValues=dict, maxValues=dict, nullCount=dict)


def _check_remove(fields: dict[str, Any]) -> None:
    _has(fields, path=str, deletionTimestamp=int, dataChange=bool)
    if fields.get("extendedFileMetadata"):
        _has(fields, partitionValues=dict, size=int)


_CHECKS = {
    "commitInfo": _check_info,
    "protocol": _check_protocol,
    "metaData": _check_metadata,
    "txn": _check_transaction,
    "add": _check_add,
    "remove": _check_remove,
}
