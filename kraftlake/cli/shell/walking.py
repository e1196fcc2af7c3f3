"""The commands of the shell that navigate the nodes."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from kraftlake.cli.options.command import Command, argument, option
from kraftlake.cli.output.formats import Table
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.shell.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from kraftlake.cli.output.terminal import Terminal
    from kraftlake.image.nodes.node import Leaf
    from kraftlake.image.nodes.paths import FoundNode

PATHS = "Paths of nodes; * and ? match, {a,b} is one of several. Without any, the current directory."
PATH = "The path of a node; by default the current directory."


def shell_command(name: str, *, question: str) -> Callable[[Callable[..., None]], Command]:
    """Make a function of a Session a command of the shell; `question` is its line in the list of commands."""

    def decorate(function: Callable[..., None]) -> Command:
        made: Command = click.command(name, cls=Command, short_help=question)(click.pass_obj(function))
        return made

    return decorate


paths_argument = argument("paths", nargs=-1, metavar="[PATH...]", help=PATHS)
path_argument = argument("path", default=".", metavar="[PATH]", help=PATH)


@shell_command("ls", question="List nodes.")
@paths_argument
def ls(session: Session, paths: Sequence[str]) -> None:
    """List the names of the nodes in directories, and those of other nodes.

    Examples:
        # what there is of a topic
        ls /image/topics/byName/elr-a
        # some brokers
        ls /image/cluster/brokers/{1,2}
    """
    list_nodes(session, paths)


def list_nodes(session: Session, paths: Sequence[str]) -> None:
    """Write the output of `ls`, then raise ClickException for missing paths."""
    from kraftlake.cli.views.node_view import listed

    with session.found(paths) as found:
        nodes = (node for one in found for node in (one.children() if one.node.is_directory else (one,)))
        _answer(session, _paths(nodes), listed(session.call.terminal, found))


@shell_command("cat", question="Show the values of nodes.")
@argument("paths", nargs=-1, required=True, metavar="PATH...", help=PATHS)
def cat(session: Session, paths: Sequence[str]) -> None:
    """Show the values of nodes as Kafka's shell prints them: one a line where that has room.

    Examples:
        # a partition
        cat /image/topics/byName/elr-a/0
        # the configs of a topic
        cat /image/configs/TOPIC:elr-a/*
    """
    show_values(session, paths)


def show_values(session: Session, paths: Sequence[str]) -> None:
    """Write the output of `cat`, then raise an error for missing paths and directories."""
    from kraftlake.image.nodes.node import Leaf

    found, missing = session.find(paths)
    leaves = [(one, one.node) for one in found if isinstance(one.node, Leaf)]
    _answer(session, _nodes(one for one, _ in leaves), _values(session.call.terminal, leaves))
    faults = [f"{one.path} is a directory: ls and tree show what is in it" for one in found if one.node.is_directory]
    if missing:
        faults.append(missing)
    if faults:
        raise click.ClickException("; ".join(faults))


def _values(terminal: Terminal, leaves: Sequence[tuple[FoundNode, Leaf]]) -> Iterator[Sequence[Piece]]:
    """The lines of values; on a terminal each of several has its path above it."""
    from kraftlake.cli.views.node_view import leaf_lines

    for found, leaf in leaves:
        if terminal.interactive and len(leaves) > 1:
            yield ((found.path, Style.QUIET),)
        yield from leaf_lines(terminal, leaf.text)


@shell_command("tree", question="Show nodes with all that is below them.")
@paths_argument
def tree(session: Session, paths: Sequence[str]) -> None:
    """Show all nodes below others, each with its value.

    Examples:
        # all that is known of a broker's configs
        tree /image/configs/BROKER*
    """
    from kraftlake.cli.views.node_view import tree_lines

    with session.found(paths) as found:
        terminal = session.call.terminal
        lines = (line for one in found for line in tree_lines(terminal, one, headed=len(found) > 1))
        _answer(session, _nodes(found), lines)


@shell_command("find", question="List the paths of all nodes below others.")
@paths_argument
@option("--name", metavar="GLOB", help="Only nodes of this name; * and ? match.")
def find(session: Session, paths: Sequence[str], name: str | None) -> None:
    """List the absolute paths of nodes and of all that is below them.

    Examples:
        # every path there is
        find /
        # where a config is set
        find /image/configs --name 'retention.*'
    """
    with session.found(paths) as found:
        nodes = (
            node
            for one in found
            for node in one.below()
            if name is None or (node.names and fnmatch.fnmatchcase(node.names[-1], name))
        )
        _answer(session, _paths(nodes), map(_path_line, nodes))


def _answer(session: Session, table: Table, lines: Iterable[Sequence[Piece]]) -> None:
    """Write rows, as text the lines."""
    if session.call.in_words:
        session.call.terminal.lines(lines)
    else:
        session.call.write_rows(table)


def _paths(found: Iterable[FoundNode]) -> Table:
    """The rows of nodes that are listed."""
    return Table(("path", "directory"), ({"path": one.path, "directory": one.node.is_directory} for one in found))


def _nodes(found: Iterable[FoundNode]) -> Table:
    """The rows of nodes that are shown."""
    return Table(("path", "value"), ({"path": one.path, "value": one.node.value} for one in found))


def _path_line(found: FoundNode) -> Sequence[Piece]:
    return ((found.path, Style.NAME if found.node.is_directory else Style.PLAIN),)


@shell_command("cd", question="Go to a directory.")
@argument("path", default="/", metavar="[PATH]", help="The directory to go to; by default the root.")
def cd(session: Session, path: str) -> None:
    """Change the current directory, in which relative paths begin."""
    found = session.find_single(path)
    if not found.node.is_directory:
        raise click.ClickException(f"{found.path} is not a directory: cat shows it")
    session.cwd = found.names


@shell_command("pwd", question="Show the current directory.")
def pwd(session: Session) -> None:
    """Show the path of the current directory."""
    from kraftlake.image.nodes.paths import path_of

    path = path_of(session.cwd)
    session.call.answer({"path": path}, lambda terminal, _: terminal.line(path))


@shell_command("at", question="Look at another moment, or show which one it is.")
@argument("moment", nargs=-1, metavar="[OFFSET|TIME|end]", help="An offset, ISO 8601, now-15m, 07:46, or end.")
def at(session: Session, moment: Sequence[str]) -> None:
    """Move to the image after an offset, or at a time (yesterday 23:10), and show its offset and time.

    Examples:
        # the cluster after offset 4592
        at 4592
        # a quarter of an hour before the log's end
        at now-15m
        # the log's end
        at end
    """
    if moment:
        session.move_to(None if moment == ("end",) else session.moment(" ".join(moment)))
    session.note_moment()


@shell_command("history", question="Show the lines that were typed.")
@argument("count", type=click.IntRange(min=0), required=False, metavar="[N]", help="The last N lines alone.")
def history(session: Session, count: int | None) -> None:
    """Show the lines that were typed, also in earlier shells, the oldest first."""
    first = 0 if count is None else max(0, len(session.lines) - count)
    numbered = list(enumerate(session.lines, 1))[first:]
    rows = Table(("number", "line"), ({"number": number, "line": line} for number, line in numbered))
    _answer(session, rows, (((f"{number:5}  ", Style.QUIET), line) for number, line in numbered))


@shell_command("exit", question="End the shell; Ctrl-D does, too.")
def exit_(session: Session) -> None:
    """End the shell."""
    session.has_ended = True
