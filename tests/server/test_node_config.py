"""A node's configuration: Kafka's names from a file and from the command line, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftlake.runtime import UsageError
from kraftlake.server import ListenerAddress, NodeSettings, parse_listener
from kraftlake.server.node_config import STANDARD_AUTHORIZER, has_authorizer


def settings(**values: str) -> NodeSettings:
    """Settings with names in which _ stands for a dot."""
    return NodeSettings(values={name.replace("_", "."): value for name, value in values.items()})


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("CONTROLLER://127.0.0.1:9093", "127.0.0.1", 9093),
        ("CONTROLLER://localhost:0", "localhost", 0),
        ("CONTROLLER://[::1]:9093", "::1", 9093),
        ("CONTROLLER://[::1]:0", "::1", 0),
        (" CONTROLLER://:9093 ", "127.0.0.1", 9093),
        ("CONTROLLER://:0", "127.0.0.1", 0),
    ],
)
def test_a_listener_has_a_name_a_host_and_a_port(text: str, host: str, port: int) -> None:
    assert parse_listener(text) == ListenerAddress(name="CONTROLLER", host=host, port=port)


@pytest.mark.parametrize(
    "text", ["", "9093", "localhost:9093", "://localhost:1", "C://h", "C://h:1,C://h:2", "C://h:70000"]
)
def test_anything_else_is_no_listener(text: str) -> None:
    with pytest.raises(UsageError):
        parse_listener(text)


def test_what_is_given_goes_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "node.properties"
    file.write_text("# a node\nnode.id = 7\nnum.partitions=3\\\n4\nlisteners=A://:1, B://[::1]:2\n")
    read = NodeSettings.read(str(file), [("num.partitions", "5")])
    assert (read.integer("node.id", 0), read.integer("num.partitions", 1)) == (7, 5)
    assert [str(one) for one in read.listeners("listeners")] == ["A://127.0.0.1:1", "B://::1:2"]
    assert NodeSettings.read(str(file)).integer("num.partitions", 1) == 34
    assert read.text("none") is None
    assert read.integer("none", 9) == 9
    assert read.flag("none", default=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [("whole", "1.5"), ("whole", ""), ("whole", "-1"), ("whole", "11"), ("flag", "yes"), ("flag", "")],
)
def test_a_value_that_is_none_of_its_kind_is_named(name: str, value: str) -> None:
    made = settings(**{name: value})
    with pytest.raises(UsageError, match=f"^{name} has the value {value!r} in the settings: "):
        _ = made.integer("whole", 0, most=10) if name == "whole" else made.flag("flag", default=True)


@pytest.mark.parametrize(("content", "reason"), [(None, "can't be read"), (b"a=\\u12", "is no properties file")])
def test_a_file_that_can_not_be_read_is_named(tmp_path: Path, content: bytes | None, reason: str) -> None:
    file = tmp_path / "node.properties"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match=reason) as fault:
        NodeSettings.read(str(file))
    assert str(file) in str(fault.value)


def test_names_that_are_not_known_come_with_a_hint() -> None:
    made = settings(num_partitons="1", num_partitions="2", foo="3")
    assert made.not_among(["num.partitions"]) == {"foo": "", "num.partitons": "did you mean num.partitions?"}


def test_there_is_one_authorizer() -> None:
    assert not has_authorizer(settings())
    assert not has_authorizer(settings(authorizer_class_name=""))
    assert has_authorizer(settings(authorizer_class_name=f" {STANDARD_AUTHORIZER} "))
    with pytest.raises(UsageError, match="there is only"):
        has_authorizer(settings(authorizer_class_name="com.example.Authorizer"))
