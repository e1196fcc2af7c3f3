"""`kraftlake quorum`: the state of a quorum, read from the controllers' directories; none of them needs to run."""

from __future__ import annotations

import click

from kraftlake.cli.faults import UNHEALTHY
from kraftlake.cli.options.call import Call
from kraftlake.cli.options.shared import command, sources_options
from kraftlake.cli.output.form_rows import NODE, list_of


@command("Who votes, whose log goes furthest, and can they elect a leader?", source=False)
@sources_options
def quorum(call: Call, sources: tuple[str, ...]) -> None:
    """Show the quorum as the directories of its nodes have it: who votes, how far each log goes and in which epoch.

    Name the metadata directories of all controllers that are left, of brokers too, or copies of them; a folder or an
    archive of several stands for all that it holds. The command shows which of these voters can be elected, whether
    their logs hold everything that was committed, and which offsets of a deposed leader a node would lose. Logs that
    two quorums wrote are shown as two histories, with what each has alone; none is called the right one. No node needs
    to run, and nothing is written.

    The exit code is 3 where a verdict is bad or a node is at fault, 0 where all is well.

    meta.properties beside a directory has the ids of the node and the directory, quorum-state in it the node's votes.

    Examples:
        # the voters, and what one controller has
        kraftlake quorum {SAMPLE}
        # all nodes below a folder, or in an archive
        kraftlake quorum samples/kafka-4.4
        # for other programs
        kraftlake quorum {SAMPLE} --json
    """
    from kraftlake.diagnosis.quorum_health import node_faults, quorum_verdicts
    from kraftlake.replay.queries.quorum_report import describe_quorum

    report = describe_quorum(sources, cluster_id=call.cluster_id, command_config=call.command_config)
    verdicts, faults = quorum_verdicts(report), tuple(node_faults(report))
    if not call.answered(report.to_json(), list_of("nodes", NODE)):
        from kraftlake.cli.views.quorum_view import show_quorum

        deposed = [fault for fault in faults if fault.check == "diverged_log"]
        show_quorum(call.terminal, report.to_json(), (*verdicts, *deposed))
    if faults or not all(verdict.good for verdict in verdicts):
        raise click.exceptions.Exit(UNHEALTHY)
