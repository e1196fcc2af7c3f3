"""The pages of the site's reference that the code says itself: commands, tables, metrics, the Python API."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import click
import pyarrow as pa
from click.testing import CliRunner

from kraftlake.cli.application import application
from kraftlake.runtime.clock import SystemClock
from kraftlake.runtime.metrics import Gauge, MetricName, MetricsRegistry
from kraftlake.server.follow_metrics import register_metrics
from kraftlake.tables.jobs import ALL, RECORDS
from kraftlake.tables.lake_table import TableDescription

DOORS = {
    "kraftlake": "What most programs need.",
    "kraftlake.api": "What programs are built of: loaders, publishers, deltas, controllers, tables of their own.",
    "kraftlake.spark_jobs": "Jobs, streams and frames on Spark.",
}
"""The modules that names are imported from, with the purpose of each."""
_WITHOUT_HEADING = "    options:\n      show_root_heading: false\n      show_root_toc_entry: false"


def reference_pages() -> dict[str, str]:
    """Each page in Markdown, by its file below `reference/`."""
    return {
        "commands.md": commands_page(),
        "tables.md": tables_page(),
        "metrics.md": metrics_page(),
        "python.md": python_page(),
    }


def commands_page() -> str:
    """What `--help` prints, of every command."""
    parts = ["# Commands", "What `kraftlake COMMAND --help` prints. [cli.md](../cli.md) has what all commands share."]
    for name, command in commands():
        if not command.hidden:
            level = "##" if name.count(" ") <= 1 else "###"
            parts.append(f"{level} {name}\n\n```text\n{help_of(name)}\n```")
    return "\n\n".join(parts) + "\n"


def commands(path: str = "kraftlake", command: click.Command = application) -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name, groups before their commands."""
    yield path, command
    for name, child in command.commands.items() if isinstance(command, click.Group) else ():
        yield from commands(f"{path} {name}", child)


def help_of(name: str) -> str:
    """The help of a command, 100 characters wide."""
    words = [*name.split()[1:], "--help"]
    return CliRunner().invoke(application, words, prog_name="kraftlake", env={"COLUMNS": "100"}).stdout.rstrip()


def tables_page() -> str:
    """The columns of each derived table, with their meanings."""
    parts = [
        "# Tables and columns",
        "The tables of a lake that `kraftlake tables` and `kraftlake spark` write. Each column has its meaning as a "
        "comment in the Delta table, too. Ask [histories](../history-sql.md), [records](../records-sql.md).",
    ]
    for description in table_descriptions():
        rows = [f"| `{field.name}` | {_type(field)} | {_cell(text)} |" for field, text in description.table_columns]
        head = [
            f"## {description.name}",
            f"{description.comment}",
            "| column | type | meaning |\n| --- | --- | --- |\n" + "\n".join(rows),
        ]
        parts += head
    return "\n\n".join(parts) + "\n"


def table_descriptions() -> list[TableDescription]:
    """The description of every derived table."""
    return [writer.description for job in (ALL, RECORDS) for writer in job.new_writers()]


def _type(field: pa.Field) -> str:
    kind = "struct" if pa.types.is_struct(field.type) else str(field.type).replace("|", "\\|")
    return kind if field.nullable else f"{kind}, never null"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def metrics_page() -> str:
    """The metrics that `kraftlake follow` serves."""
    rows = [f"| `{name}` | {_cell(text)} |" for name, text in metrics_of_follow()]
    return (
        "\n\n".join(
            [
                "# Metrics",
                "What `kraftlake follow --metrics` serves in Prometheus' text form, each with the label `cluster`.",
                "| metric | meaning |\n| --- | --- |\n" + "\n".join(rows),
            ]
        )
        + "\n"
    )


def metrics_of_follow() -> list[tuple[str, str]]:
    """The names of the metrics of followed clusters in Prometheus' form, with their help."""
    names = _Names()
    register_metrics(names, (), SystemClock())
    return names.found


class _Names(MetricsRegistry):
    """Keeps the name and the help of each gauge."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []

    def gauge(self, name: MetricName, description: str, read: Gauge) -> None:  # noqa: ARG002
        """Keep the name."""
        self.found.append((name.prometheus_name, description))


def python_page() -> str:
    """The names of the doors, for mkdocstrings to describe."""
    parts = ["# Python API", "Names are imported from one of three modules; every other module may change."]
    for door, purpose in DOORS.items():
        parts += [f"## {door}", purpose]
        for name, target in door_targets(door).items():
            parts.append(f"### {door}.{name}\n\n::: {target}\n{_WITHOUT_HEADING}")
    return "\n\n".join(parts) + "\n"


def door_targets(door: str) -> dict[str, str]:
    """Where each name of a door is defined, as `module.name`."""
    module = import_module(door)
    values = {name: getattr(module, name) for name in module.__all__ if not name.startswith("__")}
    return {name: f"{value.__module__}.{value.__qualname__}" for name, value in values.items()}
