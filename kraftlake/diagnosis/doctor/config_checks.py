"""A check of configs that have no effect."""

from __future__ import annotations

from collections.abc import Iterator

from kraftlake.diagnosis.doctor.check import Check
from kraftlake.diagnosis.doctor.check_input import CheckInput
from kraftlake.diagnosis.doctor.finding import CheckResult, Severity
from kraftlake.diagnosis.doctor.group import Affected
from kraftlake.diagnosis.doctor.help import safe
from kraftlake.runtime.words import counted


def _ignored(case: CheckInput) -> Iterator[CheckResult]:
    """The configs that the log sets and Kafka 4.4 does not know, by their names, each with its resources."""
    owners: dict[str, list[str]] = {}
    for resource, configs in sorted(case.image.configs.ignored.items()):
        kind = resource.type_name.lower().replace("_", " ")
        for name in sorted(configs.data):
            owners.setdefault(f"Kafka 4.4 has no {kind} config {name}", []).append(f"{kind} {resource.name}")
    if owners:
        count = counted(sum(map(len, owners.values())), "config")
        yield CheckResult(
            sentence=f"Kafka 4.4 ignores {count} that it does not know",
            groups=tuple(Affected(reason=reason, things=tuple(things)) for reason, things in owners.items()),
            lasts=False,
        )


CONFIG_CHECKS = (
    Check(
        name="ignored_configs",
        severity=Severity.INFO,
        text="configs that the log sets and Kafka 4.4 does not know",
        command="image {source} --part configs --all{at}",
        helps=safe(
            "Nothing has to be done for Kafka 4.4, which goes on without them. Releases of Kafka 4 that lack them, "
            "and don't ignore them, refuse each change of the configs of these resources: there, remove them first, "
            "with kafka-configs.sh --alter --delete-config.",
        ),
        find=_ignored,
    ),
)
"""The checks of configs."""
