"""`kraftlake upkeep`: what a lake no longer keeps goes, and small files become large ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.parameters import LAKE, CountParameter, ParsedParameter
from kraftlake.cli.options.shared import command
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.moments import length_of_time
from kraftlake.runtime.words import counted

if TYPE_CHECKING:
    from kraftlake.metadata_log.maintenance.retention import Retention
    from kraftlake.server.lake_upkeep import LakeUpkeep, LakeUpkeepReport, Removal

_FOREVER = "forever"


def _window(given: str) -> int | str:
    """A length of time in ms, or `forever`."""
    return _FOREVER if given == _FOREVER else round(length_of_time(given).total_seconds() * 1_000)


@command("Remove what a lake no longer keeps, by its declared policy, and tidy it.", source=False)
@argument("lake", type=LAKE, help="The folder of a lake, or its URI.")
@option(
    "--keep",
    type=ParsedParameter("length of time", _window),
    metavar="TIME",
    help="Declare how much of the log and its tables stays, such as 90d, or forever.",
)
@option(
    "--newest",
    type=CountParameter(min=1),
    help="Declare how many of the newest snapshots stay (24 if never declared).",
)
@option(
    "--daily",
    type=CountParameter(min=0, max=36_500),
    metavar="DAYS",
    help="Declare for how many days one snapshot a day stays (30 if never declared); one a month stays for ever.",
)
@option("--dry-run", is_flag=True, help="Remove and declare nothing, list what would go.")
def upkeep(
    call: Call, lake: str, *, keep: int | str | None, newest: int | None, daily: int | None, dry_run: bool
) -> None:
    """Remove from LAKE what its declared policy does not keep, then compact, checkpoint and vacuum it.

    The policy stays in the lake: the services that keep a lake up follow it, too, once an hour. Without one, the log
    and all snapshots stay. The log is trimmed up to the newest snapshot that is older than the window, and its tables
    with it, so that everything within the window is answered as before. No snapshot goes with which the images of the
    log begin. Files leave the disk when the declared stream lag is over, for readers that have begun to read them.

    Time is that of the log's newest record, or this machine's if that is earlier. A clock that jumps removes a day at
    most.

    Examples:
        # declare a window, and remove what is older
        kraftlake upkeep lake --keep 90d
        # all of the log, but fewer snapshots
        kraftlake upkeep lake --keep forever --newest 48 --daily 14
        # only say what would go
        kraftlake upkeep lake --dry-run
    """
    from kraftlake.server.lake_upkeep import LakeUpkeep

    work = LakeUpkeep(lake)
    retention = _declared(work, keep, newest, daily)
    if retention is not None and retention != work.retention and not dry_run:
        work.declare(retention)
    report = work.run(retention=retention, dry_run=dry_run)
    if call.answered(_form(lake, report, dry_run=dry_run)):
        return
    for line in [*_removed(report.removal, dry_run=dry_run), *_tidied(report, dry_run=dry_run)]:
        call.terminal.line(line)


def _declared(work: LakeUpkeep, keep: int | str | None, newest: int | None, daily: int | None) -> Retention | None:
    """The policy of the options, and for those that are not given of the lake."""
    from attrs import evolve

    from kraftlake.metadata_log.maintenance.retention import Retention

    known = work.retention
    if keep is None and newest is None and daily is None:
        return known
    if known is None and keep is None:
        raise UsageError("The lake has declared no policy: give --keep as well, such as 90d, or forever.")
    changes: dict[str, Any] = {"newest_snapshots": newest, "daily_days": daily}
    if keep is not None:
        changes["keep_ms"] = None if isinstance(keep, str) else keep
    given = {name: value for name, value in changes.items() if value is not None or name == "keep_ms"}
    return evolve(known or Retention(), **given)


def _form(lake: str, report: LakeUpkeepReport, *, dry_run: bool) -> dict[str, Any]:
    from kraftlake.server.lake_upkeep import removal_form

    kept, done = report.removal.retention, report.round
    policy = None
    if kept is not None:
        policy = {"keepMs": kept.keep_ms, "newestSnapshots": kept.newest_snapshots, "dailyDays": kept.daily_days}
    return {
        "lake": lake,
        "dryRun": dry_run,
        "policy": policy,
        **removal_form(report.removal),
        "heldBack": [*report.removal.held_back],
        "filesCompacted": 0 if done is None else done.compaction.files,
        "removed": report.vacuum.removed,
        "orphans": report.vacuum.orphans,
        "keptAsTooYoung": report.vacuum.kept,
    }


def _removed(removal: Removal, *, dry_run: bool) -> list[str]:
    """The lines that say what went, and what did not."""
    would = "would go" if dry_run else "removed"
    states = [f"{would:<9}  the states of shards in _spark/state/{name}/" for name in removal.states]
    if removal.retention is None:
        return ["kept       all: the lake declares no policy (--keep 90d declares one)", *states]
    trim, lines = removal.trim, []
    if trim is not None and trim.files:
        lines.append(f"{would:<9}  offsets {trim.old_start} to {trim.new_start - 1} of the log")
    for name, rows in removal.tables.items():
        what = "rows" if rows is None else counted(rows, "row")
        lines.append(f"{would:<9}  {what} of {name}/ that concern earlier offsets alone")
    lines += [f"{would:<9}  snapshot {snapshot.name}" for snapshot in removal.snapshots]
    lines += states
    lines += [f"held back  {why}" for why in removal.held_back]
    return lines or [f"{would:<9}  nothing: all is within what the lake keeps"]


def _tidied(report: LakeUpkeepReport, *, dry_run: bool) -> list[str]:
    done, gone = report.round, report.vacuum
    lines = []
    if done is not None:
        files = counted(done.compaction.files, "small file")
        lines.append(f"compacted  {files} of the log, {counted(done.cleaned_up.commits, 'commit')} cleaned up")
    went = f"{counted(gone.removed, 'removed file')}, {counted(gone.orphans, 'orphan')}"
    lines.append(f"{'would free' if dry_run else 'freed':<10} {went}; {counted(gone.kept, 'file')} may still be needed")
    return lines
