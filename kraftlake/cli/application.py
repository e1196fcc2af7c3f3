"""The `kraftlake` command with all its subcommands."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator
from importlib import import_module

import click

from kraftlake.cli.options.command import Command, Group, Option

_SECTIONS = {
    "What do you want to know?": (
        "doctor", "image", "log", "diff", "drift", "events", "watch", "blame", "can", "effective", "bisect",
        "availability", "stability", "page", "what-if", "shell", "ls", "cat", "local-changes", "replay", "metrics",
        "sql", "quorum", "verify", "upgrade-check", "removal-check", "mcp",
    ),
    "Bring a log in, take a snapshot out": (
        "import", "follow", "export", "bundle", "translate", "restore", "recreate", "undo",
    ),
    "Run a cluster on a lake": ("broker", "cluster", "controller"),
    "Make a lake and its tables": ("format", "fork", "generate", "tables", "spark"),
    "Keep a lake in order": ("upkeep", "log compact", "log trim", "log vacuum", "tables trim"),
    "Change a controlled lake, as its controller": (
        "brokers", "topics", "configs", "acls", "quotas", "scram", "tokens", "features",
    ),
}  # fmt: skip
"""The headings of `--help`, and the commands below each in their order."""

_ELSEWHERE = {
    "ls": "shell:ls",
    "cat": "shell:cat",
    "import": "import_:import_",
    "translate": "bundle:translate",
    "format": "format:format_",
    "log compact": "log_upkeep:log_compact",
    "log trim": "log_upkeep:log_trim",
    "log vacuum": "log_upkeep:log_vacuum",
    "tables trim": "tables:tables_trim",
    "cluster": "cluster_up:cluster",
    "brokers": "controlled.brokers:brokers",
    "topics": "controlled.topics:topics",
    "configs": "controlled.settings:configs",
    "acls": "controlled.settings:acls",
    "quotas": "controlled.settings:quotas",
    "features": "controlled.settings:features",
    "scram": "controlled.scram:scram",
    "tokens": "controlled.tokens:tokens",
}
"""The file in `cli.commands` and the name there of each command that is not in the file of its name."""


class LazyCommands(UserDict[str, click.Command]):
    """The commands by name, imported when they are asked for: all of them take longer than most of them run."""

    def __init__(self) -> None:
        super().__init__()
        self._sections = {name: section for section, names in _SECTIONS.items() for name in names}

    def __missing__(self, name: str) -> click.Command:
        section, own = self._sections[name], name.replace("-", "_")
        file, _, attribute = _ELSEWHERE.get(name, f"{own}:{own}").partition(":")
        command: Command | Group = getattr(import_module(f"kraftlake.cli.commands.{file}"), attribute)
        command.section = section
        self.data[name] = command
        return command

    def __contains__(self, name: object) -> bool:
        return name in self._sections

    def __iter__(self) -> Iterator[str]:
        return iter(self._sections)

    def __len__(self) -> int:
        return len(self._sections)


@click.group(
    cls=Group,
    commands=LazyCommands(),
    invoke_without_command=True,
    short_help="Ask a Kafka cluster's metadata log what the cluster looks like, or looked like.",
)
@click.version_option(package_name="kraftlake", message="kraftlake %(version)s", cls=Option, help="Print the version.")
@click.pass_context
def application(context: click.Context) -> None:
    """Ask a Kafka cluster's metadata log what the cluster looks like, or looked like at any past moment.

    SOURCE is a Kafka metadata directory (__cluster_metadata-0), a segment or snapshot file of one, an archive of one,
    or a lake that it was imported into; kraftlake finds out which. `kraftlake COMMAND --help` has examples.

    Examples:
        # the cluster as the log leaves it
        kraftlake image {SAMPLE}
        # what changed between two offsets
        kraftlake diff {SAMPLE} 4592 4639
        # into a lake, which keeps what Kafka deletes after a week
        kraftlake import {SAMPLE} lake
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), color=context.color)
