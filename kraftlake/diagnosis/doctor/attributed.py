"""The clients that made the changes which findings name."""

from __future__ import annotations

import attrs

from kraftlake.diagnosis.attribution.attribution import Attribution
from kraftlake.diagnosis.attribution.words import who_words
from kraftlake.diagnosis.doctor.broker_checks import RECENT_CHANGES
from kraftlake.diagnosis.doctor.diagnosis import Diagnosis
from kraftlake.diagnosis.doctor.finding import Finding
from kraftlake.diagnosis.doctor.group import Affected


def with_clients(diagnosis: Diagnosis, attribution: Attribution) -> Diagnosis:
    """The diagnosis with the client of each change that a finding names, in its words and its JSON form."""
    findings = tuple(_named(finding, attribution) for finding in diagnosis.findings)
    return attrs.evolve(diagnosis, findings=findings)


def _named(finding: Finding, attribution: Attribution) -> Finding:
    # other findings begin where a state does, which a record beside that of a client may have made
    if finding.check != RECENT_CHANGES:
        return finding
    return attrs.evolve(finding, groups=tuple(_by_client(group, attribution) for group in finding.groups))


def _by_client(group: Affected, attribution: Attribution) -> Affected:
    who = attribution.of(None if group.since is None else group.since.offset)
    if not who.is_of_client:
        return group
    words = [words for words, _ in who_words(who.to_json())]
    return attrs.evolve(group, reason=", ".join((group.reason, *words)), by=who)
