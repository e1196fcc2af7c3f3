"""The click classes of the command line: sections and examples in `--help`, faults as exit codes."""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import click

from kraftlake.cli.output.theme import Style, paint

_NEGATIVE_NUMBER = re.compile(r"-\d+")
_HELP_WIDTH = 100
_GIVEN = "kraftlake.given"

SAMPLE = "samples/kafka-4.4/log/__cluster_metadata-0"
"""The source `{SAMPLE}` of examples: a real log that lies in the repository."""

SHARED_SECTION = "How it is read and shown"
"""The heading of the options that every command has."""


class Example(NamedTuple):
    """A command line to copy, and its purpose."""

    purpose: str
    command: str


class HelpFormatter(click.HelpFormatter):
    """click's help with a few colours, which click strips where stdout is no terminal."""

    def write_heading(self, heading: str) -> None:
        """Write a section's heading."""
        colon = "" if heading.endswith("?") else ":"
        self.write(f"{'':{self.current_indent}}{_paint(heading + colon, Style.STRONG)}\n")

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the usage line."""
        super().write_usage(prog, args, _paint(prefix or "Usage:", Style.STRONG) + " ")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write a list of names and their meanings."""
        super().write_dl([(_paint(name, Style.NAME), meaning) for name, meaning in rows], col_max, col_spacing)


class Context(click.Context):
    """click's context with the formatter of this module, and without colours where NO_COLOR asks for that."""

    formatter_class = HelpFormatter

    def __init__(self, *args: Any, **extra: Any) -> None:
        extra.setdefault("max_content_width", _HELP_WIDTH)
        if os.environ.get("NO_COLOR"):
            extra.setdefault("color", False)
        super().__init__(*args, **extra)


class Argument(click.Argument):
    """An argument with a line of `--help` in every release of click."""

    section = "Arguments"

    def __init__(self, *args: Any, help: str = "", **extra: Any) -> None:  # noqa: A002
        super().__init__(*args, **extra)
        self.help = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """The argument's name and description."""
        return self.make_metavar(ctx), self.help or ""


SERVICES: Final = ("broker", "controller", "cluster up", "follow", "import", "tables", "upkeep")
"""The commands that run unattended: each of their options may come from a variable, `KRAFTLAKE_COMMAND_OPTION`."""


class Option(click.Option):
    """An option with its heading in `--help`, and with a variable where its command is a service.

    One that takes `several` values has all words up to the next option, as the shell makes of `logs/*`.
    """

    def __init__(self, *args: Any, section: str = "Options", several: bool = False, **extra: Any) -> None:
        super().__init__(*args, **extra)
        self.section = section
        self.several = several

    def variable(self, command: str) -> str | None:
        """The environment variable of the option of a command; None where it has none."""
        names = [name for name in self.opts if name.startswith("--")]
        if command not in SERVICES or not names or not self.allow_from_autoenv:
            return None
        return "_".join(("KRAFTLAKE", *command.split(), names[0][2:])).replace("-", "_").upper()

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """The value of the option's variable; an empty one counts as none."""
        name = self.variable(_words_of(ctx))
        return (None if name is None else os.environ.get(name)) or super().resolve_envvar_value(ctx)

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """The option in an error, and its variable where the value came from there."""
        hint = super().get_error_hint(ctx)
        if ctx is None or self.name is None:
            return hint
        name = self.variable(_words_of(ctx))
        is_of_variable = name is not None and os.environ.get(name) and self.name not in ctx.meta.get(_GIVEN, ())
        return f"{hint} (the variable {name})" if is_of_variable else hint


def _words_of(ctx: click.Context) -> str:
    """The words of a command, without the program's name."""
    return ctx.command_path.partition(" ")[2]


option = functools.partial(click.option, cls=Option)
"""`click.option` that makes an `Option`."""
argument = functools.partial(click.argument, cls=Argument)
"""`click.argument` that makes an `Argument`."""


