"""`kraftlake bisect`: the offset at which a condition began to hold."""

from __future__ import annotations

from datetime import datetime

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import argument
from kraftlake.cli.options.shared import command, from_option, to_option


@command("From which offset on did a condition hold?")
@argument("condition", metavar="CONDITION", help="What should hold; in quotes, for the shell.")
@from_option
@to_option
def bisect(
    call: Call, source: str, condition: str, *, first: int | datetime | None, last: int | datetime | None
) -> None:
    """Find the first offset after which CONDITION holds and before which it did not; exit code 1 where it never does.

    Names in a condition: the counts of `kraftlake metrics` (offline_partitions_count or offline_partitions,
    under_min_isr_partitions, …);
    topic("T").partition(N).FIELD, broker(ID).FIELD, config("TYPE", "RESOURCE", "NAME"), feature("NAME"), with the
    fields of `kraftlake image --json`; len(LIST). They compare with == != < <= > >= in, not in, with numbers, texts in
    quotes, true, false, lists in brackets, and join with and, or, not and parentheses. What is asked of a thing that is
    not there does not hold, and neither does the opposite; `== none` asks for that.

    Examples:
        # when partitions first went offline
        kraftlake bisect {SAMPLE} 'offline_partitions > 0'
        # the first time from an offset on
        kraftlake bisect {SAMPLE} 'broker(3).fenced' --from 4000
        # when a partition got a leader
        kraftlake bisect {SAMPLE} 'topic("t-22-3h4").partition(2).leader == 2' --from 458
        # two at once
        kraftlake bisect {SAMPLE} 'offline_partitions > 40 and 2 not in topic("elr-a").partition(0).isr'
        # what a config was
        kraftlake bisect {SAMPLE} 'config("TOPIC", "t-3-dj5", "retention.ms") != none'
        # for other programs
        kraftlake bisect {SAMPLE} 'fenced_broker_count >= 3' --json
    """
    opened = call.open(source)
    with call.suggest_lenient("--to {} searches what is before it"):
        found = opened.bisect(condition, first, last, lenient=not call.strict)
    call.warn_skipped(found.skipped)
    if not call.answered(form := found.to_json()):
        from kraftlake.cli.views.blame_view import show_bisected

        show_bisected(call.terminal, form)
