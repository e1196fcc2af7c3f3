"""The alerts fire on the recorded incidents, and the dashboard and the rules name what daemons serve."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.at_least_one import at_least_one
from tests.ops.record_incidents import FOLDER, INCIDENTS
from tools.observability import ALERTS, DASHBOARD, ROOT, RULES, RUNBOOKS, Alert, files, names_in, queries
from tools.served_metrics import FAMILIES, names_of

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed: on Debian it is in the package prometheus"
)
OF_PROCESSES = {"process_resident_memory_bytes", "process_cpu_seconds_total"}
"""What prometheus-client serves of every process."""
ALERT_OF = {alert.name: alert for alert in ALERTS}


def test_the_files_are_those_of_the_declarations() -> None:
    for path, text in at_least_one(files().items()):
        assert path.read_text("utf-8") == text, f"run `python -m tools.observability`: {path} differs"


def test_every_series_of_the_dashboard_and_the_rules_is_served() -> None:
    served = OF_PROCESSES | {name for family in FAMILIES for name, _ in names_of(family)}
    for query in at_least_one(queries()):
        assert names_in(query), query
        assert names_in(query) <= served, query


def test_each_alert_has_a_section_that_says_what_to_do() -> None:
    sections = re.findall(r"^## (\w+)$", (ROOT / RUNBOOKS).read_text("utf-8"), re.MULTILINE)
    assert sections == [alert.name for alert in ALERTS]
    assert len({alert.name for alert in ALERTS}) == len(ALERTS)


def test_panels_have_places_of_their_own_and_queries_letters() -> None:
    made = json.loads(DASHBOARD.read_text("utf-8"))
    places = [(one["gridPos"]["x"], one["gridPos"]["y"]) for one in made["panels"]]
    assert len({*places}) == len(places)
    assert [one["id"] for one in made["panels"]] == [*range(1, len(places) + 1)]
    for panel in at_least_one(one for one in made["panels"] if one["type"] != "row"):
        assert panel["type"] in ("stat", "timeseries")
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == sorted({*letters})
        assert all(target["expr"] and target["datasource"]["type"] == "prometheus" for target in panel["targets"])


def expected(alert: Alert, labels: dict[str, str]) -> dict[str, Any]:
    summary = alert.summary
    for key, value in labels.items():
        summary = summary.replace(f"{{{{ $labels.{key} }}}}", value)
    return {
        "exp_labels": {**labels, "severity": alert.severity},
        "exp_annotations": {"summary": re.sub(r"\{\{ [^}]* \}\}", "", summary), "runbook": alert.runbook},
    }


LABELS = {
    "quorum_without_majority": {"KraftlakeQuorumUnreachable": {"cluster": "east", "state": "waiting"}},
    "real_outage": {alert: dict[str, str]() for alert in INCIDENTS["real_outage"][1]},
}
"""The labels of alerts other than the cluster's alone."""


@needs_promtool
@pytest.mark.parametrize("name", INCIDENTS)
def test_the_alerts_of_an_incident_fire_and_not_before_it(tmp_path: Path, name: str) -> None:
    recorded = yaml.safe_load((FOLDER / f"{name}.yml").read_text("utf-8"))
    unit = int(recorded["interval"][:-1]) * {"m": 60, "s": 1}[recorded["interval"][-1]]
    end = (recorded["steps"] - 1) * unit
    checks: list[dict[str, Any]] = []
    for alert in at_least_one(INCIDENTS[name][1]):
        labels = LABELS.get(name, {}).get(alert, {"cluster": "east"})
        checks.append({"eval_time": "0s", "alertname": alert, "exp_alerts": []})
        at = 14 * unit if name == "broker_lost" else end
        checks.append({"eval_time": f"{at}s", "alertname": alert, "exp_alerts": [expected(ALERT_OF[alert], labels)]})
    silent = ALERT_OF.keys() - {*INCIDENTS[name][1], *ALSO.get(name, ())}
    silent |= {*INCIDENTS[name][1]} if name == "broker_lost" else set()
    checks += [{"eval_time": f"{end}s", "alertname": alert, "exp_alerts": []} for alert in sorted(silent)]
    test = {"interval": recorded["interval"], "input_series": recorded["input_series"], "alert_rule_test": checks}
    file = tmp_path / f"{name}.yml"
    file.write_text(
        yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": recorded["interval"], "tests": [test]})
    )
    done = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


ALSO = {"real_outage": ("KraftlakeUnderReplicated",)}
"""Alerts that may fire beside those that an incident is for."""


@needs_promtool
def test_promtool_takes_the_rules_and_the_configuration() -> None:
    subprocess.run(["promtool", "check", "rules", RULES], check=True, capture_output=True)
    config = RULES.with_name("prometheus.yml")
    subprocess.run(["promtool", "check", "config", config], check=True, capture_output=True)
