"""`kraftlake undo --apply` on a cluster of a lake: its topics, partitions, configs and placement come back."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from confluent_kafka import admin as ck
from confluent_kafka.admin import AdminClient, NewTopic
from deltalake import DeltaTable

import kraftlake
from kraftlake.diagnosis.undo.requests import request_of
from kraftlake.diagnosis.undo.step import Action, Step, StepChange, StepClass
from kraftlake.protocol.address import parse_addresses
from kraftlake.protocol.admin_client import AdminClient as AdminRequests
from kraftlake.protocol.node_connector import connector_of
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
            done(admin.create_topics([made, NewTopic("bills", 1, replica_assignment=[[1]])]))
            then = kraftlake.open(lake).end_offset - 1
            entries: list[tuple[str, int, str, str | None]] = []
            for on in (line["bootstrap"], line["controllers"]):
                spoil(admin)
                move(line["bootstrap"], "bills", 2)
                journal = tmp_path / f"journal-{on}"
                undo = (
                    "undo", lake, "--to", then, "--apply", "--assignments", "--on", on, "--yes", "--journal", journal,
                )  # fmt: skip
                form = json.loads(run(*undo, "--destructive", "--json", code=0).stdout)
                assert {one["outcome"] for one in form["results"]} == {"applied"}
                assert run_json("drift", lake, lake, "--other-at", then, "--also", "placement")["equal"]
                asked = [line for line in map(json.loads, journal.read_text().splitlines()) if changes(line)]
                rows = DeltaTable(str(lake / "undo")).to_pyarrow_table().sort_by("offset").to_pylist()
                entries += [(line["event"], line["number"], line["step"]["path"], line.get("error")) for line in asked]
                assert [(row["event"], row["step"], row["path"], row["error"]) for row in rows] == entries
                assert {(row["to_offset"], row["cluster_id"]) for row in rows} == {(then, line["clusterId"])}
            assert {error for _, _, path, error in entries if path == "topic/bills"} == {None, "NONE"}
            run("verify", lake, code=0)


def move(bootstrap: str, topic: str, broker: int) -> None:
    """Begin to move a topic's first partition to a broker, by the request of a step that does so."""
    change = StepChange(field="0", before=None, after=[broker])
    step = Step(
        action=Action.REASSIGN, step_class=StepClass.SAFE, path=f"topic/{topic}", subject={"topic": topic},
        changes=(change,),
    )  # fmt: skip
    request = request_of(step)
    with AdminRequests(parse_addresses(bootstrap), connect=connector_of(None, warn=print)) as client:
        answer = request.answer(
            client.ask(request.api, request.versions, lambda module: request.make(module, step, False))
        )
    assert not answer.is_failure, answer


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
