"""The reference of all commands, `docs/cli.md`, made out of their `--help`.

`python -m kraftlake.cli.reference > docs/cli.md` writes it; a test checks that it is current.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import click

from kraftlake.cli.application import application
from kraftlake.cli.command import Context

_WIDTH = 100
_ANSI = re.compile(r"\x1b\[[0-9;]*m")

_INTRODUCTION = """\
# The kraftlake command

Every command looks at one SOURCE and changes nothing there; those that write name what they write. A SOURCE is

- a Kafka metadata directory: `__cluster_metadata-0`, or the log directory that contains it;
- a file of one: a segment (`00000000000000000000.log`) or a snapshot (`….checkpoint`), recognised by content;
- an archive of one: `.tar`, `.tar.gz` or `.zip`, read as a stream and never extracted;
- a lake: a folder that `kraftlake import`, `fork` or `format` made, or `s3://BUCKET/PREFIX` (with the package extra
  `s3`; endpoint, region and keys come from the `AWS_…` variables of the environment).

kraftlake recognises the kind by content; the error for anything else names what it is.

**Offsets** are Kafka's and inclusive. An image at offset N holds everything up to and including N; `diff N M` and
`local-changes --from N --to M` tell of the offsets after N up to M, and −1 stands for the empty image before the
first record. **Times** are ISO 8601, UTC unless they name a zone (`--at-time` takes milliseconds since 1970 too): the
last offset whose batch time is at or before that. `--from`, `--to` and both sides of `diff` take them in place of
offsets; a range from a time on begins after the last batch of before it. **Secrets** (SCRAM keys, sensitive configs)
read `(redacted)` unless `--show-secrets` is given.

**Output.** Answers go to stdout, everything else to stderr. `--json` prints JSON and nothing else on stdout, the same
on a terminal and in a pipe. Without it a person gets colours on a terminal and plain text in a pipe (`NO_COLOR` and
`--color` decide otherwise). Control characters in names from the log are shown as escapes.

**Exit codes.** 0: done. 1: the source is unsound, or what was asked for can't be had. 2: the command line is wrong.
130: interrupted (`import --follow` too, once an append under way is done). 129, 143: hung up, terminated. 141: the
reader of stdout went away. A fault is one sentence on stderr that starts with `error:`;
should kraftlake itself be at fault, `KRAFTLAKE_TRACEBACK=1` shows where.

**Completion** of commands, options and record types: `eval "$(_KRAFTLAKE_COMPLETE=bash_source kraftlake)"`
(or `zsh_source`, `fish_source`).

What follows is the `--help` of each command.
"""


def reference() -> str:
    """The text of `docs/cli.md`."""
    sections = [_INTRODUCTION]
    for path, command, context in walk():
        sections.append(f"## {path}\n\n```text\n{_help(command, context)}\n```\n")
    return "\n".join(sections)


def walk() -> Iterator[tuple[str, click.Command, Context]]:
    """Every command with its full name and a context to ask it for help in, the groups before their commands."""
    root = Context(application, info_name="kraftlake", terminal_width=_WIDTH)
    yield from _walk("kraftlake", application, root)


def _walk(path: str, command: click.Command, context: Context) -> Iterator[tuple[str, click.Command, Context]]:
    yield path, command, context
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            child_context = Context(child, info_name=name, parent=context, terminal_width=_WIDTH)
            yield from _walk(f"{path} {name}", child, child_context)


def _help(command: click.Command, context: Context) -> str:
    return "\n".join(line.rstrip() for line in _ANSI.sub("", command.get_help(context)).splitlines())


if __name__ == "__main__":
    sys.stdout.write(reference())
