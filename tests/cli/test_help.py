"""Every command and option explains itself, and what it says is true."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kraftlake.cli.application import application
from kraftlake.tables.jobs import JOBS
from tests.at_least_one import at_least_one
from tests.cli.running import DIRECTORY, ROOT, process, run
from tools.commands import commands

COMMANDS = list(commands())
MOST_ASKING = 99 if os.environ.get("KRAFTLAKE_TESTS") == "long" else 2
"""How many examples of a command that ask a sample are run; `make test-long` runs all."""
LEAVES = [(path, command) for path, command in COMMANDS if not isinstance(command, click.Group)]
ANY_COMMAND = pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[path for path, _ in COMMANDS])
LEAF = pytest.mark.parametrize(("path", "command"), LEAVES, ids=[path for path, _ in LEAVES])


def examples(left_out: str) -> Iterator[str]:
    """The examples of all commands but those that are left out, and at most some of a command that ask a sample."""
    for _, command in COMMANDS:
        lines = (example.command for example in getattr(command, "examples", ()))
        shown = [line for line in lines if not re.search(left_out, line)]
        asking = [line for line in shown if "samples/" in line]
        yield from (line for line in shown if line not in asking[MOST_ASKING:])


def test_the_commands_are_those_that_others_rely_on() -> None:
    names = {path.removeprefix("kraftlake ") for path, _ in LEAVES}
    assert names == {
        "image", "log", "diff", "drift", "events", "watch", "blame", "can", "effective", "bisect", "availability",
        "stability", "what-if", "local-changes", "replay", "metrics", "sql", "quorum", "verify", "upgrade-check",
        "removal-check", "mcp",
        "doctor", "page", "shell", "ls", "cat",
        "import", "follow", "export", "bundle", "translate", "restore", "recreate", "undo",
        "cluster up", "broker", "controller",
        "format", "fork", "generate", "upkeep", "log compact", "log trim", "log vacuum", "tables", "tables trim",
        *(f"spark {job}" for job in JOBS),
        "spark snapshot",
        "brokers register", "brokers unfence", "brokers fence", "brokers shutdown", "brokers unregister",
        "topics create", "topics grow", "topics elect", "topics isr", "topics reassign", "topics delete",
        "configs alter", "quotas alter", "acls add", "acls remove", "features update",
    "scram set", "scram delete", "tokens create", "tokens renew", "tokens expire",
    }  # fmt: skip


@ANY_COMMAND
def test_a_command_has_help_and_examples(path: str, command: click.Command) -> None:
    assert command.help
    assert command.short_help or command is application
    assert command.examples, path  # type: ignore[attr-defined]
    for example in command.examples:  # type: ignore[attr-defined]
        assert example.command.startswith("kraftlake ")
        assert example.purpose


@ANY_COMMAND
def test_a_commands_parameters_have_help(path: str, command: click.Command) -> None:
    for parameter in command.params:  # may assert nothing: a group of commands has none
        assert getattr(parameter, "help", None), f"{path} {parameter.name}"


@LEAF
def test_a_command_has_the_shared_options(path: str, command: click.Command) -> None:
    options = {option for parameter in command.params for option in parameter.opts}
    assert {"--json", "--color", "--verbose", "-v"} <= options
    if any(parameter.name == "source" for parameter in command.params):
        assert "--cluster-id" in options
    whole = {
        "image",
        "log",
        "diff",
        "replay",
        "blame",
        "watch",
        "shell",
        "cat",
        "drift",
        "recreate",
        "undo",
        "effective",
    }
    shows_secrets = path.rpartition(" ")[2] in whole or path == "kraftlake events"
    assert ("--show-secrets" in options) == shows_secrets


@ANY_COMMAND
def test_help_is_printed_and_lists_everything(path: str, command: click.Command) -> None:
    words = path.split()[1:]
    printed = run(*words, "--help").stdout
    assert "Usage: " + path in printed
    assert "\x1b" not in printed
    for parameter in command.params:  # may assert nothing: a group of commands has none
        for option in parameter.opts if isinstance(parameter, click.Option) else ():
            assert option in printed
    for example in at_least_one(command.examples):  # type: ignore[attr-defined]
        assert example.command in printed


def test_a_command_line_without_a_command_prints_the_help() -> None:
    assert run().stdout == run("--help").stdout


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    (tmp_path / "clusters.toml").symlink_to(ROOT / "docs" / "examples" / "clusters.toml")
    (tmp_path / "east.properties").touch()
    (tmp_path / "node.properties").write_text("delegation.token.secret.key=a key")
    (tmp_path / "alice.txt").write_text("a password")
    (tmp_path / "moves.json").write_text(
        '{"version":1,"partitions":[{"topic":"big-a","partition":0,"replicas":[1,2,3]}]}'
    )
    (tmp_path / "declared.yaml").write_text(run("recreate", DIRECTORY, "--at", 260).stdout)
    (tmp_path / "answer.txt").write_text("221 partitions have no leader")
    (tmp_path / "lakes").mkdir()
    services = r"kraftlake (spark|watch|mcp|cluster|broker |controller |follow (?!--check))|--follow"
    nothing_typed = r"shell [^ ]+( --at \d+)?$"
    left_out = rf"{services}|{nothing_typed}|--apply|--broker-dir|(doctor|page) c1:9093"
    lines = [*dict.fromkeys(examples(left_out))]
    # One example makes the lake of others, one its tables; the first file of `export` must not be there yet.
    lines.sort(key=lambda line: (" import " not in line, " tables trim " in line, "--force" in line))
    assert len(lines) > 15
    for line in lines:
        # the sample's end is unwell, and its states differ; the one with an authorizer is healthy
        code = 3 if re.search(" (doctor|drift|removal-check) (?!samples/authorized)", line) else 0
        printed = run(*shlex.split(line)[1:], code=code).stdout
        assert printed.strip(), line
    assert (tmp_path / "lake").exists()
    assert (tmp_path / "newest.checkpoint").exists()


def test_the_version_is_the_packages() -> None:
    import kraftlake

    assert run("--version").stdout == f"kraftlake {kraftlake.__version__}\n"


def completed(words: str) -> str:
    count = len(words.split(" ")) - 1
    return process(_KRAFTLAKE_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(count)).stdout


def test_names_of_the_source_are_completed_by_the_shell() -> None:
    assert completed(f"kraftlake events {DIRECTORY} --topic fixed-") == "plain,fixed-a\n"
    assert completed(f"kraftlake events {DIRECTORY} --topic elr-a,fixed-") == "plain,elr-a,fixed-a\n"
    assert "plain,fixed-a-5\n" in completed(f"kraftlake image {DIRECTORY} --partition fixed-a-")
    assert completed(f"kraftlake metrics {DIRECTORY} --broker ") == "".join(f"plain,{one}\n" for one in range(1, 5))
    assert completed(f"kraftlake blame {DIRECTORY} broker/") == "".join(f"plain,broker/{one}\n" for one in range(1, 5))
    config = "config/topic/elr-a/min.insync.replicas"
    assert completed(f"kraftlake blame {DIRECTORY} config/topic/elr") == f"plain,{config}\n"
    assert "plain,retention.ms=\n" in completed("kraftlake topics create foo --config retention")


def test_bash_itself_completes_a_config_of_the_source() -> None:
    words = f"kraftlake blame {DIRECTORY} config/topic/elr"
    command = shlex.quote(str(Path(sys.executable).with_name("kraftlake")))
    script = (
        f'eval "$(_KRAFTLAKE_COMPLETE=bash_source {command})"; '
        f'COMP_WORDS=({words}); COMP_CWORD=3; _kraftlake_completion {command}; echo "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "config/topic/elr-a/min.insync.replicas\n"


@pytest.mark.parametrize("source", ["not-there", "127.0.0.1:9", f"{DIRECTORY}/leader-epoch-checkpoint"])
def test_a_source_that_can_not_be_read_completes_nothing(source: str) -> None:
    done = process(
        _KRAFTLAKE_COMPLETE="bash_complete", COMP_WORDS=f"kraftlake events {source} --topic ", COMP_CWORD="4"
    )
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_record_types_and_files_are_completed_by_the_shell() -> None:
    assert "plain,PARTITION_CHANGE_RECORD" in completed("kraftlake log x --type partition_c")
    assert "file," in completed("kraftlake image ")
    assert "plain,local-changes" in completed("kraftlake lo")
