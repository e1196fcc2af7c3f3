"""`kraftlake doctor`: its forms, its exit codes, and what hostile strings can't do in them."""

from __future__ import annotations

import html.parser
import re
import subprocess
from pathlib import Path

import pytest

from kraftlake.cli.views.doctor_words import duration
from kraftlake.diagnosis.doctor.diagnosis import diagnose
from kraftlake.records import metadata_records as r
from tests.at_least_one import at_least_one
from tests.cli.made_logs import HOSTILE, hostile_log
from tests.cli.running import DIRECTORY, SAMPLES, TORN, fault, run, run_json
from tests.diagnosis.doctor.made import BEGIN, change, config, log_of, time_of
from tests.replay.queries.test_quorum_report import elected, no_ops, node_at

FENCED = r.BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=3, fenced=1)


def test_the_json_form_is_as_others_rely_on_it(tmp_path: Path) -> None:
    log = log_of(tmp_path, change(0, leader=-1, isr=(3,)), FENCED)
    printed = run("doctor", log, "--json", code=3).stdout
    assert printed.count("\n") == 1
    form = diagnose(log).to_json()
    assert form == {
        "clusterId": "made",
        "offset": BEGIN + 1,
        "timestamp": time_of(BEGIN + 1),
        "findings": [
            {
                "check": "offline_partitions",
                "severity": "critical",
                "sentence": "1 partition has no leader",
                "since": {"offset": BEGIN, "timestamp": time_of(BEGIN)},
                "things": ["foo-0"],
                "command": f"kraftlake image {log} --unavailable-partitions",
                "helps": [
                    {
                        "action": "Start broker 3 with the log directories it had: it may lead 1 partition again. "
                        "Do not start it on an empty disk: the other replicas would drop what an empty leader lacks.",
                        "risk": "safe",
                        "evidence": [],
                        "cost": None,
                    }
                ],
                "groups": [
                    {
                        "reason": "led by 1 before; last in sync: 3 (fenced)",
                        "things": ["foo-0"],
                        "since": {"offset": BEGIN, "timestamp": time_of(BEGIN)},
                    }
                ],
            },
            {
                "check": "fenced_brokers",
                "severity": "warning",
                "sentence": "broker 3 of 3 is fenced",
                "since": {"offset": BEGIN + 1, "timestamp": time_of(BEGIN + 1)},
                "things": ["broker 3"],
                "command": f"kraftlake events {log} --kind 'broker_*fenced'",
                "helps": [
                    {
                        "action": "Start the broker. If its process runs, look at its connection to the controllers.",
                        "risk": "safe",
                        "evidence": [],
                        "cost": None,
                    }
                ],
                "groups": [
                    {
                        "reason": "hosts 2 replicas",
                        "things": ["broker 3"],
                        "since": {"offset": BEGIN + 1, "timestamp": time_of(BEGIN + 1)},
                    }
                ],
            },
        ],
    }


def test_the_exit_code_says_how_the_cluster_is(tmp_path: Path) -> None:
    healthy = log_of(tmp_path / "healthy")
    noted = log_of(tmp_path / "noted", config("retention.ms", "5"))
    unwell = log_of(tmp_path / "unwell", FENCED)
    dark = log_of(tmp_path / "dark")
    (dark / "00000000000000000000.log").write_bytes(b"\0" * 9)
    for form in ([], ["--json"], ["--output", "markdown"]):
        run("doctor", healthy, *form)
        run("doctor", noted, *form)
        run("doctor", unwell, *form, code=3)
        run("doctor", dark, *form, code=1)
    assert run("doctor", healthy).stdout.endswith("✓ healthy\n")
    assert run("doctor", noted).stdout.endswith("✓ healthy: 1 note\n")
    assert run("doctor", unwell, code=3).stdout.endswith("✗ unhealthy: 1 warning\n")
    assert "✗ the state of the cluster is not known: 1 critical" in run("doctor", dark, code=1).stdout


def test_a_person_reads_what_is_wrong_since_when_why_and_what_helps() -> None:
    shown = run("doctor", DIRECTORY, "--at-offset", 1400, width=100, code=3).stdout
    for words in (
        "at  offset 1400, epoch 2, 2026-11-21 07:47:45.911Z",
        "critical  25 partitions have no leader  for 27 s",
        "1202  2026-11-21 07:47:25.018Z  __transaction_state-0 and 15 more: led by 3 before;",
        "eligible to lead: 3 (fenced)",
        "--unavailable-partitions",
        "helps  Start brokers 2 and 3 with the log directories they had: they may lead 25 partitions",
        "warning  brokers 2 and 3 of 4 are fenced  for 27 s",
        "… 78 earlier: --json has all",
        "info  73 partitions go offline if one more broker is lost",
        "no other broker than 4 may lead them",
        "✗ unhealthy: 1 critical, 5 warnings, 3 notes",
    ):
        assert words in shown, words
    assert shown.index("critical") < shown.index("warning") < shown.index("info")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_tree_fits_the_terminal(width: int) -> None:
    lines = run("doctor", DIRECTORY, "--at-offset", 1400, width=width, code=3).stdout.splitlines()
    assert max(map(len, lines)) <= width


def test_the_commands_that_it_names_run() -> None:
    for finding in at_least_one(run_json_of("doctor", TORN)["findings"]):
        assert run(*re.findall(r"[^\s']+", finding["command"])[1:]).stdout


def run_json_of(*words: object) -> dict[str, list[dict[str, str]]]:
    import json

    printed: dict[str, list[dict[str, str]]] = json.loads(run(*words, "--json", code=3).stdout)
    return printed


