"""`kraftlake mcp`, driven by the client of the `mcp` package through an incident."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from kraftlake.cli.agents.answering import AnswerLimits
from kraftlake.cli.agents.command_tool import COMMANDS
from kraftlake.cli.agents.mcp_server import server_of, tools_of
from kraftlake.cli.application import application
from kraftlake.runtime import extras
from tests.at_least_one import at_least_one
from tests.cli.running import DIRECTORY, TORN, fault, run
from tests.foreign_logs import AUTOMQ, SECRET, foreign_log

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
LOG = str(DIRECTORY)
INCIDENT: tuple[tuple[str, dict[str, Any]], ...] = (
    ("doctor", {"sources": [LOG]}),
    ("events", {"source": LOG, "kinds": ["broker_fenced"], "limit": 3}),
    ("blame", {"source": LOG, "thing": "topic/elr-a/partition/0/isr", "at_offset": "1400"}),
    ("bisect", {"source": LOG, "condition": "offline_partitions > 5", "first": "300"}),
    ("image", {"source": LOG, "parts": ["features"], "at_offset": "07:47"}),
    ("diff", {"source": LOG, "first": "458", "last": "469"}),
    ("availability", {"source": LOG, "by": "broker", "last": "1400"}),
    ("sql", {"source": LOG, "question": "SELECT subject, sentence FROM events WHERE kind = 'leader_lost'", "limit": 2}),
)
END = {"offset": 5736, "epoch": 2, "time": "2026-11-21 07:50:33.079Z"}


def asked(what: Callable[[Client], Awaitable[Any]], **limits: Any) -> Any:
    async def ask() -> Any:
        async with Client(server_of(tools_of(application.commands, [LOG]), AnswerLimits(**limits))) as client:
            return await what(client)

    return asyncio.run(ask())


def call(name: str, arguments: dict[str, Any], **limits: Any) -> Any:
    return asked(lambda client: client.call_tool(name, arguments), **limits)


def test_an_incident_from_a_process_of_its_own() -> None:
    async def ask() -> list[Any]:
        words = ["-m", "kraftlake.cli", "mcp", LOG]
        async with Client(StdioServerParameters(command=sys.executable, args=words)) as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == [*COMMANDS]
            assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools)
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    calls = INCIDENT if LONG else INCIDENT[::3]  # an answer is a process
    for (name, _), result in at_least_one([*zip(calls, asyncio.run(ask()), strict=True)]):
        form = json.loads(result.content[0].text)
        assert not result.is_error, form
        assert form == result.structured_content
        assert form["sources"] == {LOG: END}
        tool, command, *words = shlex.split(form["command"])
        assert (tool, command) == ("kraftlake", name)
        printed = run(command, *words, code=3 if name == "doctor" else 0).stdout
        lines = [json.loads(line) for line in printed.splitlines()]
        assert lines == (form["rows"] if "rows" in form else [form["answer"]])


def test_each_source_of_a_call_has_its_end() -> None:
    torn = str(TORN)

    async def ask() -> list[Any]:
        async with Client(server_of(tools_of(application.commands, [LOG, torn]), AnswerLimits())) as client:
            calls = (("drift", {"source": torn, "other": LOG}), ("verify", {"source": torn}))
            return [(await client.call_tool(*call)).structured_content["sources"] for call in calls]

    both, one = asyncio.run(ask())
    assert [*both] == [LOG, torn]
    assert both[LOG] == END
    assert one == {torn: both[torn]}


def test_secrets_are_redacted() -> None:
    form = call("image", {"source": LOG, "parts": ["scram"]}).structured_content
    assert "(redacted)" in json.dumps(form["answer"])


def test_refusals_are_errors_of_the_tool_in_one_sentence() -> None:
    for name, arguments, error in (
        ("image", {"source": "/etc"}, "'/etc' is none of the sources here"),
        ("remove", {}, "There is no tool 'remove': there are doctor, "),
        ("image", {"source": LOG, "at_offset": "99999"}, "Offset 99999 is past the end"),
        ("blame", {"source": LOG, "thing": "--show-secrets"}, "'--show-secrets' names nothing: a path is one of "),
    ):
        result = call(name, arguments)
        assert result.is_error
        assert result.structured_content["error"].startswith(error), result.structured_content


def test_rows_beyond_the_size_are_left_out_and_a_larger_object_is_refused() -> None:
    form = call("log", {"source": LOG, "everything": True}, answer_bytes=20_000).structured_content
    assert form["cut"].startswith(f"the first {len(form['rows'])} rows alone")
    assert [row["offset"] for row in form["rows"]] == [*range(len(form["rows"]))]
    assert len(json.dumps(form)) < 25_000
    result = call("image", {"source": LOG}, answer_bytes=20_000)
    assert result.is_error
    assert result.structured_content["error"] == "The answer is above 20,000 bytes: ask for less."


def test_an_answer_that_takes_too_long_is_ended() -> None:
    result = call("doctor", {"sources": [LOG]}, seconds=0.05)
    assert result.is_error
    assert result.structured_content["error"] == "No answer within 0.05 s: ask for less."


def test_a_question_in_sql_reads_the_tables_alone() -> None:
    refused = ("COPY events TO 'x'", "SELECT * FROM read_csv('/etc/passwd')", "ATTACH 'x'", "PRAGMA version")
    for question in refused if LONG else refused[:2]:
        result = call("sql", {"source": LOG, "question": question})
        assert result.is_error
        assert "The question is not one SELECT" in (error := result.structured_content["error"]) or "refuses" in error
    endless = "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r"
    result = call("sql", {"source": LOG, "question": endless, "timeout": 1})
    assert "has no answer within 1 s" in result.structured_content["error"]
    cut = call("sql", {"source": LOG, "question": "SELECT * FROM events", "limit": 100_000}, answer_bytes=4096)
    assert 2 <= len(cut.structured_content["rows"]) < 100
    assert "more are above the limit" in cut.structured_content["cut"]


def test_the_records_of_a_fork_are_shown_by_the_schemas_of_the_server(tmp_path: Path) -> None:
    log = str(foreign_log(tmp_path))

    async def ask() -> Any:
        words = ["-m", "kraftlake.cli", "mcp", log, "--schemas", str(AUTOMQ)]
        async with Client(StdioServerParameters(command=sys.executable, args=words)) as client:
            return await client.call_tool("log", {"source": log, "types": ["kvrecord", "s3_stream"], "limit": 2})

    found = asyncio.run(ask()).structured_content
    assert shlex.split(found["command"])[:3] == ["kraftlake", "log", f"--schemas={AUTOMQ}"]
    assert [row["type"] for row in found["rows"]] == ["KVRECORD", "S3_STREAM_RECORD"]
    assert found["rows"][1]["data"]["streamId"] == 3
    assert SECRET not in str(found)


def test_a_missing_package_and_a_missing_source_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "nowhere does not exist" in fault("mcp", "nowhere")
    assert fault("mcp", "-", code=2).startswith("stdin and stdout carry the protocol: name a file")
    monkeypatch.setattr(extras, "is_installed", lambda module: module != "mcp")
    assert fault("mcp", LOG) == "Servers for agents need the package mcp: pip install 'kraftlake[mcp]'"
