"""The panels of the dashboard and the alerts, declared once: `python -m tools.observability` writes `ops/` from them.

Each alert has a section of its name in docs/runbooks.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

ROOT: Final = Path(__file__).resolve().parents[1]
OPS: Final = ROOT / "ops"
DASHBOARD: Final = OPS / "grafana" / "kraftlake.json"
RULES: Final = OPS / "prometheus" / "rules.yml"
RUNBOOKS: Final = "docs/runbooks.md"
CLUSTER: Final = '{cluster=~"$cluster"}'
"""The selector of the clusters that are chosen on the dashboard."""
_CONTROLLER: Final = "kafka_controller_kafkacontroller"


@attrs.frozen(kw_only=True)
class Panel:
    """A panel: lines over time, each query with its legend; `stat` shows the newest value alone."""

    title: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    stat: bool = False
    text: str = ""


@attrs.frozen(kw_only=True)
class Row:
    """A row of panels under a title."""

    title: str
    panels: tuple[Panel, ...]


@attrs.frozen(kw_only=True)
class Alert:
    """An alert: it holds for `lasts` before it fires."""

    name: str
    expr: str
    lasts: str
    severity: str
    summary: str

    @property
    def runbook(self) -> str:
        """The section of the page that says what to do."""
        return f"{RUNBOOKS}#{self.name.lower()}"


def _by_cluster(title: str, name: str, **more: Any) -> Panel:
    return Panel(title=title, queries=((f"{name}{CLUSTER}", "{{cluster}}"),), **more)


ROWS: Final = (
    Row(
        title="Clusters",
        panels=(
            Panel(
                title="Clusters that are not followed",
                queries=((f"count(kraftlake_follow_up{CLUSTER} == 0) or vector(0)", "not followed"),),
                stat=True,
            ),
            _by_cluster("Offline partitions", f"{_CONTROLLER}_offlinepartitionscount"),
            _by_cluster("Partitions under min ISR", "kraftlake_cluster_under_min_isr_partitions"),
            _by_cluster("Under-replicated partitions", "kraftlake_cluster_under_replicated_partitions"),
            _by_cluster("Fenced brokers", f"{_CONTROLLER}_fencedbrokercount"),
            _by_cluster("Active brokers", f"{_CONTROLLER}_activebrokercount"),
            _by_cluster("Offline directories", "kraftlake_cluster_offline_directories"),
            Panel(
                title="Reassigning and recovering partitions",
                queries=(
                    (f"kraftlake_cluster_reassigning_partitions{CLUSTER}", "{{cluster}} reassigning"),
                    (f"kraftlake_cluster_recovering_partitions{CLUSTER}", "{{cluster}} recovering"),
                    (f"kraftlake_cluster_led_by_fenced_partitions{CLUSTER}", "{{cluster}} led by a fenced broker"),
                ),
            ),
            _by_cluster("Partitions", f"{_CONTROLLER}_globalpartitioncount"),
            _by_cluster("Not led by their first replica", f"{_CONTROLLER}_preferredreplicaimbalancecount"),
            Panel(
                title="Findings of doctor",
                queries=((f"kraftlake_doctor_finding{CLUSTER}", "{{cluster}} {{severity}} {{check}}"),),
            ),
            Panel(title="Notices that wait", queries=(("kraftlake_notices_waiting", "{{receiver}}"),)),
        ),
    ),
    Row(
        title="Following",
        panels=(
            _by_cluster("Offsets that the lake lacks", "kraftlake_follow_lag_offsets"),
            _by_cluster("Age of the newest record", "kraftlake_follow_lag_seconds", unit="s"),
            Panel(
                title="State",
                queries=((f"kraftlake_follow_state{CLUSTER} == 1", "{{cluster}} {{state}}"),),
            ),
            _by_cluster("Epoch of the quorum's leader", "kraftlake_follow_leader_epoch"),
        ),
    ),
    Row(
        title="Lakes",
        panels=(
            Panel(
                title="Bytes",
                queries=((f"sum by (cluster) (kraftlake_lake_bytes{CLUSTER})", "{{cluster}}"),),
                unit="bytes",
            ),
            Panel(title="Files", queries=((f"sum by (cluster) (kraftlake_lake_files{CLUSTER})", "{{cluster}}"),)),
            Panel(
                title="Records a second",
                queries=((f"rate(kraftlake_lake_end_offset{CLUSTER}[5m])", "{{cluster}}"),),
            ),
            Panel(
                title="Commits since the last checkpoint",
                queries=((f"max by (cluster) (kraftlake_lake_unchecked_commits{CLUSTER})", "{{cluster}}"),),
            ),
            Panel(
                title="Offsets that a derived table lacks",
                queries=((f"kraftlake_lake_table_lag_offsets{CLUSTER}", "{{cluster}} {{table}}"),),
            ),
            Panel(
                title="Rows that differ, and logs that were shortened",
                queries=(
                    (f"kraftlake_lake_chain_faults{CLUSTER}", "{{cluster}} rows"),
                    (f"kraftlake_lake_shortened{CLUSTER}", "{{cluster}} shortened"),
                ),
            ),
        ),
    ),
    Row(
        title="Nodes on lakes, and processes",
        panels=(
            Panel(title="Active controllers", queries=((f"{_CONTROLLER}_activecontrollercount", "{{instance}}"),)),
            Panel(
                title="Commands that waited too long",
                queries=((f"rate({_CONTROLLER}_eventqueueoperationstimedoutcount[5m])", "{{instance}}"),),
            ),
            Panel(
                title="Partitions led by brokers",
                queries=(("kafka_server_replicamanager_leadercount", "{{instance}}"),),
            ),
            Panel(
                title="Largest lag of replicas",
                queries=(("kafka_server_replicafetchermanager_maxlag", "{{instance}}"),),
            ),
            Panel(title="Streams: offsets to go", queries=(("kraftlake_stream_records_outstanding", "{{query}}"),)),
            Panel(title="Memory", queries=(("process_resident_memory_bytes", "{{instance}}"),), unit="bytes"),
            Panel(title="CPU", queries=(("rate(process_cpu_seconds_total[5m])", "{{instance}}"),), unit="percentunit"),
        ),
    ),
)
"""The rows of the dashboard."""

ALERTS: Final = (
    Alert(
        name="KraftlakeOfflinePartitions",
        expr=f"{_CONTROLLER}_offlinepartitionscount > 0",
        lasts="1m",
        severity="critical",
        summary="Cluster {{ $labels.cluster }} has partitions without a leader.",
    ),
    Alert(
        name="KraftlakeUnderMinIsr",
        expr="kraftlake_cluster_under_min_isr_partitions > 0",
        lasts="1m",
        severity="critical",
        summary="Cluster {{ $labels.cluster }} has partitions that refuse writes with acks=all.",
    ),
    Alert(
        name="KraftlakeUnderReplicated",
        expr="kraftlake_cluster_under_replicated_partitions > 0",
        lasts="10m",
        severity="warning",
        summary="Cluster {{ $labels.cluster }} has partitions with replicas out of the ISR.",
    ),
    Alert(
        name="KraftlakeBrokerFenced",
        expr=f"{_CONTROLLER}_fencedbrokercount > 0",
        lasts="2m",
        severity="warning",
        summary="Cluster {{ $labels.cluster }} has fenced brokers.",
    ),
    Alert(
        name="KraftlakeDirectoryOffline",
        expr="kraftlake_cluster_offline_directories > 0 or kafka_log_logmanager_offlinelogdirectorycount > 0",
        lasts="1m",
        severity="critical",
        summary="Cluster {{ $labels.cluster }} has replicas in log directories that are gone.",
    ),
    Alert(
        name="KraftlakeUncleanablePartitions",
        expr="kafka_log_logcleanermanager_uncleanable_partitions_count > 0",
        lasts="5m",
        severity="warning",
        summary="Broker {{ $labels.instance }} can't clean compacted logs in {{ $labels.logDirectory }}.",
    ),
    Alert(
        name="KraftlakeCleanerStopped",
        expr="kafka_log_logcleaner_deadthreadcount > 0",
        lasts="5m",
        severity="warning",
        summary="Broker {{ $labels.instance }} has lost threads that clean compacted logs.",
    ),
    Alert(
        name="KraftlakeQuorumUnreachable",
        expr='kraftlake_follow_state{state="waiting"} == 1',
        lasts="1m",
        severity="critical",
        summary="No controller of cluster {{ $labels.cluster }} leads, or none can be reached.",
    ),
    Alert(
        name="KraftlakeFollowingStopped",
        expr='kraftlake_follow_state{state=~"stopped|retrying"} == 1',
        lasts="2m",
        severity="critical",
        summary="The lake of cluster {{ $labels.cluster }} is not written any more.",
    ),
    Alert(
        name="KraftlakeImportStalls",
        expr="kraftlake_follow_lag_seconds > 60",
        lasts="2m",
        severity="warning",
        summary="The newest record in the lake of cluster {{ $labels.cluster }} is old.",
    ),
    Alert(
        name="KraftlakeLakeShortened",
        expr="kraftlake_lake_shortened > 0 or kraftlake_lake_end_offset < kraftlake_lake_end_offset offset 5m",
        lasts="0m",
        severity="critical",
        summary="The log of the lake of cluster {{ $labels.cluster }} ends before offsets that it had held.",
    ),
    Alert(
        name="KraftlakeRowsDiffer",
        expr="kraftlake_lake_chain_faults > 0",
        lasts="0m",
        severity="critical",
        summary="Rows in the lake of cluster {{ $labels.cluster }} are not as they were appended.",
    ),
    Alert(
        name="KraftlakeLakeUnreadable",
        expr="increase(kraftlake_lake_measure_faults[15m]) > 2",
        lasts="5m",
        severity="critical",
        summary="The lake of cluster {{ $labels.cluster }} can't be read.",
    ),
    Alert(
        name="KraftlakeUpkeepFails",
        expr="increase(kraftlake_follow_upkeep_faults[1h]) > 3 or kraftlake_lake_unchecked_commits > 5000",
        lasts="15m",
        severity="warning",
        summary="The lake of cluster {{ $labels.cluster }} gets no upkeep.",
    ),
    Alert(
        name="KraftlakeCriticalFinding",
        expr='kraftlake_doctor_finding{severity="critical"} > 0',
        lasts="5m",
        severity="critical",
        summary="Doctor finds {{ $labels.check }} in cluster {{ $labels.cluster }}.",
    ),
    Alert(
        name="KraftlakeNoticesWait",
        expr="kraftlake_notices_waiting > 0",
        lasts="15m",
        severity="warning",
        summary="Notices of findings are not taken by {{ $labels.receiver }}.",
    ),
    Alert(
        name="KraftlakeNoActiveController",
        expr=f"sum by (job) ({_CONTROLLER}_activecontrollercount) == 0",
        lasts="30s",
        severity="critical",
        summary="None of the controllers of {{ $labels.job }} is active.",
    ),
)
"""The alerts, the worst first."""

_NAME: Final = re.compile(r"\b(?:kraftlake|kafka|process)_[a-z0-9_]+")


def queries() -> Iterator[str]:
    """All expressions of panels and alerts."""
    yield from (query for row in ROWS for panel in row.panels for query, _ in panel.queries)
    yield from (alert.expr for alert in ALERTS)


def names_in(query: str) -> set[str]:
    """The names of metrics in an expression."""
    return set(_NAME.findall(query))


def rules() -> dict[str, Any]:
    """The rules of Prometheus."""
    return {
        "groups": [
            {
                "name": "kraftlake",
                "rules": [
                    {
                        "alert": alert.name,
                        "expr": alert.expr,
                        "for": alert.lasts,
                        "labels": {"severity": alert.severity},
                        "annotations": {"summary": alert.summary, "runbook": alert.runbook},
                    }
                    for alert in ALERTS
                ],
            }
        ]
    }


def dashboard() -> dict[str, Any]:
    """The dashboard of Grafana."""
    panels: list[dict[str, Any]] = []
    top = 0
    for row in ROWS:
        panels.append({"id": len(panels) + 1, "type": "row", "title": row.title, "collapsed": False, "panels": [],
                       "gridPos": {"h": 1, "w": 24, "x": 0, "y": top}})  # fmt: skip
        top += 1
        for place, panel in enumerate(row.panels):
            panels.append(_panel(panel, len(panels) + 1, place % 3 * 8, top + place // 3 * 8))
        top += (len(row.panels) + 2) // 3 * 8
    return {
        "uid": "kraftlake",
        "title": "kraftlake",
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "tags": ["kafka", "kraftlake"],
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
                {
                    "name": "cluster", "type": "query", "label": "Cluster", "datasource": _SOURCE, "refresh": 2,
                    "query": {"query": "label_values(kraftlake_lake_end_offset, cluster)", "refId": "clusters"},
                    "multi": True, "includeAll": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"},
                },
            ]
        },
        "annotations": {"list": []},
        "panels": panels,
    }  # fmt: skip


_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


def _panel(panel: Panel, id_: int, x: int, y: int) -> dict[str, Any]:
    return {
        "id": id_,
        "type": "stat" if panel.stat else "timeseries",
        "title": panel.title,
        "description": panel.text,
        "datasource": _SOURCE,
        "gridPos": {"h": 8, "w": 8, "x": x, "y": y},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {} if panel.stat else {"legend": {"displayMode": "list", "placement": "bottom"}},
        "targets": [
            {"refId": chr(ord("A") + number), "datasource": _SOURCE, "expr": query, "legendFormat": legend}
            for number, (query, legend) in enumerate(panel.queries)
        ],
    }


def files() -> dict[Path, str]:
    """The files that are made of the declarations, by path."""
    made = "# Written by `python -m tools.observability`.\n"
    return {
        DASHBOARD: json.dumps(dashboard(), indent=1) + "\n",
        RULES: made + yaml.safe_dump(rules(), sort_keys=False, width=120),
    }


def main() -> None:
    """Write the files."""
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
