"""A check: its name, its severity, the command that shows more, what helps, and the function that finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import attrs

from kraftlake.diagnosis.doctor.case import Case
from kraftlake.diagnosis.doctor.finding import Finding, Found, Severity


@attrs.frozen(kw_only=True)
class Check:
    """A check. `text` says what it looks for; `find` gives what it has found, at most once for each severity.

    `command` is a template of `Case.command`. With `of_image` it needs an image, and its past.
    """

    name: str
    severity: Severity
    text: str
    command: str
    helps: str
    find: Callable[[Case], Iterable[Found]]
    of_image: bool = True

    def findings(self, case: Case) -> Iterator[Finding]:
        """The findings in a case."""
        if self.of_image and case.replay is None:
            return
        for found in self.find(case):
            yield Finding(
                check=self.name,
                severity=self.severity if found.severity is None else found.severity,
                sentence=found.sentence,
                groups=found.groups,
                lasts=found.lasts,
                command=case.command(self.command) if found.command is None else found.command,
                helps=self.helps if found.helps is None else found.helps,
            )
