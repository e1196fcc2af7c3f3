"""Names side by side, and the texts of leaves on a terminal: every character of them, in lines that have room."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

import kraftlake
from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style, painted
from kraftlake.cli.views.node_view import columns, leaf_lines
from kraftlake.image.nodes.image_nodes import root_node
from kraftlake.image.nodes.node import Leaf
from kraftlake.image.nodes.paths import FoundNode
from tests.cli.running import DIRECTORY

NAMES = st.lists(st.text(st.sampled_from("ab漢\x1b"), min_size=1, max_size=12), min_size=1, max_size=40)


def lines(text: str, width: int, *, interactive: bool = True) -> list[str]:
    terminal = Terminal("never")
    terminal.interactive, terminal.width = interactive, width
    return [painted(*pieces, colour=False) for pieces in leaf_lines(terminal, text)]


def test_a_value_without_room_has_a_line_for_each_field() -> None:
    text = "Partition(replicas=[1, 2], leader=1, host='h', listeners=[Endpoint(name='A', port=1), Endpoint(name='B')])"
    assert lines(text, 50) == [
        "Partition(",
        "  replicas=[1, 2],",
        "  leader=1,",
        "  host='h',",
        "  listeners=[",
        "    Endpoint(name='A', port=1),",
        "    Endpoint(name='B')",
        "  ]",
        ")",
    ]
    assert lines(text, 200) == lines(text, 60, interactive=False) == [text]
    assert lines("a long value, with commas, and (brackets), of a config", 20) == [
        "a long value, with commas, and (brackets), of a config"
    ]


@given(st.text(st.sampled_from("ab=,()[]{} '"), max_size=60), st.integers(10, 50))
def test_no_character_is_lost(text: str, width: int) -> None:
    assert "".join("".join(lines(f"A(b={text}", width)).split()) == "".join(f"A(b={text}".split())


@pytest.mark.parametrize("width", [80, 120])
def test_the_values_of_the_sample_have_room(width: int) -> None:
    root = root_node(kraftlake.open(DIRECTORY).image(), version="", show_secrets=True)
    kinds: dict[str, list[str]] = {}
    for one in FoundNode((), root).below():
        if isinstance(one.node, Leaf) and one.node.subject is not None and one.node.subject.kind != "credential":
            kinds.setdefault(one.node.subject.kind, []).append(one.node.text)
    assert len(kinds) > 8
    for texts in kinds.values():
        for text in texts[:50]:
            assert "(tokenRequester" in text or max(map(len, lines(text, width))) <= width


def in_columns(names: list[str], width: int) -> list[str]:
    return [painted(*pieces, colour=False) for pieces in columns([(name, Style.NAME) for name in names], width)]


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (80, ["a  bb  c  dd  eeeee"]),
        (19, ["a  bb  c  dd  eeeee"]),
        (18, ["a   c   eeeee", "bb  dd"]),
        (9, ["a   dd", "bb  eeeee", "c"]),
        (4, ["a", "bb", "c", "dd", "eeeee"]),
    ],
)
def test_as_many_columns_as_have_room(width: int, expected: list[str]) -> None:
    assert in_columns(["a", "bb", "c", "dd", "eeeee"], width) == expected


def test_of_nothing_there_is_no_line() -> None:
    assert in_columns([], 80) == []


@given(NAMES, st.integers(1, 100))
def test_each_name_is_there_once_and_no_line_is_too_long(names: list[str], width: int) -> None:
    drawn = in_columns(names, width)
    assert sorted(" ".join(drawn).split()) == sorted(painted(name, colour=False) for name in names)
    assert all(cell_len(line) <= width for line in drawn) or len(drawn) == len(names)
