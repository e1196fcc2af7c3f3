"""The files of deploy/: what the Dockerfile runs, what compose and the units of systemd start."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from tests.at_least_one import at_least_one
from tests.cli.test_help import LEAVES
from tests.cli.test_variables import variables
from tests.wheel import REPOSITORY

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
DEPLOY = REPOSITORY / "deploy"
UNITS = sorted(DEPLOY.glob("systemd/*.service"))
SAMPLE = REPOSITORY / "samples" / "kafka-4.4" / "log" / "__cluster_metadata-0"
PROVISIONED = ("datasources", "dashboards")
NOT_HERE = ("apt-get", "groupadd", "useradd", "chown")
"""What the commands of the image need root for."""


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage of the Dockerfile, with their arguments."""
    found: list[list[tuple[str, str]]] = []
    for line in (DEPLOY / "Dockerfile").read_text("utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        name, _, rest = line.partition(" ")
        if name == "FROM":
            found.append([])
        found[-1].append((name, rest))
    return found


def of_image(name: str) -> list[str]:
    """The arguments of an instruction in the last stage."""
    return [rest for instruction, rest in stages()[-1] if instruction == name]


def test_the_image_runs_as_nobody_in_particular_and_names_what_it_writes_to() -> None:
    assert of_image("USER") == ["10001:10001"]
    assert of_image("VOLUME") == ['["/var/lib/kraftlake", "/tmp"]']
    assert of_image("ENTRYPOINT") == ['["kraftlake"]']
    assert all(stage[0][1].startswith("python:3.13-slim") for stage in at_least_one(stages()))
    copied = [rest.split()[0] for stage in stages() for name, rest in stage if name == "COPY" and "--from" not in rest]
    assert all((REPOSITORY / name).exists() for name in at_least_one(copied))


@pytest.mark.skipif(not LONG, reason="make test-long: an installation is a minute")
def test_the_commands_of_the_image_run_in_a_fresh_root(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    for file in (wheel, REPOSITORY / "constraints.txt"):
        (tmp_path / "wheels" / file.name).write_bytes(file.read_bytes())
    for folder in ("opt", "var/lib"):
        (tmp_path / folder).mkdir(parents=True)
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "KRAFTLAKE_CACHE": str(tmp_path / "cache")}

    def run(command: str) -> subprocess.CompletedProcess[str]:
        words = [re.sub(r"^/(opt|wheels|var)/?", rf"{tmp_path}/\1/", word) for word in shlex.split(command)]
        words[0] = sys.executable if words[0] == "python" else words[0]
        return subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900, check=False
        )  # fmt: skip

    ran = 0
    for command in (part for line in of_image("RUN") for part in line.split(" && ")):
        if command.startswith(NOT_HERE):
            continue
        done = run(command)
        assert done.returncode == 0, (command, done.stderr)
        ran += 1
    assert ran == 4
    imported = run(f"/opt/kraftlake/bin/kraftlake import {SAMPLE} /var/lib/kraftlake/lake --json")
    assert imported.returncode == 0, imported.stderr


def command_of(words: list[str]) -> click.Command:
    """The command that begins a command line, whose options are all its own."""
    found = {path.removeprefix("kraftlake "): command for path, command in LEAVES}
    command = found[words[0]]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in words[1:] if word.startswith("--")} <= known, words
    return command


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_starts_a_command_with_options_that_there_are(unit: Path) -> None:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # keys of systemd have capitals
    parser.read(unit)
    service = parser["Service"]
    program, *words = service["ExecStart"].split()
    assert program == "/opt/kraftlake/bin/kraftlake"
    command_of(words)
    assert (service["User"], service["ProtectSystem"], service["NoNewPrivileges"]) == ("kraftlake", "strict", "true")
    named = set(re.findall(r"KRAFTLAKE_[A-Z_]+", unit.read_text("utf-8"))) - {"KRAFTLAKE_SOURCE"}
    assert named <= {*variables()}


def test_each_service_of_kraftlake_has_a_unit() -> None:
    assert {unit.stem.removeprefix("kraftlake-") for unit in UNITS} == {
        "broker", "controller", "follow", "import", "tables", "upkeep",
    }  # fmt: skip


def test_compose_mounts_what_there_is_and_gives_variables_that_there_are() -> None:
    compose: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    services = compose["services"]
    follow = services["follow"]
    command_of(follow["command"])
    assert {*follow["environment"]} <= {*variables()}
    assert follow["read_only"] is True
    assert (DEPLOY / follow["build"]["context"] / follow["build"]["dockerfile"]).is_file()
    mounts = [mount.split(":")[0] for service in services.values() for mount in service.get("volumes", ())]
    for mount in at_least_one(mounts):
        assert (DEPLOY / mount).exists() if mount.startswith(".") else mount in compose["volumes"]
    ports = [port for service in services.values() for port in service.get("ports", ())]
    assert all(port.startswith("127.0.0.1:") for port in at_least_one(ports))


def test_grafana_finds_the_dashboard_and_its_data_source_at_its_start() -> None:
    grafana = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]["grafana"]
    mounts = dict(reversed(mount.removesuffix(":ro").split(":")) for mount in grafana["volumes"])
    begins = {folder: DEPLOY / mounts[f"/etc/grafana/provisioning/{folder}/kraftlake.yaml"] for folder in PROVISIONED}
    read = {folder: yaml.safe_load(begin.read_text("utf-8")) for folder, begin in begins.items()}
    (provider,) = read["dashboards"]["providers"]
    dashboards = [*(DEPLOY / mounts[provider["options"]["path"]]).glob("*.json")]
    home = grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert [f"{provider['options']['path']}/{file.name}" for file in dashboards] == [home]
    (source,) = read["datasources"]["datasources"]
    assert (source["type"], source["isDefault"]) == ("prometheus", True)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_each_unit_as_it_is(tmp_path: Path) -> None:
    program = tmp_path / "kraftlake"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for unit in at_least_one((DEPLOY / "systemd").iterdir()):
        text = unit.read_text("utf-8").replace("/opt/kraftlake/bin/kraftlake", str(program))
        (tmp_path / unit.name).write_text(text)
    units = [str(tmp_path / unit.name) for unit in (DEPLOY / "systemd").iterdir()]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, timeout=60, check=False
    )
    warnings = [line for line in done.stderr.splitlines() if "kraftlake-" in line]
    assert (done.returncode, warnings) == (0, []), done.stderr


def test_what_the_followers_of_compose_read_is_a_sound_file(tmp_path: Path) -> None:
    from tests.cli.running import run

    text = (DEPLOY / "clusters.toml").read_text("utf-8").replace("/var/lib/kraftlake", str(tmp_path))
    (tmp_path / "clusters.toml").write_text(text)
    assert run("follow", "--check", tmp_path / "clusters.toml")
