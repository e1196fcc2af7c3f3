"""The commands' JSON against what Kafka 4.4's own classes and tools say of the same logs."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import DIRECTORY, LEGACY, SAMPLES, TORN, run, run_image, run_json, unzipped_json

IMAGES = sorted(path for name in ("kafka-4.4", "crash-torn") for path in (SAMPLES / name).glob("expected/image-*.gz"))
LOCALS = sorted(path for name in ("kafka-4.4", "crash-torn") for path in (SAMPLES / name).glob("expected/local-*.gz"))
DUMPS = sorted(path for path in SAMPLES.glob("*/expected/dump-*.txt.gz"))
CONTROL_NAMES = {
    "LeaderChange": "LEADER_CHANGE",
    "SnapshotHeader": "SNAPSHOT_HEADER",
    "SnapshotFooter": "SNAPSHOT_FOOTER",
    "KRaftVersion": "KRAFT_VERSION",
    "KRaftVoters": "KRAFT_VOTERS",
}
_RECORD = re.compile(r"\| offset: (\d+) CreateTime: (-?\d+) .*? headerKeys: \[\] (\w+):? (\{.*\})$")
_BATCH = re.compile(r"baseOffset: .* partitionLeaderEpoch: (-?\d+) ")


def name_of(path: Path) -> str:
    return f"{path.parts[-3]}/{path.name.partition('.')[0]}"


def directory_of(path: Path) -> Path:
    return path.parents[1] / "log" / "__cluster_metadata-0"


def dumped(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a dump in the form of `log --json`."""
    epoch = -1
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        batch = _BATCH.match(line)
        if batch:
            epoch = int(batch[1])
        record = _RECORD.match(line)
        if not record:
            continue
        data = json.loads(record[4])
        form = {"offset": int(record[1]), "epoch": epoch, "timestamp": int(record[2])}
        if record[3] == "payload":
            yield {**form, **data}
        else:
            yield {**form, "type": CONTROL_NAMES[record[3]], "version": data["version"], "data": data}


def listed(*words: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("log", *words, "--json", "--show-secrets").stdout.splitlines()]


@pytest.mark.parametrize("path", IMAGES, ids=name_of)
def test_an_image_is_what_kafka_makes_of_the_same_log(path: Path) -> None:
    expected = unzipped_json(path)
    assert run_image(directory_of(path), "--at-offset", expected["offset"]) == expected


@pytest.mark.parametrize("path", LOCALS, ids=name_of)
def test_local_changes_are_what_kafka_makes_of_the_same_log(path: Path) -> None:
    expected = unzipped_json(path)
    printed = run_json(
        "local-changes", directory_of(path), "--broker", expected["broker"], "--from", expected["from"],
        "--to", expected["to"],
    )  # fmt: skip
    for changes in (printed, expected):
        changes["deletes"].sort()
    assert printed == expected | {"clusterId": printed["clusterId"]}


@pytest.mark.parametrize("path", DUMPS, ids=name_of)
def test_the_records_of_a_file_are_what_kafkas_dump_tool_prints(path: Path) -> None:
    file = path.name.removeprefix("dump-").removesuffix(".txt.gz")
    expected = list(dumped(path))
    assert expected
    assert listed(directory_of(path) / file) == expected


@pytest.mark.parametrize("directory", [DIRECTORY, TORN, LEGACY], ids=lambda path: path.parts[-3])
def test_the_records_of_a_directory_are_those_of_its_segments_in_order(directory: Path) -> None:
    dumps = sorted((directory.parents[1] / "expected").glob("dump-*.log.txt.gz"))
    assert listed(directory) == [record for dump in dumps for record in dumped(dump)]


def test_there_are_enough_expected_answers_to_compare_with() -> None:
    assert len(IMAGES) >= 20
    assert len(LOCALS) >= 50
    assert len(DUMPS) >= 9


def test_the_image_at_a_time_is_the_one_at_the_last_offset_up_to_it() -> None:
    record = json.loads(run("log", DIRECTORY, "--from", 4592, "--to", 4592, "--json").stdout)
    at_time = run_json("image", DIRECTORY, "--at-time", record["timestamp"])
    assert at_time["offset"] >= 4592
    later = listed(DIRECTORY, "--from", at_time["offset"] + 1, "--to", at_time["offset"] + 1)[0]
    assert later["timestamp"] > record["timestamp"]
    assert at_time == run_json("image", DIRECTORY, "--at-offset", at_time["offset"])


def test_an_iso_time_and_its_milliseconds_mean_the_same() -> None:
    iso = run_json("image", DIRECTORY, "--at-time", "2026-11-21T07:46:10Z")
    assert iso == run_json("image", DIRECTORY, "--at-time", "1795247170000")
    assert iso == run_json("image", DIRECTORY, "--at-time", "2026-11-21T08:46:10+01:00")
    assert iso == run_json("image", DIRECTORY, "--at-time", "2026-11-21 07:46:10")
