"""`kraftlake log`: the records of a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import option
from kraftlake.cli.options.parameters import TYPES
from kraftlake.cli.options.shared import (
    brokers_option,
    check_hosted,
    command,
    cut_options,
    hosted_option,
    list_option,
    partitions_option,
    principals_option,
    range_options,
    topic_ids_option,
    topics_option,
)
from kraftlake.cli.output.formats import Table

if TYPE_CHECKING:
    from kraftlake.api import Source
    from kraftlake.cli.selection.cut import Cut
    from kraftlake.cli.selection.log_names import LogNames
    from kraftlake.cli.selection.log_records import Filter
    from kraftlake.records.log_record import LogRecord
    from kraftlake.runtime.moments import Moment

NO_OP = "NO_OP_RECORD"
_COLUMNS = ("offset", "epoch", "timestamp", "type", "version", "apiKey", "data")


@command("What happened, record by record?", replays=False, secrets=True, long=True)
@range_options
@list_option(
    "--type",
    "types",
    type=TYPES,
    help="Only records of this type, in any case, with or without _RECORD. Repeatable, or A,B.",
)
@topics_option("Only records of this topic, its partitions and its configs")
@topic_ids_option("Only those of the topic that has, or had, this id")
@partitions_option("Only those of this partition, and that its topic came or went")
@brokers_option("Only those of this broker itself: registrations, fencing, configs")
@hosted_option
@principals_option("Only those about this principal: its ACLs, and of a user its credentials and quotas")
@cut_options("On a terminal: each record, not counts, however many there are.")
@option("--no-noop", is_flag=True, help="Leave out the no-ops of an idle controller.")
def log(
    call: Call,
    source: str,
    *,
    first: Moment | None,
    last: Moment | None,
    types: tuple[str, ...],
    hosted: bool,
    cut: Cut,
    no_noop: bool,
    principals: tuple[str, ...],
    **names: tuple[Any, ...],
) -> None:
    """List the records of SOURCE in the order of their offsets, control records included.

    A line is a record: offset, epoch, time, type, and what it says. A snapshot file lists the snapshot's own records,
    whose offsets count from 0.

    Examples:
        # the records of a range of offsets, both ends included
        kraftlake log {SAMPLE} --from 60 --to 80
        # the records of half a second
        kraftlake log {SAMPLE} --from 2026-11-21T07:46:16.2Z --to 2026-11-21T07:46:16.7Z
        # topics that came and went
        kraftlake log {SAMPLE} --type topic --type remove_topic
        # all that was written about a topic
        kraftlake log {SAMPLE} --topic elr-a
        # the topic of an id, there or gone
        kraftlake log {SAMPLE} --topic-id nANz2uTcTHue83qLIJ1OVA --type topic
        # what was written about a user: ACLs, credentials, quotas
        kraftlake log {SAMPLE} --principal User:p523
        # without the no-ops that fill an idle log
        kraftlake log {SAMPLE} --no-noop
        # for other programs, one JSON object a line
        kraftlake log {SAMPLE} --json
    """
    check_hosted(names["brokers"], hosted=hosted)
    opened = call.open(source)
    if names["partitions"]:  # the records of a topic are shown also where it lacks the partition
        call.check_names(opened, **names, found=False)
    from kraftlake.cli.selection.log_names import LogNames, names_before
    from kraftlake.cli.selection.log_records import OfBrokers, OfTopics, hosted_before
    from kraftlake.cli.selection.principals import OfPrincipals

    begin, end = opened.offset_range(first, last)
    held = range(opened.start_offset, opened.end_offset)  # none in a snapshot, whose records have offsets of their own
    lowest, highest = held.start if begin is None else begin, held.stop - 1 if end is None else end
    some = types or no_noop or principals or any(names.values())
    if cut.tail is not None and not some and lowest in held and highest in held:
        begin = max(lowest, highest - cut.tail + 1)  # each offset is a record
    filters: list[Filter] = []
    of_topics = names["topics"], names["topic_ids"], names["partitions"]
    known = names_before(opened, begin) if any(of_topics) or principals or call.in_words else LogNames()
    if any(of_topics):
        filters.append(OfTopics(known, *of_topics))
    if brokers := names["brokers"]:
        before = hosted_before(opened, begin, brokers, lenient=not call.strict) if hosted else None
        filters.append(OfBrokers(brokers, before))
    if principals:
        filters.append(OfPrincipals(principals, known.owners, show_secrets=call.show_secrets))
    records = _selected(opened, (begin, end), filters, types, known)
    if no_noop:
        records = (record for record in records if record.type != NO_OP)
    records = cut.among(records)
    shown = next(records, None)
    if shown is None and not names["partitions"]:
        call.check_names(opened, **names, found=False)
    show_records(call, chain([] if shown is None else [shown], records), known, whole=cut.is_given)
    if shown is not None and not names["partitions"]:
        call.check_names(opened, **names, found=True)


def _selected(
    source: Source,
    range_: tuple[int | None, int | None],
    filters: Sequence[Filter],
    types: tuple[str, ...],
    known: LogNames,
) -> Iterator[LogRecord]:
    """The records of a range that pass all filters, of the given types or all; `known` learns names from the others."""
    if not filters:
        return source.records(*range_, types=types or None)

    def is_wanted(record: LogRecord) -> bool:
        if record.type == "TOPIC_RECORD":
            message: Any = record.message
            known.topics[str(message.topic_id)] = message.name
        wanted = [one.wants(record) for one in filters]  # each sees each record
        return all(wanted) and (not types or record.type in types)

    return filter(is_wanted, source.records(*range_))


def show_records(
    call: Call,
    records: Iterable[LogRecord],
    known: LogNames,
    *,
    whole: bool,
    narrower: str = "--last, --from, --type, --topic and --broker",
) -> None:
    """Write records as lines; where a terminal would get very many, their counts and the options that select fewer."""
    from kraftlake.cli.views.lines import LogView, shown_form

    if call.terminal.interactive and call.in_words and not whole:
        from kraftlake.cli.selection.tally import held_lines, tally_of_records

        held, rest, is_flood = held_lines(records, lambda _: 1)
        records = chain(held, rest)
        if is_flood:
            from kraftlake.cli.views.tally_view import show_flood

            show_flood(call.terminal, tally_of_records(records), "record", narrower)
            return
    if not call.in_words:
        call.write_rows(Table(_COLUMNS, (shown_form(record, show_secrets=call.show_secrets) for record in records)))
        return
    view = LogView(call.terminal, known, show_secrets=call.show_secrets)
    with call.terminal.paged():
        for record in records:
            view.show(record)
