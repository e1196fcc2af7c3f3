"""What a record type declares as secret is redacted in everything that is shown, without a list of such fields."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import attrs
import pytest

from kraftlake.records import metadata_records as r
from kraftlake.records.redaction import REDACTED, redact_record_json, secret_names
from kraftlake.records.schema import Message, Primitive, Struct, Versions, array, scalar, secret_fields
from tests.cli.running import ROOT

NEVER = ("hunter2", "48611", "48,611", "mallory")
"""The values in tests/cli/secret_fields.py that are secret."""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What everything says of a log whose records all have one more secret field."""
    folder = tmp_path_factory.mktemp("secrets")
    words = [sys.executable, "-m", "tests.cli.secret_fields", str(folder)]
    result = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    answers: dict[str, Any] = json.loads(result.stdout)
    return answers


def test_a_new_secret_field_is_redacted_in_every_output(said: dict[str, Any]) -> None:
    answers = said["answers"]
    assert len(answers) > 35
    assert min(map(len, answers.values())) > 50, "each has said something"
    assert {name: word for name, text in answers.items() for word in NEVER if word in text} == {}


def test_the_log_holds_what_is_redacted(said: dict[str, Any]) -> None:
    assert said["shown"] > 1_000
    assert REDACTED in said["answers"]["repr of configs"] + "".join(said["answers"].values())


def test_images_redact_the_entries_of_all_types_that_have_secrets() -> None:
    """Where another type gets a secret field: a `JsonForm` with `secrets_of` has to show its part of the image, too."""
    with_secrets = {cls for cls in r.METADATA_RECORDS.values() if secret_fields(cls)}
    assert with_secrets == {r.ConfigRecord, r.UserScramCredentialRecord, r.DelegationTokenRecord}


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Inner(Struct):
    """A struct with a secret."""

    name: str = scalar(Primitive.STRING)
    key: bytes = scalar(Primitive.BYTES, secret=True)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class MadeUpRecord(Message):
    """A type with a secret within a struct."""

    API_KEY = 121
    VERSIONS = Versions.parse("0")

    id: int = scalar(Primitive.INT32)
    keys: tuple[Inner, ...] = array(Inner)
    password: str | None = scalar(Primitive.STRING, nullable="0+", secret=True)


def test_a_struct_that_holds_a_secret_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from kraftlake.records import redaction

    assert secret_names(MadeUpRecord) == ("keys", "password")
    monkeypatch.setattr(redaction, "_with_secrets", lambda: {"MADE_UP_RECORD": MadeUpRecord})
    data = {"id": 1, "keys": [{"name": "a", "key": "AA=="}], "password": None}
    assert redact_record_json("MADE_UP_RECORD", data) == {"id": 1, "keys": REDACTED, "password": None}
    assert repr(MadeUpRecord(keys=(Inner(name="a", key=b"hunter2"),), password="hunter2")).count("hunter2") == 0
