"""Since when what an image shows is so."""

from __future__ import annotations

import os
from typing import Any

import pytest

import kraftlake
from kraftlake.api import Source
from kraftlake.diagnosis.leaderless import leaderless_since
from kraftlake.diagnosis.since import since_of
from tests.cli.running import DIRECTORY, run, run_json
from tests.diagnosis.brute_force import lines_of_sample

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
pytestmark = pytest.mark.xdist_group("lines_of_sample")


@pytest.fixture(scope="module")
def source() -> Source:
    return kraftlake.open(DIRECTORY)


def flat(since: dict[str, Any]) -> dict[str, int]:
    """The offsets by the paths of things."""
    found = {}
    for name, partitions in since["topics"].items():
        for number, fields in partitions.items():
            path = f"topic/{name}/partition/{number}"
            keys = {"leader": f"{path}/leader", "isr": f"{path}/isr", "state": path}
            found |= {keys[key]: one["offset"] for key, one in fields.items()}
    for id_, fields in since["brokers"].items():
        found |= {f"broker/{id_}/{key}": one["offset"] for key, one in fields.items()}
    for type_, resources in since["configs"].items():
        for resource, configs in resources.items():
            found |= {f"config/{type_}/{resource}/{name}": one["offset"] for name, one in configs.items()}
    return found


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("at", [458, 3044, 5736] if LONG else [3044])
def test_it_is_since_the_last_change_of_each_value(
    source: Source, at: int, by_columns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_columns:
        monkeypatch.setattr("kraftlake.diagnosis.since._MANY_PARTITIONS", 1)
        monkeypatch.setattr("kraftlake.diagnosis.since.BULK_FROM", 0)
    form = source.image(at).to_json()
    found = flat(since_of(source, form))
    assert found == {path: [since for _, since, *_ in lines_of_sample()[path] if since <= at][-1] for path in found}
    partitions = sum(len(topic["partitions"]) for topic in form["topics"].values())
    configs = sum(len(one) for resources in form["configs"].values() for one in resources.values())
    assert len(found) == 3 * partitions + 2 * len(form["brokers"]) + configs


def test_a_partition_is_leaderless_since_the_same_time(source: Source) -> None:
    form = source.image(1323).to_json()
    topics = {
        name: topic | {"partitions": {n: one for n, one in topic["partitions"].items() if one["leader"] < 0}}
        for name, topic in form["topics"].items()
    }
    leaderless = leaderless_since(source, topics, 1323)
    since = since_of(source, form)["topics"]
    assert len(leaderless) == 47
    for (name, number), one in leaderless.items():
        assert since[name][number]["leader"]["timestamp"] == one.since


def test_the_command_adds_one_key_and_says_it_beside_what_is_so(source: Source) -> None:
    plain = run_json("image", DIRECTORY, "--at-offset", 458)
    form = run_json("image", DIRECTORY, "--at-offset", 458, "--since")
    assert form.pop("since") == since_of(source, plain)
    assert form == plain
    some = run_json("image", DIRECTORY, "--topic", "elr-a", "--since")["since"]
    assert some.keys() == {"topics", "configs"}
    assert some["configs"]["TOPIC"]["elr-a"]["min.insync.replicas"]["offset"] == 1392
    shown = run("image", DIRECTORY, "--at-offset", 458, "--topic", "fixed-a", "--since", width=140).stdout
    assert "  leader 71 2026-11-21 07:45:35.246Z  " in shown
    assert "  in sync, state 435 2026-11-21 07:46:16.256Z\n" in shown
    assert "  436 2026-11-21 07:46:16.256Z  " in shown
    assert "since 5321 2026-11-21" not in run("image", DIRECTORY).stdout
    brokers = run("image", DIRECTORY, "--part", "brokers", "--since", width=140).stdout
    assert "5321 2026-11-21 07:50:21.842Z" in brokers


def test_of_a_snapshot_it_is_since_then_or_earlier() -> None:
    snapshot = next(DIRECTORY.glob("*4593-*.checkpoint"))
    since = run_json("image", snapshot, "--since", "--topic", "elr-a")["since"]["topics"]["elr-a"]["0"]
    assert since["isr"] == {"offset": 4592, "timestamp": 1795247377784, "orEarlier": True}
    shown = run("image", snapshot, "--since", "--topic", "elr-a", width=140).stdout
    assert "4592 2026-11-21 07:49:37.784Z or earlier" in shown
