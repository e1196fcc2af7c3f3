"""A command as a tool: its schema, and the command line of a call, which no value leaves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.cli.agents.command_tool import COMMANDS, CommandTool
from kraftlake.cli.application import application
from kraftlake.runtime.errors import UsageError

SOURCES = ("log", "lake")


def tool(name: str) -> CommandTool:
    return CommandTool(command=application.commands[name], sources=SOURCES)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_tool_takes_what_its_command_takes_but_files_and_secrets(name: str) -> None:
    schema = tool(name).input_schema
    assert (
        schema["properties"]
        .keys()
        .isdisjoint({"show_secrets", "command_config", "html", "log_dirs", "reassign", "as_json", "output", "verbose"})
    )
    (source,) = {"source", "sources"} & schema["properties"].keys()
    assert source in schema["required"]
    one = schema["properties"][source]
    assert one.get("enum", one.get("items", {}).get("enum")) == [*SOURCES]
    assert all(one["description"] for one in schema["properties"].values())
    assert tool(name).description.startswith(application.commands[name].short_help or "?")


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("image", {"source": "log"}, ["image", "--json", "--", "log"]),
        ("image", {"source": "log", "parts": ["features", "acls"], "everything": True, "at_offset": 458},
         ["image", "--part=features", "--part=acls", "--all", "--at-offset=458", "--json", "--", "log"]),
        ("image", {"source": "lake", "strict": False}, ["image", "--lenient", "--json", "--", "lake"]),
        ("image", {"source": "lake", "everything": False}, ["image", "--json", "--", "lake"]),
        ("blame", {"thing": "--show-secrets", "source": "log"}, ["blame", "--json", "--", "log", "--show-secrets"]),
        ("doctor", {"sources": ["log", "lake"]}, ["doctor", "--json", "--", "log", "lake"]),
        ("drift", {"source": "log", "other": "lake"}, ["drift", "--json", "--", "log", "lake"]),
        ("diff", {"source": "log", "first": "now-15m", "other": "lake"},
         ["diff", "--with=lake", "--json", "--", "log", "now-15m"]),
    ],
)  # fmt: skip
def test_the_command_line_of_a_call(name: str, arguments: dict[str, Any], words: list[str]) -> None:
    assert tool(name).command_line(arguments) == words


@pytest.mark.parametrize(
    ("name", "arguments", "refusal"),
    [
        ("image", {}, "image needs the argument 'source'"),
        ("image", {"source": "/etc/passwd"}, "'/etc/passwd' is none of the sources here: log and lake"),
        ("doctor", {"sources": ["log", "other"]}, "'other' is none of the sources here"),
        ("drift", {"source": "log", "other": "declared.yaml"}, r"'declared\.yaml' is none of the sources here"),
        ("image", {"source": "log", "show_secrets": True}, "image has no argument 'show_secrets': it takes "),
        ("doctor", {"sources": ["log"], "html": "x"}, "doctor has no argument 'html'"),
        ("image", {"source": "log", "everything": "yes"}, "'everything' is true or false, not 'yes'"),
        ("image", {"source": "log", "topics": {"a": 1}}, "'topics' is text or a number, not "),
        ("image", {"source": ["log"]}, "'source' is text or a number, not "),
    ],
)
def test_what_is_refused(name: str, arguments: dict[str, Any], refusal: str) -> None:
    with pytest.raises(UsageError, match=refusal):
        tool(name).command_line(arguments)


@given(st.sampled_from(COMMANDS), st.text(max_size=30), st.data())
def test_no_text_becomes_an_option(name: str, text: str, data: st.DataObject) -> None:
    chosen = tool(name)
    properties = chosen.input_schema["properties"]
    texts = [key for key, one in properties.items() if one["type"] == "string" and "enum" not in one]
    needed = {key: ["log"] if properties[key]["type"] == "array" else "log" for key in chosen.input_schema["required"]}
    given_to = data.draw(st.sampled_from([*texts, None])) if texts else None
    words = chosen.command_line(needed | ({given_to: text} if given_to else {}))
    options = words[1 : words.index("--")]
    assert options[-1] == "--json"
    assert {word.partition("=")[0] for word in options[:-1]} <= {
        name for parameter in chosen.command.params for name in parameter.opts
    }
    assert len(options) <= 3  # with what the command needs
