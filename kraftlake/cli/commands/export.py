"""`kraftlake export`: an image as a snapshot file that Kafka reads."""

from __future__ import annotations

from pathlib import Path

import click

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.parameters import OUTPUT, regular_file
from kraftlake.cli.options.schemas import warn_left_out
from kraftlake.cli.options.shared import command
from kraftlake.cli.views.reports import show_export_report


@command("Write the cluster at any moment as a snapshot file that Kafka reads.", at=True)
@argument("file", type=OUTPUT, metavar="OUT.checkpoint", help="The file to write.")
@option(
    "--allow-loss",
    is_flag=True,
    help="Leave out what the image's metadata.version can't express, and take an offset inside of a batch.",
)
@option("--force", is_flag=True, help="Overwrite OUT.checkpoint if it exists.")
def export(call: Call, source: str, file: str, *, allow_loss: bool, force: bool) -> None:
    """Write the image of SOURCE at an offset, by default its last, as a KRaft snapshot file.

    Records have the versions that the image's metadata.version allows; what these can't express is an error, unless
    --allow-loss is given. The file holds all secrets.

    Examples:
        # the newest state
        kraftlake export {SAMPLE} newest.checkpoint
        # a past state, over an older file
        kraftlake export {SAMPLE} newest.checkpoint --at-offset 4592 --force
    """
    if Path(file).is_dir():
        raise click.UsageError(f"{file} is a folder: name the file to write in it.")
    target = regular_file(file, "a snapshot")
    if target.exists() and not force:
        raise click.ClickException(f"{file} exists already: give --force to overwrite it, or another name.")
    opened = call.open(source)
    with call.suggest_lenient():
        report = opened.export(target, call.at, allow_loss=allow_loss, lenient=not call.strict).to_json()
    for loss in report["losses"]:
        call.terminal.warn(f"left out: {loss}")
    warn_left_out(call.terminal, file)
    for note in report["notes"]:
        call.terminal.note(note)
    call.answer(report, show_export_report)
