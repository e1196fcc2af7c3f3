"""`kraftlake blame`: the record that gave a thing its value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.parameters import THING
from kraftlake.cli.options.shared import command
from kraftlake.cli.options.witnesses import witness_options
from kraftlake.cli.output.formats import Table
from kraftlake.runtime.errors import NoSuchThingError

if TYPE_CHECKING:
    from kraftlake.api import Source
    from kraftlake.diagnosis.attribution.attribution import Attribution
    from kraftlake.diagnosis.attribution.witnesses import Witnesses
    from kraftlake.diagnosis.things import Thing

_COLUMNS = ("thing", "offset", "timestamp", "epoch", "type", "before", "after", "effectiveOffset", "orEarlier")


@command("Which record made a thing what it is, and what was it before?", at=True, secrets=True)
@argument(
    "thing",
    metavar="THING",
    type=THING,
    help="The path of a thing: topic/NAME, topic/NAME/partition/N, broker/ID, config/TYPE/RESOURCE/NAME, "
    "feature/NAME, acl/ID, quota/TYPE/NAME/QUOTA, scram/USER/MECHANISM, token/ID, voter/ID; /FIELD after a partition "
    "or a broker.",
)
@option("--all", "everything", is_flag=True, help="Every record that changed it, the newest last.")
@witness_options
def blame(call: Call, source: str, thing: str, *, everything: bool, witnesses: Witnesses | None) -> None:
    """Show the newest record that gave THING the value that it has after an offset, by default the last.

    FIELD is a name that `kraftlake image --json` has for a partition or a broker: leader, isr, fenced, … Without it
    every field counts. The value before is shown beside it, and for a record of a metadata transaction the offset at
    which it took effect. What had its value already in the snapshot with which a log begins is so since then or
    earlier. %2F stands for a slash within a name, an empty RESOURCE or <default> for the default.

    The log does not say whose request a record is of. Kafka's authorizer does, where its logger has the level DEBUG:
    with --authorizer-log the principal, host and request stand below each record, or several that are possible, or why
    there is none.

    Examples:
        # why a partition's ISR is what it is
        kraftlake blame {SAMPLE} topic/t-22-3h4/partition/2/isr
        # how it came to that, record by record
        kraftlake blame {SAMPLE} topic/elr-a/partition/0 --all
        # what fenced a broker
        kraftlake blame {SAMPLE} broker/2/fenced --at-offset 1323
        # what set a config
        kraftlake blame {SAMPLE} config/TOPIC/t-3-dj5/cleanup.policy
        # since when a controller is a voter of the quorum
        kraftlake blame {SAMPLE} voter/3000 --all
        # the default config of all brokers
        kraftlake blame {SAMPLE} config/BROKER//min.insync.replicas
        # for other programs
        kraftlake blame {SAMPLE} feature/metadata.version --all --json
        # who created a topic, by the authorizer log of the controller
        kraftlake blame samples/authorized/log/__cluster_metadata-0 topic/t-0
        --log-tz UTC --authorizer-log samples/authorized/node-1/kafka-authorizer.log.gz
    """
    from kraftlake.diagnosis.things import Thing

    named = Thing.parse(thing)
    opened = call.open(source)
    show_blamed(call, opened, named, opened.offset_at(call.at), everything=everything, witnesses=witnesses)


def show_blamed(
    call: Call, source: Source, thing: Thing, at: int, *, everything: bool, witnesses: Witnesses | None = None
) -> None:
    """Write the record that gave a thing its value at the offset `at`, or every record that changed it."""
    from kraftlake.diagnosis.blaming import blamed

    attribution = call.attribution(source, witnesses)
    with call.suggest_lenient(), _naming_who_removed(attribution):
        changes = blamed(source, thing, at, newest_only=not everything, lenient=not call.strict)
    call.warn_skipped(changes.skipped)
    line = changes.lines[thing]
    forms = [change.to_json(show_secrets=call.show_secrets) for change in line]
    if attribution is not None:
        offsets = [None if change.or_earlier else change.offset for change in line]
        forms = [form | attribution.of(at).to_json() for form, at in zip(forms, offsets, strict=True)]
    if not call.in_words:
        call.write_rows(Table((*_COLUMNS, *(attribution.columns if attribution else ())), forms))
        return
    from kraftlake.cli.views.blame_view import show_blame

    show_blame(call.terminal, thing, forms)


@contextmanager
def _naming_who_removed(attribution: Attribution | None) -> Iterator[None]:
    """Add the client that removed a thing to the error that says that it is gone."""
    try:
        yield
    except NoSuchThingError as fault:
        if attribution is None or fault.removed_at is None:
            raise
        from kraftlake.diagnosis.attribution.words import who_words

        words = [f"Removed {words}." for words, _ in who_words(attribution.of(fault.removed_at).to_json())]
        raise NoSuchThingError(" ".join((str(fault), *words)), removed_at=fault.removed_at) from None
