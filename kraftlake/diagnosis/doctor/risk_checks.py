"""A check of the effect of the next loss."""

from __future__ import annotations

from collections.abc import Iterator

from kraftlake.diagnosis.doctor.check import Check
from kraftlake.diagnosis.doctor.check_input import CheckInput
from kraftlake.diagnosis.doctor.finding import CheckResult, Severity
from kraftlake.diagnosis.doctor.group import Affected
from kraftlake.diagnosis.doctor.help import safe
from kraftlake.diagnosis.trial.risks import broker_risks
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.runtime.words import counted


def _one_loss(case: CheckInput) -> Iterator[CheckResult]:
    """The partitions that the loss of one more broker takes offline, by that broker, in descending number.

    The loss of an only broker takes everything.
    """
    if case.image.features.metadata_version is None or len(case.image.cluster.brokers) == 1:
        return
    try:
        found = broker_risks(case.image)
    except KraftlakeError:  # a state that no controller leaves: a diagnosis of it is worth more than this note
        return
    risks = sorted((risk for risk in found if risk.offline), key=lambda risk: -len(risk.offline))
    groups = tuple(
        Affected(
            reason=f"no other broker than {risk.brokers[0]} may lead {'it' if len(risk.offline) == 1 else 'them'}",
            things=risk.offline,
        )
        for risk in risks
    )
    if groups:
        count = sum(len(risk.offline) for risk in risks)
        goes = "goes" if count == 1 else "go"
        yield CheckResult(
            sentence=f"{counted(count, 'partition')} {goes} offline if one more broker is lost",
            groups=groups,
            lasts=False,
        )


RISK_CHECKS = (
    Check(
        name="one_loss_from_offline",
        severity=Severity.INFO,
        text="partitions that the loss of one more broker takes offline",
        command="what-if {source} --each-broker{at}",
        helps=safe(
            "Start the brokers whose replicas are out of sync, and give topics of one replica more of them.",
        ),
        find=_one_loss,
    ),
)
"""The checks of risks."""
