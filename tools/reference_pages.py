"""The pages of the reference that the code writes: `python -m tools.reference_pages` keeps those in docs/reference.

The tables and metrics are kept there whole, of the commands their purposes; what `--help` and `help()` show, too, is in
the site alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path

import click
import pyarrow as pa
from click.testing import CliRunner

from kraftlake.cli.application import application
from kraftlake.settings.client_metrics_configs import CLIENT_METRICS_CONFIGS
from kraftlake.settings.config_key import ConfigKey
from kraftlake.settings.group_configs import GROUP_CONFIGS
from kraftlake.settings.tables import NODE_SETTINGS
from kraftlake.settings.topic_configs import TOPIC_CONFIGS
from kraftlake.settings.uses import Heeded, Ignored
from kraftlake.tables.events.events_table import EVENTS, KINDS
from kraftlake.tables.jobs import ALL, RECORDS
from kraftlake.tables.lake_table import TableDescription
from kraftlake.tables.undo_table import UNDO
from tools.commands import commands
from tools.json_page import json_page
from tools.log_events import log_events
from tools.served_metrics import FAMILIES, names_of

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
DOORS = {
    "kraftlake": "What most programs need.",
    "kraftlake.api": "What programs are built of: loaders, publishers, deltas, controllers, tables of their own.",
    "kraftlake.spark_jobs": "Jobs, streams and frames on Spark.",
}
"""The modules that names are imported from, with the purpose of each."""
_WITHOUT_HEADING = "    options:\n      show_root_heading: false\n      show_root_toc_entry: false"


def pages_of_the_site() -> dict[str, str]:
    """The pages that the site has in place of those of docs/reference or besides them, in Markdown."""
    return {
        "commands.md": commands_page(),
        "python.md": python_page(),
        "settings.md": settings_page(),
    }


def kept_pages() -> dict[str, str]:
    """The pages that docs/reference holds, in Markdown."""
    return {
        "commands.md": commands_index(),
        "json.md": json_page(),
        "log-events.md": log_events_page(),
        "metrics.md": metrics_page(),
        "tables.md": tables_page(),
    }


def commands_index() -> str:
    """The commands with their purposes, under the headings of `kraftlake --help`."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for name, command in commands():
        if not isinstance(command, click.Group):
            listed = application.commands.get(name.partition(" ")[2]) or application.commands[name.split()[1]]
            sections.setdefault(listed.section, []).append((f"`{name}`", command.get_short_help_str(200)))  # type: ignore[attr-defined]
    shared = (
        "`kraftlake COMMAND --help` has the arguments, options and examples of each, the site of `make docs` all of "
    )
    parts = ["# Commands", f"{shared}them; [cli.md](../cli.md) says what they share."]
    for heading, rows in sections.items():
        parts += [f"## {heading}", _table(("command", ""), rows)]
    return "\n\n".join(parts) + "\n"


def commands_page() -> str:
    """The commands with their purposes, and what `--help` prints of each."""
    parts = [commands_index().rstrip()]
    for name, command in commands():
        if not command.hidden:
            level = "##" if name.count(" ") <= 1 else "###"
            parts.append(f"{level} {name}\n\n```text\n{help_of(name)}\n```")
    return "\n\n".join(parts) + "\n"


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
        rows = [(f"`{field.name}`", _type(field), text) for field, text in description.table_columns]
        parts += [f"## {description.name}", description.comment, _table(("column", "type", "meaning"), rows)]
        if description.name == EVENTS.name:
            kinds = [(f"`{kind}`", meaning) for kind, meaning in KINDS.items()]
            parts.append(_table(("kind", "what happened"), kinds))
    return "\n\n".join(parts) + "\n"


def table_descriptions() -> list[TableDescription]:
    """The description of every derived table."""
    return [*(writer.description for job in (ALL, RECORDS) for writer in job.new_writers()), UNDO]


def _type(field: pa.Field) -> str:
    kind = _type_text(field.type)
    return kind if field.nullable else f"{kind}, never null"


def _type_text(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"array of {_type_text(kind.value_type)}"
    if pa.types.is_struct(kind):
        return "struct of " + ", ".join(f"`{field.name}` {_type_text(field.type)}" for field in kind)
    return "timestamp" if pa.types.is_timestamp(kind) else str(kind)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = ([text.replace("|", "\\|").replace("\n", " ") for text in row] for row in rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *cells))


def settings_page() -> str:
    """The settings of nodes, and the configs of topics, groups and client metrics, with their use here."""
    parts = [
        "# Settings",
        "All that Kafka 4.4 defines, with its type, default and the way in which it changes, and who heeds it here or "
        "why nobody does. [A cluster on a lake](../cluster.md#settings) says how they are given and what is warned of.",
    ]
    kinds = (("nodes", NODE_SETTINGS), ("topics", TOPIC_CONFIGS), ("groups", GROUP_CONFIGS))
    for kind, keys in (*kinds, ("client metrics", CLIENT_METRICS_CONFIGS)):
        rows = [
            (
                f"`{name}`",
                key.type.lower(),
                _default(key),
                key.update.value if kind == "nodes" else "in the log",
                _use(key),
            )
            for name, key in sorted(keys.items())
        ]
        parts += [f"## Of {kind}", _table(("setting", "type", "default", "changes", "use"), rows)]
    return "\n\n".join(parts) + "\n"


def _default(key: ConfigKey) -> str:
    return "none" if key.default is None else f"`{key.default}`" if key.default else "empty"


def _use(key: ConfigKey) -> str:
    match key.use:
        case Ignored(reason=reason):
            return f"none: {reason}"
        case Heeded(by=by, but=but):
            without = "".join(f"; `{value}` has none: {why.reason}" for value, why in but.items())
            return f"{' and '.join(sorted(by))}s{without}" if len(by) == 1 else f"all nodes{without}"
    return "kept in the log"


def metrics_page() -> str:
    """The metrics that each daemon serves."""
    served = "What the daemons serve in Prometheus' text form: [observing](../observing.md) has the options and labels."
    parts = ["# Metrics", served]
    for family in FAMILIES:
        rows = [(f"`{name}`", text) for name, text in names_of(family)]
        parts += [f"## {family.title}", f"Served by {family.served_by}.", _table(("metric", "meaning"), rows)]
    return "\n\n".join(parts) + "\n"


def log_events_page() -> str:
    """The page of all log events."""
    rows = [
        (f"`{one.name}`", one.level, ", ".join(f"`{name}`" for name in one.fields), one.room) for one in log_events()
    ]
    return (
        "# Log events\n\nServices log to stderr, with `--json` one object a line: `event` has one of these names, "
        "`level` and `timestamp` its level and time, and further keys are the fields below, besides what a service "
        "binds to all of its events (`controller`, `broker_id`, `cluster`). Names stay as they are from release to "
        "release; `{…}_failed` is `tables_failed`, `snapshot_failed` or `upkeep_failed`. "
        "`python -m tools.reference_pages` writes this page.\n\n" + _table(("event", "level", "fields", "room"), rows)
    )


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


if __name__ == "__main__":
    for name, text in kept_pages().items():
        (REFERENCE / name).write_text(text, "utf-8")
