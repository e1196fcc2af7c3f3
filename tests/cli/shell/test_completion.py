"""Completion: each word that it makes is the node that it shows."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import kraftlake
from kraftlake.cli.shell.completion import candidates
from kraftlake.image.nodes.image_nodes import root_node
from kraftlake.image.nodes.node import Directory
from kraftlake.image.nodes.paths import as_literal, matching, part_of, path_of
from tests.cli.running import DIRECTORY
from tests.image.nodes.test_paths import TREES


class Place:
    """What completion asks of a session."""

    def __init__(self, root: Directory, *cwd: str) -> None:
        self.root = root
        self.cwd = cwd


@pytest.fixture(scope="module")
def sample() -> Directory:
    return root_node(kraftlake.open(DIRECTORY).image(), version="")


def words(root: Directory, line: str, *cwd: str) -> list[str]:
    """The whole lines that a line is completed to."""
    place = Place(root, *cwd)
    return [f"{line[: len(line) - one.replaced]}{one.word}" for one in candidates(place, line)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("", 15),
        ("c", ["cd ", "cat "]),
        ("  fi", ["  find "]),
        ("man s", ["man since "]),
        ("ls /im", ["ls /image/"]),
        ("ls /image/topics/byN", ["ls /image/topics/byName/"]),
        ("cat /image/cluster/brokers/", [f"cat /image/cluster/brokers/{number} " for number in (1, 2, 3, 4)]),
        ("cat '/image/topics/byName/elr-a/n", ["cat /image/topics/byName/elr-a/name "]),
        ("cd /image/topics/byName/elr-a/", []),
        ("ls '/image/clientQuotas/user(al", ["ls '/image/clientQuotas/user(alice)/'"]),
        ("ls /image/clientQuotas/user\\(al", ["ls '/image/clientQuotas/user(alice)/'"]),
        ("cat /image/cluster/brokers/1 /image/prov", ["cat /image/cluster/brokers/1 /image/provenance "]),
        ("blame /image/cluster/brokers/1 fen", ["blame /image/cluster/brokers/1 fenced "]),
        ("blame /image/topics/byName/elr-a/0 isr", ["blame /image/topics/byName/elr-a/0 isr "]),
        ("blame /image/provenance x", []),
        ("find --n", ["find --name "]),
        ("log --no", ["log --no-noop "]),
        ("since /local/v", ["since /local/version "]),
        ("nothing /im", []),
        ("ls /nope/", []),
        ("pwd /im", []),
    ],
)  # fmt: skip
def test_what_may_follow(sample: Directory, line: str, completed: list[str] | int) -> None:
    found = words(sample, line)
    assert (len(found) if isinstance(completed, int) else sorted(found)) == (
        completed if isinstance(completed, int) else sorted(completed)
    )


def test_relative_paths(sample: Directory) -> None:
    assert words(sample, "cat el", "image", "topics", "byName") == ["cat elr-a/"]
    assert words(sample, "cd ../byI", "image", "topics", "byName") == ["cd ../byId/"]


@given(tree=TREES, data=st.data())
def test_a_completed_word_is_the_node_that_is_shown(tree: Directory, data: st.DataObject) -> None:
    """Down any tree, one Tab a level, from any beginning of the name that is typed."""
    assume(tree.names)
    node, names, line = tree, (), "cat "
    while isinstance(node, Directory) and node.names:  # may assert nothing: the tree has a name
        name = data.draw(st.sampled_from(node.names))
        typed = shlex.quote(
            path_of(names).rstrip("/") + "/" + as_literal(part_of(name))[: data.draw(st.integers(0, 3))]
        )
        if names and any(character in path_of(names) for character in "*?{}\\"):
            typed = line.removeprefix("cat ")  # as completion wrote it
        shown = part_of(name)
        found = [one for one in candidates(Place(tree), f"cat {typed}") if one.shown.rstrip("/") == shown]  # type: ignore[arg-type]
        (candidate,) = found
        line = f"cat {candidate.word}"
        _, word = shlex.split(line)
        names = (*names, name)
        (one,) = matching(tree, word)
        assert one.names == names
        child = node.child(name)
        assert child is one.node
        node = child if isinstance(child, Directory) else fixed_leaf()


def fixed_leaf() -> Directory:
    return Directory(None, tuple, lambda _: None)
