"""All commands of the shell, and the execution of a line."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Final

import click

from kraftlake.cli.faults import exit_code_of
from kraftlake.cli.options.command import Command, Context, HelpFormatter, argument
from kraftlake.cli.shell.questions import blame, diff, log, since
from kraftlake.cli.shell.session import Session
from kraftlake.cli.shell.walking import at, cat, cd, exit_, find, history, ls, pwd, shell_command, tree
from kraftlake.runtime.words import did_you_mean


@shell_command("help", question="List the commands.")
def help_(session: Session) -> None:
    """List the commands; `man COMMAND` explains one."""
    formatter = HelpFormatter(max_width=session.call.terminal.width)
    with formatter.section("Commands"):
        formatter.write_dl([(command.name or "", command.short_help or "") for command in COMMANDS.values()])
    formatter.write("`man COMMAND` explains one.\n")
    _write(session, formatter.getvalue())


@shell_command("man", question="Show the manual of a command.")
@argument("command", metavar="COMMAND", help="The name of a command.")
def man(session: Session, command: str) -> None:
    """Show what a command does, its arguments, its options, and examples."""
    explained = _command(command)
    with Context(explained, info_name=command, color=session.call.terminal.colour) as context:
        _write(session, explained.get_help(context) + "\n")


def _write(session: Session, text: str) -> None:
    terminal = session.call.terminal
    terminal.text(text if terminal.colour else click.unstyle(text))


COMMANDS: Final[dict[str, Command]] = {
    command.name or "": command
    for command in (ls, cd, cat, find, tree, pwd, at, log, diff, since, blame, man, help_, history, exit_)
}


_LARGEST_OF_ITS_OWN: Final = 128


def _command(name: str) -> Command:
    if name not in COMMANDS:
        hint = did_you_mean(name, COMMANDS) or "`help` lists them"
        raise click.UsageError(f"there is no command {name}; {hint}")
    return COMMANDS[name]


def run_line(session: Session, line: str) -> int:
    """Run one line; errors go to stderr. Returns the exit code, 0 for a line without a command."""
    session.lines.append(line)

    def run() -> None:
        words = _words(line)
        if words:
            command = _command(words[0])
            colour = session.call.terminal.colour
            with command.make_context(words[0], words[1:], obj=session, color=colour) as context:
                command.invoke(context)

    return exit_code_of(run)


def run_script(session: Session, lines: Iterable[str]) -> int:
    """Run lines one after the other, to their end or `exit`; returns the first exit code that is not 0.

    Lines that begin with # are comments. An interrupt of a line ends the script.
    """
    first_failure = 0
    for line in lines:
        code = run_line(session, line.rstrip("\n"))
        if is_end(code):
            return code
        first_failure = first_failure or code
        if session.has_ended:
            break
    return first_failure


def is_end(code: int) -> bool:
    """Whether an exit code means that a signal ended the line, or that the reader of stdout closed it."""
    return code > _LARGEST_OF_ITS_OWN


def _words(line: str) -> list[str]:
    """The words of a line as a POSIX shell splits them; none of a comment."""
    if line.lstrip().startswith("#"):
        return []
    try:
        return shlex.split(line)
    except ValueError:
        raise click.UsageError("a quote has no end: close it, or write a backslash before it") from None
