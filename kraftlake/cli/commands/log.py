"""`kraftlake log`: the records themselves."""

from __future__ import annotations

from datetime import datetime

from kraftlake.cli.options.command import Example, option
from kraftlake.cli.options.parameters import RECORD_TYPE
from kraftlake.cli.options.shared import (
    LOOK,
    SAMPLE,
    Call,
    command,
    from_option,
    to_option,
    topic_ids_option,
    topics_option,
)
from kraftlake.cli.selection.topic_names import matches

NO_OP = "NO_OP_RECORD"


@command(
    "log",
    section=LOOK,
    replays=False,
    question="What happened, record by record?",
    secrets=True,
    examples=(
        Example("the records of a range of offsets, both ends included", f"kraftlake log {SAMPLE} --from 60 --to 80"),
        Example(
            "the records of half a second",
            f"kraftlake log {SAMPLE} --from 2026-11-21T07:46:16.2Z --to 2026-11-21T07:46:16.7Z",
        ),
        Example("topics that came and went", f"kraftlake log {SAMPLE} --type topic --type remove_topic"),
        Example("all that was written about a topic", f"kraftlake log {SAMPLE} --topic elr-a"),
        Example(
            "the topic of an id, there or gone",
            f"kraftlake log {SAMPLE} --topic-id nANz2uTcTHue83qLIJ1OVA --type topic",
        ),
        Example("without the no-ops that fill an idle log", f"kraftlake log {SAMPLE} --no-noop"),
        Example("for other programs, one JSON object a line", f"kraftlake log {SAMPLE} --json"),
    ),
)
@from_option
@to_option
@option(
    "--type",
    "types",
    type=RECORD_TYPE,
    multiple=True,
    metavar="TYPE",
    help="Only records of this type, in any case, with or without _RECORD. Repeatable.",
)
@topics_option("Only records of this topic, its partitions and its configs")
@topic_ids_option("Only those of the topic that has, or had, this id")
@option("--no-noop", is_flag=True, help="Leave out the no-ops of an idle controller.")
def log(
    call: Call,
    source: str,
    *,
    first: int | datetime | None,
    last: int | datetime | None,
    types: tuple[str, ...],
    topics: tuple[str, ...],
    topic_ids: tuple[str, ...],
    no_noop: bool,
) -> None:
    """List the records of SOURCE in the order of their offsets, control records included.

    A line is a record: offset, epoch, time, type, and what it says. A snapshot file lists the snapshot's own records,
    whose offsets count from 0.
    """
    opened = call.open(source)
    from kraftlake.cli.selection.log_names import Names, names_before, of_topics
    from kraftlake.cli.views.lines import LogView
    from kraftlake.records.redaction import redact_record_json

    begin, end = opened.offset_range(first, last)
    records = opened.records(begin, end, types=types or None)
    if no_noop:
        records = (record for record in records if record.type != NO_OP)
    names = names_before(opened, begin) if topics or topic_ids or not call.as_json else Names()
    if topics or topic_ids:
        records = of_topics(records, topics, names, ids=topic_ids)
    view = LogView(call.terminal, names)
    for record in records:
        form = record.to_json()
        shown = form["data"] if call.show_secrets else redact_record_json(form["type"], form["data"])
        if call.as_json:
            call.terminal.json(form | {"data": shown})
        else:
            view.show(form, shown)
    if topics and not any(matches(name, topics) for name in names.topics.values()):
        call.terminal.warn(f"no topic matches {', '.join(topics)} up to there")
    for id_ in topic_ids:
        if id_ not in names.topics:
            call.terminal.warn(f"no topic has the id {id_} up to there")
