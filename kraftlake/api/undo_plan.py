"""A plan of a source, which can be applied."""

from __future__ import annotations

import os
from pathlib import Path

import attrs

from kraftlake.diagnosis.undo.apply_plan import ALWAYS, apply_plan
from kraftlake.diagnosis.undo.applying import Applied, Pace
from kraftlake.diagnosis.undo.plan import Plan
from kraftlake.diagnosis.undo.step import StepClass
from kraftlake.replay.queries.source import LogSource
from kraftlake.runtime.arguments import path_text, text


@attrs.frozen(kw_only=True)
class UndoPlan(Plan):
    """A plan, with the source that it was made of."""

    source: LogSource = attrs.field(eq=False, repr=False)

    def apply(
        self,
        on: str,
        *,
        journal: str | os.PathLike[str],
        access: bool = False,
        destructive: bool = False,
        command_config: str | os.PathLike[str] | None = None,
        rate: float = 10.0,
    ) -> Applied:
        """Take the steps of the plan at the cluster itself: `kraftlake undo --apply`.

        `on` is `HOST:PORT[,…]` of its brokers or controllers. Steps that widen access are taken only with `access`,
        those that delete topics, users or records with `destructive`. Each request is a line in the file `journal`, at
        most `rate` steps are taken in a second. A second application goes on where the first one ended. Raises
        ApplyError at the first step that can't be taken, NodeError where the cluster does not answer, OtherClusterError
        where it is another one.
        """
        wanted = ((access, StepClass.ACCESS), (destructive, StepClass.DESTRUCTIVE))
        return apply_plan(
            self, self.source, text(on, "the addresses of a cluster"), journal=Path(path_text(journal)),
            classes=(*ALWAYS, *(one for is_wanted, one in wanted if is_wanted)), command_config=command_config,
            pace=Pace(rate=rate),
        )  # fmt: skip
