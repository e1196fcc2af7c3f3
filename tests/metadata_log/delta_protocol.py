"""Checks a table's commits against what the Delta transaction log protocol requires of actions and their fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.compute as pc
import pyarrow.parquet as pq

KINDS = {"commitInfo", "protocol", "metaData", "txn", "add", "remove"}


def check_commits(table: Path, *, files: bool = True) -> int:
    """Assert that every commit of a table is correct, from version 0; returns their number.

    With `files`, every live data file must be there, of its stated size and with what its statistics say.
    """
    paths = sorted((table / "_delta_log").glob("*.json"))
    assert [path.name for path in paths] == [f"{version:020d}.json" for version in range(len(paths))]
    live: dict[str, dict[str, Any]] = {}
    configuration: dict[str, str] = {}
    for version, path in enumerate(paths):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        found = [(kind, fields) for action in actions for kind, fields in action.items()]
        assert len(found) == len(actions), "an action a line"
        assert {kind for kind, _ in found} <= KINDS
        assert found[0][0] == "commitInfo"
        names = [kind for kind, _ in found]
        assert max(names.count("protocol"), names.count("metaData"), names.count("commitInfo")) <= 1
        assert version > 0 or {"protocol", "metaData"} <= set(names)
        for kind, fields in found:
            _CHECKS[kind](fields)
            if kind == "metaData":
                configuration = fields["configuration"]
        _check_files(found, live, appends_only=configuration.get("delta.appendOnly") == "true")
        applications = [fields["appId"] for kind, fields in found if kind == "txn"]
        assert len(applications) == len(set(applications))
    for add in live.values() if files else ():
        _check_file(table, add)
    return len(paths)


def _check_files(
    found: list[tuple[str, dict[str, Any]]], live: dict[str, dict[str, Any]], *, appends_only: bool
) -> None:
    touched = [fields["path"] for kind, fields in found if kind in ("add", "remove")]
    assert len(touched) == len(set(touched)), "a path is added or removed once in a commit"
    for kind, fields in found:
        if kind == "remove":
            assert not (appends_only and fields["dataChange"]), "delta.appendOnly forbids it"
            assert live.pop(fields["path"], None) is not None, "a file is removed that isn't there"
        elif kind == "add":
            assert fields["path"] not in live
            live[fields["path"]] = fields


def _check_file(table: Path, add: dict[str, Any]) -> None:
    path = table / unquote(add["path"])
    assert path.stat().st_size == add["size"]
    statistics = json.loads(add["stats"])
    rows = pq.read_table(path, columns=["offset", "batch", "epoch"])
    assert rows.num_rows == statistics["numRecords"]
    for name in rows.schema.names:
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
