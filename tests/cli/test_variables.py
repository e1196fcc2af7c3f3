"""Options of services that come from environment variables, as a container or a unit gives them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kraftlake.cli.options.command import SERVICES, Option
from tests.cli.running import DIRECTORY, ROOT, run
from tests.cli.test_help import LEAVES

VARIABLE = re.compile(r"KRAFTLAKE_[A-Z_]+[A-Z]")


def variables() -> dict[str, Option]:
    """The variables of all commands, with their options."""
    found: dict[str, Option] = {}
    for path, command in LEAVES:
        for parameter in command.params:
            name = parameter.variable(path.removeprefix("kraftlake ")) if isinstance(parameter, Option) else None
            if name is not None:
                assert found.setdefault(name, parameter) is parameter, f"two options have {name}"
                found[name] = parameter
    return found


def test_each_option_of_a_service_has_a_variable_and_no_other_option() -> None:
    assert {path.removeprefix("kraftlake ") for path, _ in LEAVES} >= {*SERVICES}
    names = {*variables()}
    assert {
        "KRAFTLAKE_CONTROLLER_LAKE", "KRAFTLAKE_CONTROLLER_ID", "KRAFTLAKE_CONTROLLER_LISTENER",
        "KRAFTLAKE_BROKER_ID", "KRAFTLAKE_CLUSTER_UP_BROKERS", "KRAFTLAKE_UPKEEP_KEEP", "KRAFTLAKE_IMPORT_FOLLOW",
        "KRAFTLAKE_FOLLOW_JSON",
    } <= names  # fmt: skip
    beginnings = tuple(f"KRAFTLAKE_{words.replace(' ', '_').upper()}_" for words in SERVICES)
    assert all(name.startswith(beginnings) for name in names)


def test_no_option_has_a_variable_that_means_something_else() -> None:
    sources = [*ROOT.glob("kraftlake/**/*.py"), *ROOT.glob("tests/**/*.py"), *ROOT.glob("build_backend/*.py")]
    own = [path for path in sources if path.name not in ("test_variables.py", "test_containers.py")]
    used = {name for path in own for name in VARIABLE.findall(path.read_text("utf-8"))}
    assert {"KRAFTLAKE_TESTS", "KRAFTLAKE_SEED"} <= used
    assert not used & {*variables()}


def test_a_variable_stands_for_an_option_and_the_command_line_goes_over_it(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    run("import", DIRECTORY, lake)
    declared = run("upkeep", lake, KRAFTLAKE_UPKEEP_KEEP="90d", KRAFTLAKE_UPKEEP_JSON="true").stdout
    assert '"keepMs":7776000000' in declared
    over = run("upkeep", lake, "--keep", "forever", "--json", KRAFTLAKE_UPKEEP_KEEP="90d").stdout
    assert '"keepMs":null' in over
    assert '"keepMs":null' in run("upkeep", lake, "--json", KRAFTLAKE_UPKEEP_KEEP="").stdout


def test_a_repeatable_option_takes_several_values_from_its_variable(tmp_path: Path) -> None:
    sentence = fault_of(tmp_path, KRAFTLAKE_CONTROLLER_LISTENER="CONTROLLER://127.0.0.1:0 nothing")
    assert "'nothing' is no listener" in sentence


def test_a_wrong_value_names_its_variable(tmp_path: Path) -> None:
    assert "'--id' (the variable KRAFTLAKE_CONTROLLER_ID)" in fault_of(tmp_path, KRAFTLAKE_CONTROLLER_ID="first")


def fault_of(lake: Path, **variables: str) -> str:
    """The error of a controller that can't start."""
    return run("controller", "--lake", lake, code=2, **variables).stderr


def test_other_commands_take_nothing_from_variables() -> None:
    assert "{" not in run("image", DIRECTORY, KRAFTLAKE_IMAGE_JSON="1").stdout


@pytest.mark.parametrize("words", [("tables", "--help"), ("controller", "--help")])
def test_help_does_not_depend_on_variables(words: tuple[str, ...]) -> None:
    assert run(*words).stdout == run(*words, KRAFTLAKE_TABLES_FOLLOW="1", KRAFTLAKE_CONTROLLER_ID="x").stdout
