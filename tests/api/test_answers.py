"""What a source answers is what the commands print; objects show themselves in notebooks small and without secrets."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import kraftlake
from kraftlake.tables.events.events_table import EVENTS
from tests.cli.running import DIRECTORY, ROOT, run, run_json

LARGEST = 4000
"""Characters that an object may take in a notebook."""


@pytest.fixture(scope="module")
def source() -> kraftlake.Source:
    return kraftlake.open(DIRECTORY)


@pytest.mark.parametrize("at", [458, "2026-11-21T07:46:16.256Z"])
def test_the_json_of_an_image_is_that_of_the_command(source: kraftlake.Source, at: int | str) -> None:
    option = "--at-offset" if isinstance(at, int) else "--at-time"
    image = source.image(at)
    assert json.loads(json.dumps(image.to_json())) == run_json("image", DIRECTORY, option, at)
    shown = image.to_json(show_secrets=True)
    assert json.loads(json.dumps(shown)) == run_json("image", DIRECTORY, option, at, "--show-secrets")
    assert image.to_json() != shown


def test_the_images_of_changes_name_their_cluster_too(source: kraftlake.Source) -> None:
    (change,) = source.changes(403, 458)
    assert change.image.to_json() == source.image(458).to_json()
    assert change.image.to_json()["clusterId"] == "VXUoBgBGTaWWfCM4Toybuw"


def test_local_changes_of_the_command_name_the_cluster() -> None:
    printed = run_json("local-changes", DIRECTORY, "--broker", 2, "--from", 402, "--to", 458)
    assert printed["clusterId"] == "VXUoBgBGTaWWfCM4Toybuw"


def test_metrics_are_those_of_the_command(source: kraftlake.Source) -> None:
    metrics = source.metrics(458)
    assert metrics.cluster.fenced_broker_count == 1
    assert metrics.brokers[3].offline == 7
    assert json.loads(json.dumps(metrics.to_json())) == run_json("metrics", DIRECTORY, "--at-offset", 458)
    assert source.metrics(at_time=1795247176256) == metrics


def test_events_are_those_of_the_command(source: kraftlake.Source) -> None:
    events = source.events(402, 458)
    printed = [
        json.loads(line) for line in run("events", DIRECTORY, "--from", 402, "--to", 458, "--json").stdout.splitlines()
    ]
    assert [event["sentence"] for event in events] == [event["sentence"] for event in printed]
    table = events.to_table()
    assert table.schema == EVENTS.schema
    assert table.to_pylist() == list(events)
    assert source.events(0, 1).to_table().num_rows == len(list(source.events(0, 1)))


def test_a_range_of_times_includes_both_ends_in_every_call(source: kraftlake.Source) -> None:
    first, last = "2026-11-21T07:46:16Z", "2026-11-21T07:46:17Z"
    offsets = [record.offset for record in source.records(first, last)]
    assert source.offset_range(first, last) == (offsets[0], offsets[-1])
    assert [r.offset for r in source.records(*source.offset_range(first, last))] == offsets
    changes = [change.offset for change in source.changes(first, last)]
    assert changes
    assert {*changes} <= {*offsets}
    assert {event["offset"] for event in source.events(first, last)} <= {*changes}
    local = source.local_changes(2, first, last)
    assert (local.from_offset, local.to_offset) == (source.offset_at(first), offsets[-1])


def test_objects_show_themselves_in_a_notebook(source: kraftlake.Source) -> None:
    shown = [
        source._repr_html_(),
        source.image()._repr_html_(),
        source.events(402, 458)._repr_html_(),
        source.metrics(458)._repr_html_(),
    ]
    for html in shown:
        assert html.startswith("<table")
        assert html.endswith("</table>")
        assert len(html) < LARGEST
    assert "VXUoBgBGTaWWfCM4Toybuw" in shown[0]
    assert "The first 20 events" in shown[2]
    assert "FencedBrokerCount" in shown[3]


def test_every_error_is_caught_by_the_name_at_the_top(source: kraftlake.Source) -> None:
    for ask in (lambda: source.image(10**9), lambda: source.events(5, 3), lambda: kraftlake.open("nowhere")):
        with pytest.raises(kraftlake.KraftlakeError):
            ask()


def test_the_package_is_the_command() -> None:
    command = [sys.executable, "-m", "kraftlake", "metrics", str(DIRECTORY), "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == run_json("metrics", DIRECTORY)
