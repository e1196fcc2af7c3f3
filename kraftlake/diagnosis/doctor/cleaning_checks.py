"""A check of compacted logs that are not cleaned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kraftlake.diagnosis.doctor.check import Check
from kraftlake.diagnosis.doctor.check_input import CheckInput
from kraftlake.diagnosis.doctor.finding import CheckResult, Severity
from kraftlake.diagnosis.doctor.group import Affected
from kraftlake.diagnosis.doctor.help import safe
from kraftlake.runtime.words import counted, duration

if TYPE_CHECKING:
    from kraftlake.replica_manager.logs.cleaning.compacted_folders import CompactedFolder

_LONG_MS: Final = 24 * 3_600_000
"""The time in which a cleaner should have come to a log that is due: it may have many others before."""


def _uncleaned(case: CheckInput) -> Iterator[CheckResult]:
    """The compacted logs that were due a day before the image, and still are."""
    due = [log for folders in case.folders for log in folders.report.compacted if log.was_due(case.end_ms - _LONG_MS)]
    if due:
        were = "was" if len(due) == 1 else "were"
        yield CheckResult(
            sentence=f"{counted(len(due), 'compacted log')} {were} not cleaned for more than a day",
            groups=tuple(Affected(reason=_reason(log, case.end_ms), things=(log.path,)) for log in due),
        )


def _reason(log: CompactedFolder, now_ms: int) -> str:
    total, oldest = log.clean_bytes + log.dirty_bytes, log.oldest_dirty_ms
    since = "" if oldest is None else f", some for {duration(now_ms - oldest)}"
    last = "no cleaning is known" if log.cleaned_to is None else f"it was cleaned up to offset {log.cleaned_to}"
    return f"{log.dirty_bytes:,} of {total:,} bytes without the active segment are dirty{since}; {last}"


CLEANING_CHECKS = (
    Check(
        name="uncleaned_logs",
        severity=Severity.WARNING,
        text="compacted logs in the log directories that are dirty enough, and were not cleaned for a day",
        command="image {source} --part configs --all{at}",
        helps=safe(
            "Look at the broker's log: a log that its cleaner could not clean is set aside until the broker starts "
            "again. Nothing is cleaned either where log.cleaner.enable is false, or behind a transaction that was left "
            "open: kafka-transactions.sh find-hanging.",
        ),
        find=_uncleaned,
    ),
)
"""The checks of cleaning."""
