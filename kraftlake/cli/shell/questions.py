"""The commands that Kafka's shell does not have: `log`, `diff`, `since` and `blame`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.shared import cut_options
from kraftlake.cli.output.formats import Table
from kraftlake.cli.output.theme import Piece, Style, styled
from kraftlake.cli.shell.session import Session
from kraftlake.cli.shell.walking import path_argument, shell_command

if TYPE_CHECKING:
    from kraftlake.cli.selection.cut import Cut
    from kraftlake.diagnosis.things import Thing
    from kraftlake.image.nodes.node import Subject
    from kraftlake.image.nodes.paths import FoundNode
    from kraftlake.records.log_record import LogRecord

_NO_OP: Final = "NO_OP_RECORD"
_SINCE: Final = {"partition": ("leader", "isr", None), "broker": ("fenced", "inControlledShutdown", None)}
"""The fields that `since` reports, None for all of them together."""


@shell_command("log", question="List the records about a node, up to the moment looked at.")
@path_argument
@option("--from", "first", metavar="MOMENT", help="From this offset or time on; the log's beginning by default.")
@cut_options("Each record, not counts, however many there are.")
@option("--no-noop", is_flag=True, help="Leave out the no-ops of an idle controller.")
def log(
    session: Session,
    path: str,
    *,
    first: str | None,
    cut: Cut,
    no_noop: bool,
) -> None:
    """List the records about what a node shows, in the order of their offsets, up to the image's offset.

    Of a topic these are its own, its partitions' and its configs', of a directory those of all in it.

    Examples:
        # the last records about a topic
        log /image/topics/byName/elr-a --tail 10
        # what the last minute said of where you are
        log --from now-1m
    """
    from kraftlake.cli.commands.log import show_records
    from kraftlake.cli.selection.log_names import names_before
    from kraftlake.cli.selection.node_parts import record_filter
    from kraftlake.kafka_files.sniffing.source_kind import SourceKind

    source = session.source
    subject = _subject(session.find_single(path))
    moment = None if first is None else session.moment(first)
    is_snapshot = source.kind is SourceKind.SNAPSHOT  # whose records have offsets of their own
    begin, end = source.offset_range(moment, None if is_snapshot else session.image.offset)
    known = names_before(source, begin)
    wanted = filter(record_filter(subject, known), source.records(begin, end))
    records: Iterator[LogRecord] = (record for record in wanted if not (no_noop and record.type == _NO_OP))
    narrower = "--from, --tail and a longer path"
    show_records(session.call, cut.among(records), known, whole=cut.is_given, narrower=narrower)


@shell_command("diff", question="Show what changed of a node since another moment.")
@argument("moment", metavar="MOMENT", help="The offset or time to compare with; -1 for the empty image.")
@path_argument
@option("--to", metavar="MOMENT", help="The other moment; by default the one looked at.")
@cut_options("Draw long parts in full, not their beginning.")
def diff(
    session: Session,
    moment: str,
    path: str,
    *,
    to: str | None,
    cut: Cut,
) -> None:
    """Show what differs between the images at two moments, of what a node shows at either of them.

    + is what came, - what went, ~ what changed, with before → after.

    Examples:
        # what the offsets after 4592 changed of where you are
        diff 4592
        # what became of a topic between two offsets
        diff 260 /image/topics/byName/elr-a --to 4639
    """
    from kraftlake.cli.commands.diff import image_at, show_diff
    from kraftlake.cli.selection.node_parts import of_node
    from kraftlake.image.diff import diff_images
    from kraftlake.image.nodes.paths import matching

    session.call.check_whole(cut)
    before = image_at(session.call, session.source, session.moment(moment, or_empty=True))
    after = session.image if to is None else image_at(session.call, session.source, session.moment(to, or_empty=True))
    at_either = (next(matching(session.root_of(image), path, session.cwd), None) for image in (after, before))
    found = next(filter(None, at_either), None) or session.find_single(path)
    changes = of_node(diff_images(before, after), _subject(found))
    cut = cut._replace(everything=cut.everything or bool(session.cwd or path != "."))
    show_diff(session.call, session.source.cluster_id, (before, after), changes, cut)


@shell_command("since", question="Show since when nodes are as they are.")
@path_argument
def since(session: Session, path: str) -> None:
    """Show since which offset and time a node, or each node in a directory, has the value that it has.

    Of a partition: its leader, its ISR, and all of it; of a broker that it is fenced, shutting down, and all of it.

    Examples:
        # since when the leaders and ISRs of a topic are so
        since /image/topics/byName/elr-a
    """
    from kraftlake.cli.output.words import since_words
    from kraftlake.diagnosis.blaming import newest_changes
    from kraftlake.diagnosis.since import since_json

    call = session.call
    found = session.find_single(path)
    things = {one.path: _things(one) for one in (found, *found.children())}
    asked = [thing for of_node in things.values() for thing in of_node]
    if not asked:
        raise click.ClickException(f"{found.path}: {_NO_THING}")
    with call.suggest_lenient():
        newest = newest_changes(session.source, asked, session.image.offset, lenient=not call.strict)

    def whole(thing: Thing) -> str:
        return "state" if thing.kind in _SINCE else "value"

    answers = {
        path: {thing.field or whole(thing): since_json(newest[thing]) for thing in of_node if thing in newest}
        for path, of_node in things.items()
        if of_node
    }
    if not call.in_words:
        call.write_rows(Table(("path", "since"), ({"path": of, "since": answer} for of, answer in answers.items())))
        return

    def lines(path_: str, answer: dict[str, Any]) -> Iterator[list[Piece]]:
        heads = [f"{'' if field == 'value' else field + ' '}since " for field in answer]
        pieces: list[list[Piece]] = [
            [(head, Style.QUIET), since_words(form)] for head, form in zip(heads, answer.values(), strict=True)
        ]
        one_line: list[Piece] = [(path_, Style.NAME), *(piece for field in pieces for piece in ("  ", *field))]
        if len(pieces) < 2 or sum(len(styled(piece)[0]) for piece in one_line) <= call.terminal.width:
            yield one_line
            return
        yield [(path_, Style.NAME)]
        yield from (["  ", *field] for field in pieces)

    call.terminal.lines(line for path_, answer in answers.items() for line in lines(path_, answer))


@shell_command("blame", question="Show which record made a node what it is.")
@argument("path", metavar="PATH", help="The path of a node.")
@argument("field", required=False, metavar="[FIELD]", help="Of a partition or broker: leader, isr, fenced, …")
@option("--all", "everything", is_flag=True, help="Every record that changed it, the newest last.")
def blame(session: Session, path: str, field: str | None, *, everything: bool) -> None:
    """Show the newest record that gave a node its value, and the value before.

    Examples:
        # what made a partition's ISR what it is
        blame /image/topics/byName/elr-a/0 isr
        # all that set a config
        blame /image/configs/BROKER/min.insync.replicas --all
    """
    from kraftlake.cli.commands.blame import show_blamed
    from kraftlake.diagnosis.things import Thing

    found = session.find_single(path)
    thing = Thing.of_subject(found.node.subject, field)
    if thing is None:
        raise click.ClickException(f"{found.path}: {_NO_THING}")
    show_blamed(session.call, session.source, thing, session.image.offset, everything=everything)


_NO_THING: Final = (
    "since and blame are of topics, partitions, brokers, configs, features, ACLs and quotas; `log` and `diff` of all"
)


def _subject(found: FoundNode) -> Subject:
    if found.node.subject is None:
        raise click.ClickException(f"{found.path} is of no record: log and diff take the other paths below /image")
    return found.node.subject


def _things(found: FoundNode) -> Sequence[Thing]:
    """The things of a node whose times `since` shows."""
    from kraftlake.diagnosis.things import Thing

    subject = found.node.subject
    if subject is None or (subject.kind == "topic" and not found.node.is_directory):  # its id and name
        return ()
    made = [Thing.of_subject(subject, field) for field in _SINCE.get(subject.kind, (None,))]
    return [thing for thing in made if thing is not None]
