"""A check: its name, its severity, the command that shows more, the remedies, and the function that finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs

from kraftlake.diagnosis.doctor.check_input import CheckInput
from kraftlake.diagnosis.doctor.finding import CheckResult, Finding, Severity
from kraftlake.diagnosis.doctor.help import Help


@attrs.frozen(kw_only=True)
class Check:
    """A check. `text` says what it looks for; `find` returns its findings, at most one for each severity.

    `command` is a template of `Case.command`; `state_command`, where set, takes its place where the log does not show
    since when the finding holds. `helps` applies to every finding without remedies of its own, and so destroys nothing.
    With `of_image` the check needs an image, and its past.
    """

    name: str
    severity: Severity
    text: str
    command: str
    helps: tuple[Help, ...] = attrs.field(validator=attrs.validators.min_len(1))
    find: Callable[[CheckInput], Iterable[CheckResult]]
    of_image: bool = True
    state_command: str = ""

    @helps.validator
    def _is_safe(self, _: Any, helps: tuple[Help, ...]) -> None:
        if any(one.risk.is_destructive for one in helps):
            raise ValueError(f"{self.name}: what destroys data needs evidence, and so belongs to what is found")

    def findings(self, case: CheckInput) -> Iterator[Finding]:
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
                command=case.command(self._template(found)) if found.command is None else found.command,
                helps=found.helps or self.helps,
            )

    def _template(self, found: CheckResult) -> str:
        is_dated = any(group.since is not None for group in found.groups)
        return self.command if is_dated or not self.state_command else self.state_command
