"""`kraftlake shell`, `ls` and `cat`: the nodes of Kafka's metadata shell, at any moment."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.shared import command


@command("What is there to walk in, as in Kafka's metadata shell, at any moment?", at=True, secrets=True, long=True)
@option("-c", "--command", "commands", multiple=True, metavar="LINE", help="Run this line, and end. Repeatable.")
def shell(call: Call, source: str, *, commands: tuple[str, ...]) -> None:
    """Walk in a tree of nodes, such as /image/topics/byName/foo/0, with ls, cd, cat, find and tree.

    Paths and values are those of Kafka's metadata shell. `at` goes to another offset or time; log, diff, since and
    blame ask what happened to a node. Lines are read from a terminal, which completes names and keeps a history, or
    from stdin: there a line that begins with # is a comment, and where a line fails, the others are run, and the exit
    code is that of the first that failed.

    Examples:
        # a prompt; `help` lists the commands
        kraftlake shell {SAMPLE}
        # as the cluster was after offset 4592
        kraftlake shell {SAMPLE} --at 4592
        # one command after the other
        kraftlake shell {SAMPLE} -c 'cd /image/topics/byName' -c 'ls elr-*'
        # every path there is
        kraftlake shell {SAMPLE} -c 'find /'
        # what two moments differ in of a topic
        kraftlake shell {SAMPLE} -c 'at 4639' -c 'diff 4592 /image/topics/byName/elr-a'
    """
    from kraftlake.cli.shell.commands import run_script
    from kraftlake.cli.shell.session import Session

    if source == "-" and not commands:
        raise click.UsageError("SOURCE - takes stdin, which lines would be read from: give them with -c.")
    session = Session(call, call.open(source))
    if commands:
        code = run_script(session, commands)
    elif call.terminal.interactive and sys.stdin is not None and sys.stdin.isatty():
        from kraftlake.cli.shell.prompt import run_prompt

        code = run_prompt(session)
    else:
        code = run_script(session, _lines())
    if code:
        raise click.exceptions.Exit(code)


def _lines() -> Iterable[str]:
    """The lines of stdin, as they arrive; bytes that are not UTF-8 match no name."""
    if sys.stdin is None:
        return ()
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="surrogateescape")
    return iter(sys.stdin.readline, "")


_PATHS = "Paths in the tree, as in Kafka's metadata shell; * and ? match, {a,b} is one of several."


@command("Which nodes has a directory of the tree that `shell` walks in?", at=True, long=True)
@argument("paths", nargs=-1, metavar="[PATH...]", help=f"{_PATHS} Without any, the root.")
def ls(call: Call, source: str, *, paths: tuple[str, ...]) -> None:
    """List the names in directories of the tree, and those of other nodes: `kraftlake shell` explains it.

    Examples:
        # the parts of an image
        kraftlake ls {SAMPLE} /image
        # the topics at an earlier offset
        kraftlake ls {SAMPLE} /image/topics/byName --at 4592
        # for other programs, an object a line
        kraftlake ls {SAMPLE} /image/cluster/brokers --json
    """
    from kraftlake.cli.shell.session import Session
    from kraftlake.cli.shell.walking import list_nodes

    list_nodes(Session(call, call.open(source)), paths)


@command("What is the value of a node of that tree?", at=True, secrets=True, long=True)
@argument("paths", nargs=-1, required=True, metavar="PATH...", help=_PATHS)
def cat(call: Call, source: str, *, paths: tuple[str, ...]) -> None:
    """Show the values of nodes as Kafka's metadata shell prints them: `kraftlake shell` explains the tree.

    With --json a value is in the form of `kraftlake image --json`. Secrets are shown as (redacted) unless
    --show-secrets is given.

    Examples:
        # a partition
        kraftlake cat {SAMPLE} /image/topics/byName/elr-a/0
        # the configs of a topic
        kraftlake cat {SAMPLE} '/image/configs/TOPIC:fixed-a/*'
        # for other programs
        kraftlake cat {SAMPLE} /image/cluster/brokers/1 --json
    """
    from kraftlake.cli.shell.session import Session
    from kraftlake.cli.shell.walking import show_values

    show_values(Session(call, call.open(source)), paths)
