"""The file of kafka-reassign-partitions is read as that tool reads it."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.diagnosis.trial.reassignment_file import parse_reassignment, read_reassignment
from kraftlake.runtime.errors import UsageError


def entry(topic: Any = "foo", partition: Any = 0, replicas: Any = (1, 2)) -> dict[str, Any]:
    return {"topic": topic, "partition": partition, "replicas": replicas, "log_dirs": ["any", "any"]}


def test_target_replicas_are_read_in_their_order() -> None:
    form = {"version": 1, "partitions": [entry(), entry("foo", 1, [3, 1, 2]), entry("bar", 0, [0])]}
    expected = {("foo", 0): (1, 2), ("foo", 1): (3, 1, 2), ("bar", 0): (0,)}
    assert parse_reassignment(json.dumps(form)) == expected
    del form["version"]
    assert parse_reassignment(json.dumps(form)) == expected


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ([], "a reassignment is"),
        ({"version": 2, "partitions": [entry()]}, "a reassignment is"),
        ({"partitions": {}}, "a reassignment is"),
        ({"partitions": []}, "names no partition"),
        ({"partitions": [entry(), entry()]}, "partition foo-0 is named twice"),
        ({"partitions": [entry(replicas=[1, 1])]}, "partition foo-0 is given a replica twice"),
        ({"partitions": [entry(replicas=[])]}, "partition foo-0 is given no replica"),
        *(({"partitions": [bad]}, "is no partition of a reassignment") for bad in (
            5, None, {}, entry(topic=5), entry(partition="0"), entry(partition=-1), entry(replicas="12"),
            entry(replicas=[True]), entry(replicas=["1"]), entry(replicas=[2**31]), entry(partition=1.5),
        )),
    ],
)  # fmt: skip
def test_what_is_no_reassignment_is_refused(form: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_reassignment(json.dumps(form))


@pytest.mark.parametrize("text", ["", "Current partition replica assignment\n{}", "[" * 100_000])
def test_what_is_no_json_is_refused_with_a_way_out(text: str, tmp_path: Path) -> None:
    file = tmp_path / "moves.json"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"moves\.json: this is not the JSON .* 'Proposed partition reassignment"):
        read_reassignment(file)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "moves.json").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="it is not UTF-8"):
        read_reassignment(tmp_path / "moves.json")
    with pytest.raises(UsageError, match="can't be read: Is a directory"):
        read_reassignment(tmp_path)


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), lambda one: st.lists(one) | st.dictionaries(
    st.sampled_from(["version", "partitions", "topic", "partition", "replicas"]), one)).map(json.dumps))  # fmt: skip
def test_anything_else_is_a_sentence(text: str) -> None:
    with suppress(UsageError):  # may assert nothing: any other error fails
        assert parse_reassignment(text)
