"""`kraftlake effective`: what it prints, and how it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import kraftlake
from kraftlake.records import metadata_records as r
from tests.cli.running import DIRECTORY, fault, run
from tests.replay import made_logs as log

TOPIC = "topic/t-3-dj5"


def rows(*words: object) -> list[Any]:
    return [json.loads(line) for line in run("effective", DIRECTORY, *words, "--json").stdout.splitlines()]


def test_a_line_has_the_value_its_layer_and_the_path_of_what_the_log_sets() -> None:
    head, *lines = run("effective", DIRECTORY, TOPIC).stdout.splitlines()
    assert head == "topic t-3-dj5"
    assert "all brokers, log.retention.ms  config/BROKER//log.retention.ms" in lines[2]
    assert lines[-1] == "  33 configs more with Kafka's defaults: --all shows them"
    assert len(run("effective", DIRECTORY, TOPIC, "--all").stdout.splitlines()) == 1 + 4 + 33
    path = rows(TOPIC, "retention.ms")[0]["setBy"]
    assert run("blame", DIRECTORY, path).stdout.splitlines()[-1].endswith("7200000")


def test_json_has_every_config_with_its_layers_and_so_does_the_door_in_python() -> None:
    found = rows(TOPIC)
    assert [one.to_json() for one in kraftlake.open(DIRECTORY).effective_configs(TOPIC)] == found
    assert len(found) == 37
    (retention,) = (one for one in found if one["name"] == "retention.ms")
    assert retention["source"] == "DYNAMIC_DEFAULT_BROKER_CONFIG"
    assert [one["source"] for one in retention["synonyms"]] == ["DYNAMIC_DEFAULT_BROKER_CONFIG", "DEFAULT_CONFIG"]
    assert rows(TOPIC, "retention.ms", "--at", 82)[0]["source"] == "DYNAMIC_TOPIC_CONFIG"


def test_a_properties_file_gives_what_the_log_does_not_set(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("node.id=1\nsegment.bytes=1\nlog.segment.bytes=2097152\nssl.key.password=hush\n")
    (segment,) = rows(TOPIC, "segment.bytes", "--config", file)
    assert (segment["value"], segment["source"], segment["setBy"]) == ("2097152", "STATIC_BROKER_CONFIG", None)
    shown = run("effective", DIRECTORY, "broker/1", "ssl.key.password", "--config", file)
    assert "(redacted)  properties file" in shown.stdout
    assert "hush  properties file" in run(
        "effective", DIRECTORY, "broker/1", "ssl.key.password", "--config", file, "--show-secrets"
    ).stdout  # fmt: skip
    assert "is of node 1, not of broker 2" in fault("effective", DIRECTORY, "broker/2", "--config", file, code=2)
    file.write_text("log.segment.bytes=much\n")
    assert "log.segment.bytes has the value 'much'" in fault("effective", DIRECTORY, TOPIC, "--config", file, code=2)
    assert "can't be read" in fault("effective", DIRECTORY, TOPIC, "--config", tmp_path / "none", code=2)


def test_a_topic_is_as_a_broker_with_configs_of_its_own_describes_it() -> None:
    general = run("effective", DIRECTORY, TOPIC)
    assert "brokers with configs of their own, 2 and 3, may describe it otherwise: --broker" in general.stderr
    (flush,) = rows(TOPIC, "flush.ms", "--broker", 2)
    assert (flush["value"], flush["setBy"]) == ("1002", "config/BROKER/2/log.flush.interval.ms")


def test_quotas_have_the_entity_that_decides() -> None:
    words = ("client/user/alice/client-id/c1/ip/127.0.0.9", "--why")
    printed = run("effective", DIRECTORY, *words).stdout.splitlines()
    assert printed[0] == "user alice, client id c1, address 127.0.0.9"
    assert printed[1].endswith("2,097,152  user alice  quota/user/alice/producer_byte_rate")
    assert "connection_creation_rate  15  ip 127.0.0.9" in "\n".join(printed)
    found = {one["quota"]: one for one in rows(words[0])}
    assert found["request_percentage"]["entity"] == {"user": None}
    assert found["controller_mutation_rate"]["value"] is None
    assert len(found["producer_byte_rate"]["layers"]) == 8
    quotas = kraftlake.open(DIRECTORY).effective_quotas(user="alice", client_id="c1", ip="127.0.0.9")
    assert [one.to_json() for one in quotas] == [*found.values()]


def test_a_setting_that_brokers_refuse_is_named_in_a_note(tmp_path: Path) -> None:
    register = r.RegisterBrokerRecord(broker_id=1, incarnation_id=log.uuid_of(1), broker_epoch=1)
    wrong = r.ConfigRecord(resource_type=4, resource_name="", name="num.io.threads", value="many")
    source = log.write_directory(tmp_path, log.log_of(1, [log.metadata_version()], [register, wrong]))
    shown = run("effective", source, "broker/1", "num.io.threads")
    assert "num.io.threads  8  Kafka's default" in shown.stdout
    assert (
        "the log sets num.io.threads of all brokers without effect: num.io.threads can't have the value" in shown.stderr
    )


@pytest.mark.parametrize(
    ("words", "sentence", "code"),
    [
        (("topic/t-3-dj",), "There is no topic t-3-dj at offset 5736: did you mean t-3-dj5", 1),
        (("broker/9",), "There is no broker 9 at offset 5736: registered nodes are 1, 2, 3, 4 and 3000.", 1),
        ((TOPIC, "retention"), "There is no config retention of topic t-3-dj5: did you mean", 1),
        (("topics/a",), "did you mean topic?", 2),
        (("broker/x",), "'x' is not a broker's id", 2),
        (("client/user",), "it reads client/user/NAME", 2),
        (("client/user/a", "retention.ms"), "A client has quotas", 2),
        (("broker/1", "--broker", 2), "--broker is about a topic or a group", 2),
        ((TOPIC, "--at", 9999), "Offset 9999 is past the end", 1),
    ],
)  # fmt: skip
def test_what_is_not_there_is_an_error_of_one_sentence(words: tuple[object, ...], sentence: str, code: int) -> None:
    assert sentence in fault("effective", DIRECTORY, *words, code=code)
