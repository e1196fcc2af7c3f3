"""`kraftlake log compact`, `log trim` and `log vacuum`: the upkeep of a lake's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.parameters import LAKE, MOMENT, MeasureParameter
from kraftlake.cli.options.shared import command
from kraftlake.runtime.words import counted

if TYPE_CHECKING:
    from kraftlake.metadata_log.maintenance.compaction import Compaction
    from kraftlake.runtime.moments import Moment

_LAKE_HELP = "The folder of a lake."
_MINUTE_MS = 60_000


@command("Make a lake's small files into large ones, and checkpoint its tables.", name="log compact", source=False)
@argument("lake", type=LAKE, help=_LAKE_HELP)
def log_compact(call: Call, lake: str) -> None:
    """Merge the small files of LAKE in offset order, checkpoint its tables, clean up old commits.

    Its tables are the log and the derived tables. No row changes, and writers, readers and streams continue meanwhile.
    Commits that a stream within the declared lag may still have to read stay.

    Examples:
        # after an import, or now and then beside a writer
        kraftlake log compact lake
        # what was done, for scripts
        kraftlake log compact lake --json
    """
    from kraftlake.metadata_log.maintenance.upkeep import Upkeep
    from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy

    report = Upkeep(lake, UpkeepPolicy(compact_from=2)).run(force_checkpoint=True)
    form = {
        "lake": lake,
        **_as_json(report.compaction),
        "derived": {name: _as_json(done) for name, done in report.derived.items()},
        "checkpoints": report.checkpoints,
        "commitsCleanedUp": report.cleaned_up.commits,
        "checkpointsCleanedUp": report.cleaned_up.checkpoints,
    }
    if call.answered(form):
        return
    done = [_compacted(report.compaction)] if report.compaction.made else []
    done += [f"{_compacted(made)} of {name}/" for name, made in report.derived.items() if made.made]
    for number, line in enumerate(done or ["nothing to do"]):
        call.terminal.line(f"{'' if number else 'compacted':<12} {line}")
    versions = ", ".join(f"{table} at version {version}" for table, version in report.checkpoints.items())
    call.terminal.line(f"checkpoints  {versions or 'none: nothing was committed since the last ones'}")
    call.terminal.line(f"cleaned up   {counted(report.cleaned_up.commits, 'commit')} behind them")


def _as_json(done: Compaction) -> dict[str, int]:
    return {"filesCompacted": done.files, "filesMade": done.made}


def _compacted(done: Compaction) -> str:
    return f"{counted(done.files, 'small file')} into {counted(done.made, 'file')}"


@command("Remove the beginning of a lake's log, behind a snapshot.", name="log trim", source=False)
@argument("lake", type=LAKE, help=_LAKE_HELP)
@option(
    "--before",
    type=MOMENT,
    required=True,
    help="Keep this offset, or what was written since this time, and all after.",
)
@option(
    "--stream-lag",
    type=MeasureParameter(min=0),
    metavar="MINUTES",
    help="Declare first how far the slowest stream over the lake may lag behind (6 hours if never declared).",
)
@option(
    "--force",
    is_flag=True,
    help="Trim even what a table of a Spark job has still to read: the table must then be deleted and made anew.",
)
def log_trim(call: Call, lake: str, *, before: Moment, stream_lag: float | None, force: bool) -> None:
    """Remove the files of LAKE that hold nothing but what lies before N, an offset or a time. This can't be undone.

    It is refused where no whole snapshot covers what goes, where it was appended less than the declared stream lag
    ago, and where a table that a Spark job makes of the log has still to read it. Whole files go, so the log may begin
    a little below N afterwards. `kraftlake log vacuum` frees the space.

    Examples:
        # what a snapshot at 3532 stands for
        kraftlake log trim lake --before 3532 --stream-lag 0
        # what was written more than a week before its end
        kraftlake log trim lake --before now-7d
    """
    from kraftlake.metadata_log.maintenance.upkeep import Upkeep

    lag = None if stream_lag is None else round(stream_lag * _MINUTE_MS)
    offset = before if isinstance(before, int) else call.open(lake).offset_since(before)
    report = Upkeep(lake).trim(offset, stream_lag_ms=lag, force=force)
    earlier = _reaching_back(lake, report.new_start)
    form = {
        "lake": lake,
        "filesRemoved": report.files,
        "oldStartOffset": report.old_start,
        "startOffset": report.new_start,
        "tablesFrom": earlier,
    }
    if call.answered(form):
        return
    if report.files:
        removed = f"offsets {report.old_start} to {report.new_start - 1}, {counted(report.files, 'file')}"
        call.terminal.line(f"trimmed  {removed}: {lake} starts at offset {report.new_start} now")
    else:
        call.terminal.line(f"trimmed  nothing: no file of {lake} holds offsets below {offset} only")
    if earlier:
        kept = ", ".join(f"{name}/ from {first}" for name, first in earlier.items())
        call.terminal.line(f"tables   these still know what lies before: {kept} (`kraftlake tables trim` removes that)")


def _reaching_back(lake: str, start: int) -> dict[str, int]:
    """The first offsets of the derived tables that reach back before the log's start."""
    from kraftlake.tables.trimming import first_offsets

    return {name: first for name, first in first_offsets(lake).items() if first < start}


@command("Delete the files that no version of a lake's tables needs any more.", name="log vacuum", source=False)
@argument("lake", type=LAKE, help=_LAKE_HELP)
@option("--dry-run", is_flag=True, help="Delete nothing.")
@option(
    "--older-than",
    type=MeasureParameter(min=15),
    default=60.0,
    show_default=True,
    metavar="MINUTES",
    help="Orphans of this age; it must be longer than any commit or import of a commit takes.",
)
def log_vacuum(call: Call, lake: str, *, dry_run: bool, older_than: float) -> None:
    """Delete what compaction and trims removed longer ago than streams may lag, and what crashes left in LAKE.

    A file that a version of the table names is never touched, nor one that may belong to a commit that is being made.

    Examples:
        # what compaction, trims and crashes left
        kraftlake log vacuum lake
        # only say what would go
        kraftlake log vacuum lake --dry-run
    """
    from kraftlake.metadata_log.maintenance.upkeep import Upkeep
    from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy

    policy = UpkeepPolicy(orphan_age_ms=round(older_than * _MINUTE_MS))
    report = Upkeep(lake, policy).vacuum(dry_run=dry_run)
    form = {
        "lake": lake,
        "dryRun": dry_run,
        "removed": report.removed,
        "orphans": report.orphans,
        "keptAsTooYoung": report.kept,
    }
    if call.answered(form):
        return
    removed, orphans = counted(report.removed, "removed file"), counted(report.orphans, "orphan")
    call.terminal.line(f"{'would delete' if dry_run else 'deleted'}  {removed}, {orphans}")
    call.terminal.line(f"{'kept':<{12 if dry_run else 7}}  {counted(report.kept, 'file')} that may still be needed")