class _Explained(click.Command):
    """The common part of commands and groups: the section of `--help` that lists them, and examples at their end.

    Examples are the last part of the help, which is a function's docstring.
    """

    context_class = Context

    def __init__(self, *args: Any, help: str | None = None, section: str = "Commands", **extra: Any) -> None:  # noqa: A002
        text, _, self._examples = (help or "").partition("Examples:\n")
        super().__init__(*args, **extra | {"help": inspect.cleandoc(text.rstrip())})
        self.section = section

    def get_help_option_names(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names of the option that shows help, of the command: click keeps those of the first context it sees."""
        return ["-h", "--help"]

    @property
    def examples(self) -> Sequence[Example]:
        """The examples of the docstring: a purpose after #, and below it the command, in one line or several."""
        parts = [one.partition("\n") for one in re.split(r"^ *# ", self._examples, flags=re.MULTILINE)[1:]]
        return [Example(purpose, " ".join(line.split()).replace("{SAMPLE}", SAMPLE)) for purpose, _, line in parts]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the examples: the purpose of each, and below it the command, never wrapped."""
        if self._examples:
            with formatter.section("Examples"):
                for purpose, command in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{_paint('# ' + purpose, Style.QUIET)}\n")
                    formatter.write(f"{'':{formatter.current_indent}}{command}\n")


class Command(_Explained):
    """A command; negative numbers on its command line are offsets, not options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; a leading blank keeps click from reading `-1` as an option, and `int` ignores it.

        A repeated option that takes one value is a UsageError: click would silently keep the last. An option at the
        end whose value the shell completes is left out, so that click knows the words before it.
        """
        words = [f" {arg}" if _NEGATIVE_NUMBER.fullmatch(arg) else arg for arg in self._repeated(args)]
        if ctx.resilient_parsing and words and words[-1].startswith("-"):
            del words[-1]
        if not ctx.resilient_parsing:
            _, _, given = self.make_parser(ctx).parse_args(list(words))
            ctx.meta[_GIVEN] = [parameter.name for parameter in given]
            for parameter, times in Counter(given).items():
                if times > 1 and isinstance(parameter, click.Option) and _takes_one(parameter):
                    raise click.UsageError(f"{_names(parameter)} is given {times} times: give it once.", ctx)
        return super().parse_args(ctx, words)

    def _repeated(self, args: Sequence[str]) -> list[str]:
        """The words with an option that takes several values before each of its values."""
        names = {name for one in self.params if getattr(one, "several", False) for name in one.opts}
        words, name, given = list[str](), "", 0
        for arg in args:
            if arg.startswith("-"):
                name, given = arg if arg in names else "", 0
            elif name:
                words += [name] if given else []
                given += 1
            words.append(arg)
        return words

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write nothing: arguments are a section of `format_options`, also where click has no sections for them yet."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, by section."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if row is not None:
                sections.setdefault(getattr(parameter, "section", SHARED_SECTION), []).append(row)
        if SHARED_SECTION in sections:  # what is the command's own comes first
            sections[SHARED_SECTION] = sections.pop(SHARED_SECTION)
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


class Group(_Explained, click.Group):
    """A group of commands, listed in `--help` by section; the root one turns faults into exit codes."""

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> None:
        """Run a command line and exit the process with its code; `extra` goes into the context."""
        from kraftlake.cli.faults import exit_code_of, open_closed_streams

        open_closed_streams()
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        words = list(sys.argv[1:] if args is None else args)
        name = prog_name or "kraftlake"
        extra.pop("complete_var", None)
        extra.pop("standalone_mode", None)
        self._main_shell_completion(extra, name)

        def run() -> None:
            with self.make_context(name, words, **extra) as context:
                self.invoke(context)

        sys.exit(exit_code_of(run))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command as click does, and also one of two words (`log trim`) whose first word is itself a command.

        The second word is a path where such a path exists: `kraftlake log trim` then lists the records in it.
        """
        words = " ".join(args[:2])
        if len(args) > 1 and words in self.commands and not os.path.lexists(args[1]):
            return words, self.commands[words], args[2:]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands, by section, in the order in which they were added."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            heading = getattr(command, "section", "Commands")
            sections.setdefault(heading, []).append((name, command.get_short_help_str(limit=120)))
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


def given_parameters(context: click.Context) -> list[str]:
    """The names of the parameters given to a `Command`, in their order and with repetitions."""
    return list(context.meta[_GIVEN])


def _takes_one(option: click.Option) -> bool:
    """Whether a second value of an option contradicts the first; that of a flag that can only be set does not."""
    return not (option.multiple or option.count or (option.is_flag and not option.secondary_opts))


def _names(option: click.Option) -> str:
    """The name of an option in a message: `--broker`, `--strict/--lenient`."""
    return "/".join(names[-1] for names in (option.opts, option.secondary_opts) if names)


def _paint(text: str, style: Style) -> str:
    return paint(text, style, colour=True)
