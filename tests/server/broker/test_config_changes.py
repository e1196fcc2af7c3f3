"""Which requests change the configs of a broker that serves nobody."""

from __future__ import annotations

import io
import struct
from importlib import import_module
from typing import Any

import pytest
from kio.schema.index import api_key_map
from kio.serial import entity_writer
from kio.static.primitive import i8

from kraftlake.server.broker.config_changes import changes_configs_of

KEYS = {name: key for key, name in api_key_map.items()}
TOPIC, BROKER = 2, 4


def request(name: str, version: int, *resources: tuple[int, str]) -> bytes:
    module: Any = import_module(f"kio.schema.{name}.v{version}.request")
    kind = getattr(module, "".join(word.title() for word in name.split("_")) + "Request")
    made = kind(
        resources=tuple(
            module.AlterConfigsResource(resource_type=i8(type_), resource_name=about, configs=())
            for type_, about in resources
        ),
        validate_only=False,
    )
    body = io.BytesIO()
    entity_writer(kind)(body, made)
    tags = b"\0" if kind.__flexible__ else b""
    return struct.pack(">hhih", KEYS[name], version, 9, 2) + b"me" + tags + body.getvalue()


@pytest.mark.parametrize(
    ("name", "version"), [(f"{how}alter_configs", at) for how in ("", "incremental_") for at in (0, 1)]
)
def test_a_change_of_its_configs_is_told_from_one_of_another_resource(name: str, version: int) -> None:
    if (name, version) == ("alter_configs", 0):
        version = 2
    assert changes_configs_of(request(name, version, (TOPIC, "7"), (BROKER, "7")), 7)
    assert not changes_configs_of(request(name, version, (TOPIC, "7"), (BROKER, ""), (BROKER, "8")), 7)


def test_other_requests_change_no_configs() -> None:
    assert not changes_configs_of(struct.pack(">hhih", KEYS["metadata"], 9, 9, 0), 7)
    assert not changes_configs_of(struct.pack(">hhih", KEYS["incremental_alter_configs"], 99, 9, 0), 7)
    with pytest.raises(IndexError):
        changes_configs_of(request("incremental_alter_configs", 1, (BROKER, "7"))[:-4], 7)
