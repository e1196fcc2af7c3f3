"""The option `--schemas`: the types of a fork's records, known while a command runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from kraftlake.cli.options.command import SHARED_SECTION
from kraftlake.cli.options.parameters import PathParameter
from kraftlake.runtime.words import in_words

if TYPE_CHECKING:
    import click

    from kraftlake.cli.output.terminal import Terminal

GIVEN: Final = "kraftlake.schemas"
"""The folder that was given, in a context's `meta`."""
_REGISTERED: Final = "kraftlake.records.foreign.registered"


def _know(context: click.Context, _: click.Parameter, folder: str | None) -> str | None:
    """Register the record types of a folder until the command ends."""
    if folder is not None and not context.resilient_parsing:
        from kraftlake.kafka_files.message_files import declared_types
        from kraftlake.records.foreign.registered import registered

        context.with_resource(registered(declared_types(folder)))
        context.meta[GIVEN] = folder
    return folder


SCHEMAS: Final[dict[str, Any]] = {
    "section": SHARED_SECTION,
    "type": PathParameter("directory"),
    "metavar": "DIR",
    "is_eager": True,
    "expose_value": False,
    "callback": _know,
    "help": "Schemas in Kafka's message format: records of a fork's own types are shown, and change no image.",
}
"""How the option is declared."""


def warn_left_out(terminal: Terminal, written: str) -> None:
    """Warn that a snapshot that is `written` holds nothing of what the records of foreign types say."""
    if _REGISTERED not in sys.modules:
        return
    from kraftlake.records.foreign.registered import FOREIGN_RECORDS

    if FOREIGN_RECORDS:
        terminal.warn(
            f"{written} has no records of the types that --schemas declares: a node that starts on it lacks them"
        )


def note_passed_over(terminal: Terminal) -> None:
    """Say which types of foreign records a command has replayed without effect."""
    if _REGISTERED not in sys.modules:
        return
    from kraftlake.records.foreign.registered import PASSED_OVER

    if PASSED_OVER:
        terminal.note(f"records of a type that --schemas declares have no effect: {in_words(sorted(PASSED_OVER))}")
