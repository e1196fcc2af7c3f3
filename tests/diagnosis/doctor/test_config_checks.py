"""The check of configs that count for nothing."""

from __future__ import annotations

import shlex
from pathlib import Path

from kraftlake.diagnosis.doctor.diagnosis import diagnose
from tests.cli.running import run
from tests.diagnosis.doctor.made import by_check, config, log_of

OLD = "message.format.version"


def test_configs_that_kafka_has_removed_are_noted_by_name(tmp_path: Path) -> None:
    log = log_of(tmp_path, config(OLD, "2.8"), config(OLD, "2.8", resource="bar"), config("x", "1", type_=32))
    diagnosis = diagnose(log)
    found = by_check(diagnosis)["ignored_configs"]
    assert found.sentence == "Kafka 4.4 ignores 3 configs that it does not know"
    assert [(group.reason, group.things) for group in found.groups] == [
        ("Kafka 4.4 has no topic config message.format.version", ("topic bar", "topic foo")),
        ("Kafka 4.4 has no group config x", ("group foo",)),
    ]
    assert diagnosis.is_healthy
    assert OLD in run(*shlex.split(found.command)[1:]).stderr


def test_configs_that_are_known_or_removed_are_not(tmp_path: Path) -> None:
    log = log_of(
        tmp_path, config("retention.ms", "1"), config(OLD, "2.8"), config(OLD, None), config("x", "1", type_=4)
    )
    assert "ignored_configs" not in by_check(diagnose(log))
