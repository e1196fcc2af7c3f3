"""`kraftlake mcp`: answers for agents, over the Model Context Protocol."""

from __future__ import annotations

import click

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.parameters import SOURCE, CountParameter
from kraftlake.cli.options.schemas import GIVEN
from kraftlake.cli.options.shared import command, schemas_option


@command("What may an agent ask of these sources?", source=False, answers=False)
@argument("sources", type=SOURCE, nargs=-1, required=True, metavar="SOURCE...", help="What an agent may ask about.")
@option(
    "--timeout",
    type=CountParameter(min=1, max=3600),
    default=60,
    show_default=True,
    help="The seconds that an answer may take.",
)
@option(
    "--max-bytes",
    type=CountParameter(min=1024),
    default=256 * 1024,
    show_default=True,
    help="The size that an answer may have.",
)
@schemas_option
@click.pass_context
def mcp(context: click.Context, call: Call, sources: tuple[str, ...], *, timeout: int, max_bytes: int) -> None:
    """Serve the commands that only read as tools on stdin and stdout, over the Model Context Protocol.

    An agent can ask of the given sources alone, and name no file. Each answer is the JSON of a command, with the
    command line that gives the same to a person, and with the offset, epoch and time at which its source ends. Secrets
    are redacted, and no option shows them. Rows beyond the size are left out, and the answer says so.

    Examples:
        # of a log and of a lake
        kraftlake mcp {SAMPLE} lake
    """
    from kraftlake.runtime.extras import require

    if "-" in sources:
        raise click.UsageError("stdin and stdout carry the protocol: name a file, a folder, a lake or a quorum.")
    require("mcp", "Servers for agents")
    from kraftlake.cli.agents.answering import AnswerLimits
    from kraftlake.cli.agents.mcp_server import serve, server_of, tools_of

    for source in sources:
        call.open(source)
    commands = context.find_root().command
    assert isinstance(commands, click.Group)
    limits = AnswerLimits(seconds=timeout, answer_bytes=max_bytes)
    serve(server_of(tools_of(commands.commands, sources, schemas=context.meta.get(GIVEN)), limits))
