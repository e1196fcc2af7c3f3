"""An operator's questions about a log: since when, which record made it so, where a condition began, what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.diagnosis.bisection import Bisected, bisect
    from kraftlake.diagnosis.blaming import blame, blame_all, blamed, holding_since, newest_changes
    from kraftlake.diagnosis.changes import Change, Changes, changes_of
    from kraftlake.diagnosis.condition_parser import parse_condition
    from kraftlake.diagnosis.conditions import Condition
    from kraftlake.diagnosis.doctor.diagnosis import CHECKS, Diagnosis, diagnose
    from kraftlake.diagnosis.doctor.finding import Finding, Severity
    from kraftlake.diagnosis.doctor.help import Help, HelpRisk
    from kraftlake.diagnosis.leadership import MAY_LEAD, broker_words, may_lead, may_lead_words
    from kraftlake.diagnosis.page.writing import PageReport, write_page
    from kraftlake.diagnosis.quorum_health import Verdict, node_faults, quorum_verdicts
    from kraftlake.diagnosis.since import since_json, since_of
    from kraftlake.diagnosis.things import Thing
    from kraftlake.diagnosis.trial.risks import Risk
    from kraftlake.diagnosis.trial.steps import Step, StepKind
    from kraftlake.diagnosis.trial.what_if import WhatIf, what_if


__all__ = [
    "CHECKS",
    "MAY_LEAD",
    "Bisected",
    "Change",
    "Changes",
    "Condition",
    "Diagnosis",
    "Finding",
    "Help",
    "HelpRisk",
    "PageReport",
    "Risk",
    "Severity",
    "Step",
    "StepKind",
    "Thing",
    "Verdict",
    "WhatIf",
    "bisect",
    "blame",
    "blame_all",
    "blamed",
    "broker_words",
    "changes_of",
    "diagnose",
    "holding_since",
    "may_lead",
    "may_lead_words",
    "newest_changes",
    "node_faults",
    "parse_condition",
    "quorum_verdicts",
    "since_json",
    "since_of",
    "what_if",
    "write_page",
]

__getattr__, __dir__ = lazy_exports(__name__, __all__)
