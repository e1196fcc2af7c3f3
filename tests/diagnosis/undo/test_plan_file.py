"""A plan's file: what is written reads back as the same plan, and nothing else does."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

import kraftlake
from kraftlake.diagnosis.undo.plan_file import read_plan, write_plan
from kraftlake.diagnosis.undo.planning import plan_undo
from kraftlake.records import metadata_records as r
from kraftlake.runtime.errors import CorruptDataError, EnvironmentFaultError
from tests.cli.made_logs import batch_of, directory_of
from tests.cli.running import DIRECTORY


def test_a_plan_reads_back_as_itself(tmp_path: Path) -> None:
    plan = plan_undo(kraftlake.open(DIRECTORY), 2000, 5736, assignments=True)
    file = tmp_path / "plan.json"
    write_plan(file, plan)
    assert read_plan(file) == plan
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_secrets_are_redacted_and_such_a_step_cannot_be_taken(tmp_path: Path) -> None:
    name = "listener.name.x.ssl.key.password"
    log = directory_of(
        tmp_path,
        [
            batch_of(0, r.FeatureLevelRecord(name="metadata.version", feature_level=20)),
            batch_of(1, r.ConfigRecord(resource_type=4, resource_name="1", name=name, value="hunter2")),
            batch_of(2, r.ConfigRecord(resource_type=4, resource_name="1", name=name, value="hunter3")),
        ],
    )
    plan = plan_undo(kraftlake.open(log), 1, 2)
    file = tmp_path / "plan.json"
    write_plan(file, plan)
    assert "hunter" not in file.read_text()
    assert not read_plan(file).steps[0].can_run
    write_plan(file, plan, show_secrets=True)
    assert read_plan(file) == plan
    assert plan.steps[0].can_run
    assert "hunter" not in repr(plan)


def test_anything_else_is_an_error_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    write_plan(file, plan_undo(kraftlake.open(DIRECTORY), 2000, 5736, assignments=True))
    whole = json.loads(file.read_text())

    def said(change) -> str:
        form = json.loads(json.dumps(whole))
        change(form)
        file.write_text(json.dumps(form))
        with pytest.raises(CorruptDataError) as error:
            read_plan(file)
        return str(error.value)

    def first(form, action):
        return next(step for step in form["steps"] if step["action"] == action)

    assert "format has to be kraftlake-undo-plan/1" in said(lambda form: form.update(format="x"))
    assert "the plan has to be an object of" in said(lambda form: form.update(more=1))
    assert "steps has to be a list" in said(lambda form: form.update(steps={}))
    assert "now.offset has to be a whole number" in said(lambda form: form["now"].update(offset="1"))
    assert "has to be one of update-feature" in said(lambda form: form["steps"][0].update(action="rm"))
    assert "acl has to be a value of create-acl" in said(
        lambda form: first(form, "create-acl")["subject"].update(acl={})
    )
    assert "topic has to be a value of delete-topic" in said(
        lambda form: first(form, "delete-topic")["subject"].update(topic=None)
    )
    assert "partitions has to be a value of create-topic" in said(
        lambda form: first(form, "create-topic")["changes"][0].update(after="3")
    )
    assert "undoneBy" in said(lambda form: first(form, "create-topic")["changes"][0].update(undoneBy={}))
    for text in ("", "[]", "nothing", "[" * 100_000):
        file.write_text(text)
        with pytest.raises(CorruptDataError, match="is no plan"):
            read_plan(file)
    with pytest.raises(EnvironmentFaultError, match="can't be read"):
        read_plan(tmp_path / "none.json")
