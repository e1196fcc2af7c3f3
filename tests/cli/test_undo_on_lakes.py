"""`kraftlake undo --apply` on a cluster of a lake: its topics, partitions, configs and placement come back."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from confluent_kafka import admin as ck
from confluent_kafka.admin import AdminClient, NewTopic
from deltalake import DeltaTable

import kraftlake
from tests.cli.running import run, run_json
from tests.cli.test_cluster_up import command


def test_topics_configs_and_placement_come_back_over_brokers_and_controllers(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    words = ("cluster", "up", lake, "--json", "--brokers", "2", "--controllers", "1")
    with command(*words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as up:
        assert up.stdout is not None
        with up.stdout as stdout:
            line = json.loads(stdout.readline())
            admin = AdminClient({"bootstrap.servers": line["bootstrap"]})
            made = NewTopic("orders", 2, replica_assignment=[[2, 1], [1, 2]], config={"retention.ms": "600000"})
            done(admin.create_topics([made, NewTopic("bills", 1, 1)]))
            then = kraftlake.open(lake).end_offset - 1
            for on in (line["bootstrap"], line["controllers"]):
                spoil(admin)
                journal = tmp_path / f"journal-{on}"
                undo = ("undo", lake, "--to", then, "--apply", "--on", on, "--yes", "--journal", journal)
                form = json.loads(run(*undo, "--destructive", "--json", code=0).stdout)
                assert {one["outcome"] for one in form["results"]} == {"applied"}
                assert run_json("drift", lake, lake, "--other-at", then, "--also", "placement")["equal"]
                asked = [line for line in map(json.loads, journal.read_text().splitlines()) if changes(line)]
                rows = DeltaTable(str(lake / "undo")).to_pyarrow_table().sort_by("offset").to_pylist()
                told = [(line["event"], line["number"], line["step"]["path"], line.get("error")) for line in asked]
                assert [(row["event"], row["step"], row["path"], row["error"]) for row in rows][-len(told) :] == told
                assert {(row["to_offset"], row["cluster_id"]) for row in rows} == {(then, line["clusterId"])}
            assert len(rows) == 2 * len(told)
            run("verify", lake, code=0)


def changes(line: dict) -> bool:
    """Whether a line of a journal is about a change, and not only a validation."""
    return line["event"] in ("send", "answer") and line.get("of") != "validate"


def spoil(admin: AdminClient) -> None:
    done(admin.delete_topics(["orders"]))
    done(admin.create_topics([NewTopic("since", 3, 1)]))
    entry = ck.ConfigEntry("retention.ms", "5000", incremental_operation=ck.AlterConfigOpType.SET)
    resource = ck.ConfigResource(ck.ResourceType.TOPIC, "bills", incremental_configs=[entry])
    done(admin.incremental_alter_configs([resource]))


def done(futures) -> None:
    for future in futures.values():
        future.result(timeout=90)
