"""Paths and patterns: every node is found by the path that it is shown with, whatever its name is."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.image.nodes.node import Directory, Leaf, fixed
from kraftlake.image.nodes.paths import FoundNode, as_literal, matching, part_of, path_of

NAMES = st.text(st.sampled_from("ab/%.*?{},\\ 2FE5\n\x1bé"), max_size=4)
TREES = st.recursive(
    st.builds(lambda: Leaf(None, lambda: "", lambda: None)),
    lambda children: st.builds(fixed, st.none(), st.dictionaries(NAMES, children, max_size=4)),
    max_leaves=12,
).filter(lambda node: isinstance(node, Directory))


def tree_of(*paths: str) -> Directory:
    """A tree with a leaf at each path; names are apart by `|`."""
    children: dict[str, list[str]] = {}
    for path in paths:
        name, _, rest = path.partition("|")
        children.setdefault(name, []).extend([rest] if rest else [])
    leaf = Leaf(None, lambda: "text", lambda: None)
    return fixed(None, {name: tree_of(*rest) if rest else leaf for name, rest in children.items()})


def paths(root: Directory, pattern: str, within: tuple[str, ...] = ()) -> list[str]:
    return [found.path for found in matching(root, pattern, within)]


@given(TREES)
def test_each_node_is_the_one_that_its_literal_path_matches(root: Directory) -> None:
    for found in FoundNode((), root).below():
        literal = "/" + "/".join(as_literal(part_of(name)) for name in found.names)
        assert [one.names for one in matching(root, literal)] == [found.names]
        assert [one.node for one in matching(root, literal)] == [found.node]


@given(TREES)
def test_a_pattern_for_everything_matches_each_node_of_a_depth_once(root: Directory) -> None:
    below = list(FoundNode((), root).below())
    for depth in range(1, 4):
        wanted = [found.names for found in below if len(found.names) == depth]
        assert [one.names for one in matching(root, "/*" * depth)] == wanted


@given(st.lists(NAMES))
def test_a_path_has_a_part_for_each_name(names: list[str]) -> None:
    path = path_of(tuple(names))
    assert path.count("/") == max(1, len(names))
    assert all(part not in ("", ".", "..") for part in path[1:].split("/")) or not names


SAMPLE = tree_of("a|b1|x", "a|b2|x", "a|c", "d|50%", "d|x/y|z", "d|w*", "d|q{r", "e|", "d|..", "d|a b")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("/", ["/"]),
        ("", ["/"]),
        ("/a", ["/a"]),
        ("a//b1/./x/", ["/a/b1/x"]),
        ("a/b1/../c", ["/a/c"]),
        ("../../a", ["/a"]),
        ("a/b*", ["/a/b1", "/a/b2"]),
        ("a/b?/x", ["/a/b1/x", "/a/b2/x"]),
        ("a/{b2,c}", ["/a/b2", "/a/c"]),
        ("a/{b{1,2},c}", []),
        ("a/b[12]", []),
        ("*/c", ["/a/c"]),
        ("a/c/x", []),
        ("d/50%25", ["/d/50%25"]),
        ("d/50%", ["/d/50%25"]),
        ("d/x%2Fy", ["/d/x%2Fy"]),
        ("d/x/y/z", ["/d/x%2Fy/z"]),
        ("d/w*", ["/d/w*"]),
        ("d/w\\*", ["/d/w*"]),
        ("d/q{r", ["/d/q{r"]),
        ("d/%2E%2E", ["/d/%2E%2E"]),
        ("d/a b", ["/d/a b"]),
        ("nope", []),
        ("\\a", ["/a"]),
    ],
)
def test_patterns(pattern: str, found: list[str]) -> None:
    assert paths(SAMPLE, pattern) == found


def test_a_relative_pattern_begins_where_one_is() -> None:
    assert paths(SAMPLE, "x", ("a", "b1")) == ["/a/b1/x"]
    assert paths(SAMPLE, "../b2", ("a", "b1")) == ["/a/b2"]
    assert paths(SAMPLE, "/d/w\\*", ("a", "b1")) == ["/d/w*"]
    assert paths(SAMPLE, "z", ("d", "x/y")) == ["/d/x%2Fy/z"]
    assert paths(SAMPLE, ".", ("d", "w*")) == ["/d/w*"]


def test_children_are_made_when_they_are_asked_for() -> None:
    made = []

    def child(name: str) -> Leaf | None:
        made.append(name)
        return Leaf(None, lambda: name, lambda: name) if re.fullmatch("[0-9]+", name) else None

    root = Directory(None, lambda: map(str, range(1_000_000)), child)
    assert paths(root, "/777") == ["/777"]
    assert made == ["777"]
    assert next(matching(root, "/9*")).path == "/9"
    assert made == ["777", "9"]
    assert [found.path for found, _ in zip(FoundNode((), root).below(), range(3), strict=False)] == ["/", "/0", "/1"]
