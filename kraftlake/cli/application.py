"""The `kraftlake` command with all its subcommands."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator, Mapping
from importlib import import_module

import click

from kraftlake.cli.options.command import Group, Option

_COMMANDS = {
    "doctor": "doctor:doctor",
    "image": "image:image",
    "log": "log:log",
    "diff": "diff:diff",
    "events": "events:events",
    "watch": "watch:watch",
    "blame": "blame:blame",
    "bisect": "bisect:bisect",
    "page": "page:page",
    "what-if": "what_if:what_if",
    "shell": "shell:shell",
    "ls": "shell:ls",
    "cat": "shell:cat",
    "local-changes": "local_changes:local_changes",
    "replay": "replay:replay",
    "metrics": "metrics:metrics",
    "quorum": "quorum:quorum",
    "verify": "verify:verify",
    "import": "import_:import_",
    "follow": "follow:follow",
    "broker": "broker:broker",
    "export": "export:export",
    "restore": "restore:restore",
    "format": "format:format_",
    "fork": "fork:fork",
    "generate": "generate:generate",
    "log compact": "log_upkeep:log_compact",
    "log trim": "log_upkeep:log_trim",
    "log vacuum": "log_upkeep:log_vacuum",
    "tables trim": "tables:tables_trim",
    "cluster": "cluster_up:cluster",
    "controller": "controller:controller",
    "brokers": "controlled.brokers:brokers",
    "topics": "controlled.topics:topics",
    "configs": "controlled.settings:configs",
    "acls": "controlled.settings:acls",
    "quotas": "controlled.settings:quotas",
    "features": "controlled.settings:features",
    "tables": "tables:tables",
    "spark": "spark:spark",
}
"""The file in `cli.commands` and the name there of each command, in the order of `--help`."""


class LazyCommands(UserDict[str, click.Command]):
    """The commands of a group by name, imported when they are asked for: all of them take longer than most of them run.

    `places` are `file:name`, a file of `package` and a name in it.
    """

    def __init__(self, package: str, places: Mapping[str, str]) -> None:
        super().__init__()
        self._package = package
        self._places = places

    def __missing__(self, name: str) -> click.Command:
        file, _, attribute = self._places[name].partition(":")
        command: click.Command = getattr(import_module(f"{self._package}.{file}"), attribute)
        self.data[name] = command
        return command

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@click.group(
    cls=Group,
    commands=LazyCommands("kraftlake.cli.commands", _COMMANDS),
    invoke_without_command=True,
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
