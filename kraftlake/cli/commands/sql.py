"""`kraftlake sql`: a question in SQL over the tables of a log's history."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.parameters import CountParameter
from kraftlake.cli.options.shared import command
from kraftlake.cli.output.formats import Table
from kraftlake.runtime.words import counted

if TYPE_CHECKING:
    from kraftlake.api.sql import SqlRows


@command("What does a question in SQL over the history say?", replays=False, long=True)
@argument("question", metavar="SELECT", help="One SELECT in DuckDB's SQL; - reads it from stdin.")
@option(
    "--limit",
    type=CountParameter(min=1, max=1_000_000),
    default=1_000,
    show_default=True,
    help="The first N rows of the answer alone.",
)
@option(
    "--timeout",
    type=CountParameter(min=1, max=3600),
    default=60,
    show_default=True,
    help="The seconds that the answer may take.",
)
def sql(call: Call, source: str, question: str, *, limit: int, timeout: int) -> None:
    """Answer one SELECT over the derived tables of SOURCE, by DuckDB in this process; nothing is written.

    A lake's tables are read as `kraftlake tables` left them. Of any other source, those that the question names are
    made in a temporary folder first, and are gone afterwards. The tables are events, partition_history, topic_history,
    broker_history, config_history, acl_history, quota_history, feature_history, scram_history, local_changes,
    cluster_metrics, records, and log without payloads; `DESCRIBE events` lists columns. Secrets are in none of them.

    A question opens no file and no address, and changes no setting. OFFSET is a word of SQL: write e.offset, or
    "offset". Needs the extra `sql`.

    Examples:
        # what happened most
        kraftlake sql {SAMPLE} 'SELECT kind, count(*) AS n FROM events GROUP BY kind ORDER BY n DESC LIMIT 5'
        # the columns of a table
        kraftlake sql {SAMPLE} 'DESCRIBE partition_history'
        # for a spreadsheet
        kraftlake sql {SAMPLE} 'SELECT * FROM topic_history' --output csv
    """
    if question == "-":
        question = sys.stdin.read()
    opened = call.open(source)
    with call.progress() as progress:
        answer = opened.sql(question, limit=limit, seconds=timeout, progress=progress)
    _warn_left_out(call, answer, opened.end_offset - 1, limit)
    if not call.in_words:
        call.write_rows(Table(answer.columns, _rows(answer)))
        return
    from kraftlake.cli.views.sql_view import show_rows

    show_rows(call.terminal, answer)


def _rows(answer: SqlRows) -> Iterator[dict[str, object]]:
    for row in answer:
        yield dict(zip(answer.columns, row, strict=True))


def _warn_left_out(call: Call, answer: SqlRows, last: int, limit: int) -> None:
    """Say what an answer leaves out: rows, and offsets that its tables do not cover."""
    if answer.is_cut:
        call.terminal.warn(f"the first {counted(limit, 'row')} of the answer alone: --limit takes more")
    behind = {name: offset for name, offset in answer.covered.items() if offset < last}
    if behind:
        name, offset = min(behind.items(), key=lambda one: one[1])
        call.terminal.warn(f"{name}/ covers the log up to offset {offset} of {last}: `kraftlake tables` brings it up")
