"""`kraftlake stability`: its rows, and what it says where nothing is unusual."""

from __future__ import annotations

import json

from tests.cli.running import DIRECTORY, fault, run


def test_a_line_of_json_for_each_count() -> None:
    rows = [json.loads(line) for line in run("stability", DIRECTORY, "--json").stdout.splitlines()]
    assert rows[0] == {
        "hour": 1795244400000, "kind": "fencings", "count": 16, "orderly": 8, "median": None, "level": None,
        "unusual": None,
    }  # fmt: skip
    brokers = [json.loads(line) for line in run("stability", DIRECTORY, "--by", "broker", "--json").stdout.splitlines()]
    assert sum(row["count"] for row in brokers if row["kind"] == "fencings") == 16
    assert brokers[0]["broker"] is None
    assert {"unusualHours"} < {*brokers[0]}


def test_what_is_not_unusual_is_left_out_on_request() -> None:
    assert "nothing happened that is counted here, or is unusual" in run("stability", DIRECTORY, "--unusual").stdout


def test_a_range_counts_what_lies_in_it() -> None:
    rows = run("stability", DIRECTORY, "--from", 400, "--to", 470, "--json").stdout.splitlines()
    kinds = {row["kind"]: row["count"] for row in map(json.loads, rows)}
    assert kinds["fencings"] == 1
    assert "Offset 9999 is not in the log" in fault("stability", DIRECTORY, "--from", 9999)
