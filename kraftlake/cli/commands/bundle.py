"""`kraftlake bundle` and `kraftlake translate`: a log to hand over, and answers about it under the real names."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.parameters import OUTPUT, regular_file
from kraftlake.cli.options.shared import command
from kraftlake.cli.views.bundle_view import show_bundle, show_contents


@command("What can be handed over of a log, without secrets and names?")
@option("-o", "--file", "file", type=OUTPUT, help="The bundle, a .tar.gz. Without it, the contents are listed alone.")
@option(
    "--pseudonyms",
    "key_file",
    type=OUTPUT,
    metavar="KEY",
    help="Replace names by pseudonyms, and write the key file that translates them back.",
)
@option("--extend-key", is_flag=True, help="KEY exists: go on with its pseudonyms.")
@option("--force", is_flag=True, help="Overwrite the bundle if it exists.")
@option("--yes", is_flag=True, help="Don't ask.")
def bundle(
    call: Call,
    source: str,
    *,
    file: str | None,
    key_file: str | None,
    extend_key: bool,
    force: bool,
    yes: bool,
) -> None:
    """Write the log of SOURCE and its snapshots as Kafka's own files, to hand over to others.

    SCRAM salts and keys, the principals of delegation tokens, and the values of sensitive and unknown configs are
    blanked. With --pseudonyms the names of topics, principals, hosts, racks, clients, groups and transactions are
    replaced too, in ACLs, quotas and configs as well, each by the same pseudonym everywhere; KEY stays with you.
    Offsets, times, ids, ports and listeners stay, and so does the cluster's id. The contents are listed first.

    The bundle is a SOURCE of every command, and unpacked a log directory that a controller of Kafka starts on.

    Examples:
        # what a bundle would hold
        kraftlake bundle {SAMPLE} --pseudonyms ours.key
        # the bundle to hand over, and the key to keep
        kraftlake bundle {SAMPLE} --pseudonyms ours.key -o handover.tar.gz --yes
    """
    from kraftlake.replay.bundle.bundle_file import write_bundle
    from kraftlake.replay.bundle.bundle_plan import plan_bundle
    from kraftlake.replay.bundle.key_file import new_pseudonyms
    from kraftlake.runtime.whole_file import check_folder_of

    if extend_key and key_file is None:
        raise click.UsageError("--extend-key goes on with the pseudonyms of a key: give --pseudonyms KEY.")
    target = None if file is None else regular_file(file, "a bundle")
    if target is not None:
        check_folder_of(target)
        if target.exists() and not force:
            raise click.ClickException(f"{file} exists already: give --force to overwrite it, or another name.")
        if not yes and not sys.stdin.isatty():
            raise click.UsageError("The command can only ask whether to write a bundle in a terminal: give --yes.")
    pseudonyms = None if key_file is None else new_pseudonyms(key_file, extend=extend_key)
    with call.progress() as progress, call.suggest_lenient():
        plan = plan_bundle(
            call.open(source, warn_torn=False), pseudonyms=pseudonyms, lenient=not call.strict, progress=progress
        )
    form = {"source": source, **plan.to_json()}
    if call.in_words:
        show_contents(call.terminal, form)
        sys.stdout.flush()
    if target is None:
        call.answered(form)
        return
    if not yes:
        click.confirm(f"Write this to {file}?", abort=True, err=True)
    size = write_bundle(plan, target, key_file=key_file)
    call.answer({**form, "file": file, "keyFile": key_file, "sizeInBytes": size}, show_bundle)


@command("What does an answer about a bundle say under the real names?", source=False, answers=False)
@argument("key_file", type=OUTPUT, metavar="KEY", help="The key file that `bundle --pseudonyms` wrote.")
@argument("file", type=OUTPUT, metavar="[FILE]", required=False, help="The answer; by default stdin.")
def translate(call: Call, key_file: str, file: str | None) -> None:  # noqa: ARG001
    """Print an answer about a bundle with the real names in place of the pseudonyms; the rest stays as it is.

    In JSON, names are written as JSON has them.

    Examples:
        # an answer that came back by mail
        kraftlake translate ours.key answer.txt
    """
    from kraftlake.replay.bundle.key_file import read_key
    from kraftlake.replay.bundle.pseudonyms import translated

    _, names = read_key(key_file)
    try:
        text = sys.stdin.read() if file in (None, "-") else Path(file).read_text("utf-8")
    except (OSError, ValueError) as fault:
        raise click.ClickException(f"{file or 'stdin'} can't be read as text: {fault}") from None
    sys.stdout.write(translated(text, names))
