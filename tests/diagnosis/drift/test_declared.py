"""Declared files: what `recreate` writes is read back as the same cluster, and nothing else is taken for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given

from kraftlake.diagnosis.drift.comparison import compare
from kraftlake.diagnosis.drift.declared import API_VERSION, from_form, is_declared, read_declared, to_form
from kraftlake.diagnosis.drift.description import describe
from kraftlake.diagnosis.drift.fields import Fields
from kraftlake.diagnosis.drift.yaml_documents import MOST_DEPTH, parse_yaml
from kraftlake.runtime.errors import CorruptDataError, EnvironmentFaultError
from tests.diagnosis.drift.test_comparison import cluster
from tests.diagnosis.trial.clusters import image_of
from tests.histories import histories

HEAD = f"apiVersion: {API_VERSION}\nkind: Cluster\n"


@given(histories())
def test_a_cluster_reads_back_as_itself(history) -> None:
    described = describe(image_of(*(record.message for record in history)), also=["placement"])
    for show_secrets in (True, False):
        form = to_form(described, show_secrets=show_secrets)
        (as_yaml,) = parse_yaml(yaml.safe_dump(form).encode(), "f.yaml")
        (as_json,) = parse_yaml(json.dumps(form).encode(), "f.json")
        for read in (as_yaml, as_json):
            found = compare(described, from_form(Fields.of("f", read)), internal=True)
            assert found.is_empty(), [one.change.describe() for one in found.changes]
            assert not (show_secrets and found.not_compared)


def test_what_is_redacted_is_not_compared_and_said_so() -> None:
    described = describe(cluster(5))
    found = compare(described, from_form(Fields.of("f", to_form(described))))
    assert (found.is_empty(), found.not_compared) == (True, ("scram/alice/SCRAM-SHA-512/keys",))


def test_a_part_that_a_file_lacks_is_not_compared(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(f"{HEAD}topics:\n  orders: {{partitions: 4}}\n")
    found = compare(describe(cluster(5)), read_declared(str(file)))
    assert [one.change.describe() for one in found.changes] == ["orders partitions 3 → 4"]


def test_numbers_and_booleans_of_yaml_are_texts_of_configs(tmp_path: Path) -> None:
    file = tmp_path / "f.yml"
    file.write_text(f"{HEAD}configs:\n  TOPIC:\n    a: {{retention.ms: 1, preallocate: true, x: [compact, delete]}}\n")
    (image,) = read_declared(str(file)).configs.values()
    assert dict(image.data.items()) == {"retention.ms": "1", "preallocate": "true", "x": "compact,delete"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        ("- 1\n", "has to be a mapping"),
        ("kind: Deployment\n", "apiVersion has to be kraftlake/v1"),
        (HEAD + "topic: {}\n", "did you mean topics?"),
        (HEAD + "topics: []\n", "topics is [], and has to be a mapping"),
        (HEAD + "topics: {a: {partitions: yes}}\n", "topics.a.partitions is True, and has to be a whole number"),
        (HEAD + "topics: {a: {partitions: -1}}\n", "has to be a whole number"),
        (HEAD + "topics: {a: {partitions: 1}, a: {partitions: 2}}\n", "line 3: the key 'a' comes twice"),
        (HEAD + "topics: {a: {replicas: [1, 2]}}\n", "has to be a list of lists of brokers"),
        (HEAD + "configs: {TOPIK: {}}\n", "configs.TOPIK is no type of resource"),
        (HEAD + "configs: {TOPIC: {a: {b: 2020-01-01}}}\n", "quoted, where YAML would read it as another value"),
        (HEAD + "configs: {TOPIC: {a: {b: null}}}\n", "is nothing, and has to be a text"),
        (HEAD + "acls: [{resourceType: TOPIK}]\n", "did you mean TOPIC?"),
        (HEAD + "scram: [{user: a, mechanism: PLAIN}]\n", "these are UNKNOWN, SCRAM-SHA-256"),
        (HEAD + "clientQuotas: [{entity: {user: a}, quotas: {x: many}}]\n", "has to be a number"),
        (HEAD + "topics: &a {}\nconfigs: *a\n", "aliases (*NAME) are not read"),
        (HEAD + "topics: !!python/object/apply:os.system [x]\n", "could not determine a constructor"),
        (HEAD + "topics: " + "[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1), "levels lie within each other"),
        ("a: [\n", "line 2"),
        ("\x00", "is no YAML"),
    ],
)  # fmt: skip
def test_anything_else_is_an_error_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(text)
    with pytest.raises(CorruptDataError) as error:
        read_declared(str(file))
    assert said in str(error.value)
    assert str(file) in str(error.value)


def test_a_file_is_known_by_its_suffix(tmp_path: Path) -> None:
    (tmp_path / "f.YAML").touch()
    assert is_declared(str(tmp_path / "f.YAML"))
    assert not is_declared(str(tmp_path / "g.yaml"))
    assert not is_declared(str(tmp_path))
    with pytest.raises(EnvironmentFaultError):
        read_declared(str(tmp_path / "g.yaml"))
