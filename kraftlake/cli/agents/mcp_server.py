"""A server of the Model Context Protocol on stdin and stdout, whose tools are commands that only read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

from kraftlake.cli.agents.answering import Answering, AnswerLimits, place_of
from kraftlake.cli.agents.command_tool import COMMANDS, CommandTool
from kraftlake.runtime import __version__
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.runtime.words import in_words

_INSTRUCTIONS = """\
Past states of Kafka clusters, from their metadata logs. Each tool is a command of kraftlake that only reads; an answer
has the command that gives the same to a person, and where its source ends (offset, epoch, time). Secrets are redacted.
Moments are offsets, times in UTC, or times before the log's end such as now-15m. Begin with doctor."""


def tools_of(commands: Any, sources: Sequence[str], *, schemas: str | None = None) -> dict[str, CommandTool]:
    """The tools by name; `commands` are those of the application by name, each gets the folder of `schemas`."""
    return {name: CommandTool(command=commands[name], sources=tuple(sources), schemas=schemas) for name in COMMANDS}


def server_of(tools: dict[str, CommandTool], limits: AnswerLimits) -> Server[Any]:
    """The server with some tools."""
    answering = Answering(limits)

    async def list_tools(*_: Any) -> types.ListToolsResult:
        reads = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name, description=tool.description, input_schema=tool.input_schema, annotations=reads
                )
                for tool in tools.values()
            ]
        )

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = tools.get(params.name)
        if tool is None:
            return _result(
                {"error": f"There is no tool {params.name!r}: there are {in_words([*tools])}."}, is_error=True
            )
        try:
            arguments = params.arguments or {}
            words = tool.command_line(arguments)
            places = {source: await asyncio.to_thread(place_of, source) for source in _named(tool, arguments)}
        except KraftlakeError as fault:
            return _result({"error": str(fault)}, is_error=True)
        answer = await answering.answer(words)
        return _result(answer.form | {"sources": places}, is_error=answer.is_error)

    return Server(
        "kraftlake", version=__version__, instructions=_INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


def serve(server: Server[Any]) -> None:
    """Serve until stdin ends."""

    async def run() -> None:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    asyncio.run(run())


def _named(tool: CommandTool, arguments: dict[str, Any]) -> list[str]:
    """The sources that a call names, in order."""
    values = [value if isinstance(value, list) else [value] for value in arguments.values()]
    return [source for source in tool.sources if any(source in value for value in values)]


def _result(form: dict[str, Any], *, is_error: bool) -> types.CallToolResult:
    text = json.dumps(form, ensure_ascii=False)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=form, is_error=is_error
    )