def test_several_controllers_are_one_answer(tmp_path: Path) -> None:
    log = [elected(0, 1, 1, 2, 3), *no_ops(3, 20)]
    nodes = [node_at(tmp_path, 1, log), node_at(tmp_path, 2, log[:9])]
    assert "quorum  3 voters (1, 2, 3), 2 here" in run("doctor", *nodes).stdout
    assert "1 of 3 voters is here: the quorum is not checked" in run("doctor", nodes[0]).stdout


def test_markdown_can_be_pasted() -> None:
    page = run("doctor", DIRECTORY, "--at-offset", 1400, "--output", "markdown", code=3).stdout
    lines = page.splitlines()
    assert lines[0] == "# Cluster VXUoBgBGTaWWfCM4Toybuw: unhealthy: 1 critical, 5 warnings, 3 notes"
    assert "## critical: 25 partitions have no leader" in lines
    assert "- since 2026-11-21 07:47:18.245Z, offset 1128, for 27 s" in lines
    assert f"- more: `kraftlake image {DIRECTORY} --unavailable-partitions --at-offset 1400`" in lines


class Page(html.parser.HTMLParser):
    """The tags, the attributes and the text of a page."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, str | None] = {}
        self.words = ""
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(attrs)

    def handle_data(self, data: str) -> None:
        self.words += data


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("an older one")
    shown = run("doctor", DIRECTORY, "--at-offset", 1400, "--html", target, code=3).stdout
    assert "25 partitions have no leader" in shown
    content = target.read_text("utf-8")
    page = Page(content)
    assert not page.tags & {"script", "link", "img", "iframe", "a", "form"}
    assert not set(page.attributes) & {"src", "href", "style", "onload", "onclick"}
    policy = page.attributes["content"]
    assert "default-src 'none'; style-src 'sha256-" in content
    assert "unsafe" not in content
    assert policy is not None
    for words in ("critical: 25 partitions have no leader", "t-23-eln-1", "2026-11-21 07:47:18.245Z, offset 1128"):
        assert words in page.words


def test_the_policy_allows_the_style_of_the_page(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    run("doctor", log_of(tmp_path), "--html", target)
    content = target.read_text("utf-8")
    (style,) = re.findall(r"<style>(.*?)</style>", content, re.DOTALL)
    made = subprocess.run(
        ["openssl", "dgst", "-sha256", "-binary"], input=style.encode(), capture_output=True, check=True
    ).stdout
    import base64

    assert f"'sha256-{base64.b64encode(made).decode()}'" in content


def test_hostile_strings_do_nothing(tmp_path: Path) -> None:
    """In the log are control characters, markup and markdown; in its path a quote."""
    log = hostile_log(tmp_path / "it's <b>`here`")
    target = tmp_path / "report.html"
    tree = run("doctor", log, "--html", target, code=3).stdout
    markdown = run("doctor", log, "--output", "markdown", code=3).stdout
    page = target.read_text("utf-8")
    for text in (tree, markdown, page):
        assert not set(text) & set("\x1b\x07\x9b\u202e\u2028\r\t")
        assert "x1b" in text
    assert HOSTILE not in page
    assert "<b>" not in page
    assert "[bold]markup" not in markdown
    assert r"\[bold\]markup" in markdown
    assert "`` kraftlake" in markdown


def test_wrong_command_lines_are_named(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    assert "give one of them" in run("doctor", log, "--json", "--output", "markdown", code=2).stderr
    assert "no regular file" in fault("doctor", log, "--html", tmp_path, code=2)
    assert f"the folder {tmp_path / 'none'} does not exist" in fault("doctor", log, "--html", tmp_path / "none" / "x")
    assert "does not exist" in fault("doctor", tmp_path / "gone")
    assert "past the end" in fault("doctor", log, "--at-offset", 999)
    assert "of different clusters" in fault("doctor", DIRECTORY, TORN, code=2)
    assert "127.0.0.1:1 " in fault("doctor", "127.0.0.1:1")
    assert "no such folder" in fault("doctor", log, "--log-dirs", tmp_path / "gone")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "meta.properties").write_text("cluster.id=other\nnode.id=1\n")
    sentence = fault("doctor", DIRECTORY, "--log-dirs", tmp_path / "theirs", code=2)
    assert "is a log directory of cluster other, not of" in sentence
    run("doctor", code=2)


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [(0, "0 s"), (-5, "0 s"), (59_999, "59 s"), (60_000, "1 min"), (3_661_000, "1 h 1 min"), (90_000_000, "1 d 1 h"),
     (3_600_000 + 5_000, "1 h")],
)  # fmt: skip
def test_a_duration_has_its_two_largest_units(milliseconds: int, words: str) -> None:
    assert duration(milliseconds) == words


def test_who_made_the_changes_of_the_last_day_stands_beside_each() -> None:
    log = SAMPLES / "authorized"
    by = ("--log-tz", "UTC", "--authorizer-log", log / "node-1" / "kafka-authorizer.log.gz")
    words = ("doctor", log / "log" / "__cluster_metadata-0", *by)
    reason = "retention.ms was changed: 100007 → 100013, by User:alice from 127.0.0.1, IncrementalAlterConfigs"
    assert reason in run(*words, width=200).stdout
    changes = next(one for one in run_json(*words)["findings"] if one["check"] == "recent_changes")
    named = {group["since"]["offset"]: group.get("who", {}).get("principal") for group in changes["groups"]}
    assert named[97] == "User:alice"
    assert named[100] == "User:bob"
    assert named[30] == "User:ANONYMOUS"
