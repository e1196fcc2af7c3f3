"""Every command answers in every format: CSV and Markdown have the rows of its JSON, and no name breaks one of them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from kraftlake.cli.output.formats import FORMATS
from kraftlake.records import metadata_records as r
from kraftlake.tables.jobs import JOBS
from tests.at_least_one import at_least_one
from tests.cli.made_logs import HOSTILE, TOPIC_ID, batch_of, directory_of, hostile_log, unreplayable_log
from tests.cli.running import DIRECTORY, process, run
from tools.commands import commands

Row = dict[str, Any]
LEAVES = {
    path.removeprefix("kraftlake "): command
    for path, command in commands()
    if not isinstance(command, click.Group) or path == "kraftlake log"
}
UNSOUND = Path("unsound")
"""Stands for a log that can't be replayed."""
FORMULA = "=cmd|' /C calc'!A0"


class Listing(NamedTuple):
    """A command line that lists rows, and the rows in its JSON."""

    words: tuple[object, ...]
    rows_of: Callable[[Any], list[Row]] = lambda form: [form]
    """Of the one object that it prints; of JSON lines each is a row."""
    code: int = 0


def under(key: str) -> Callable[[Any], list[Row]]:
    return lambda form: list(form[key])


def partitions(form: Any) -> list[Row]:
    return [
        {"topic": name, "topicId": topic["id"], "partition": int(number)} | partition
        for name, topic in form["topics"].items()
        for number, partition in topic["partitions"].items()
    ]


def changes(form: Any) -> list[Row]:
    rows = []
    for part, kinds in form.items():
        for kind in ("added", "removed", "changed") if isinstance(kinds, dict) else ():
            for key, fields in kinds.get(kind, {}).items():
                before = {name: value[0] for name, value in fields.items()} if kind == "changed" else fields
                after = {name: value[1] for name, value in fields.items()} if kind == "changed" else fields
                sides = {"before": None if kind == "added" else before, "after": None if kind == "removed" else after}
                rows.append({"part": part, "change": kind, "key": key} | sides)
    return rows


def of_broker(form: Any) -> list[Row]:
    actions = ((key, "lead" if key == "leaders" else "follow") for key in ("leaders", "followers"))
    rows = [{"action": "delete", "partition": name} for name in form["deletes"]]
    for key, action in actions:
        for name, change in sorted(form[key].items()):
            shown_action = "elected" if key == "leaders" and name in form["electedLeaders"] else action
            rows.append({"action": shown_action, "partition": name, "topicId": change["topicId"]} | change["partition"])
    directories = {key.partition(":")[2]: directory for key, directory in form["directoryIds"].items()}
    rows += [
        {"action": "assign", "partition": name} for name in sorted({*directories} - {row["partition"] for row in rows})
    ]
    return [row | {"directory": directories.get(row["partition"], "")} for row in rows]


def counts(form: Any) -> list[Row]:
    of_all = [(None, form["metrics"]), (None, form["health"]), *form["brokers"].items()]
    return [{"broker": id_, "metric": name, "value": value} for id_, some in of_all for name, value in some.items()]


def stages(form: Any) -> list[Row]:
    before = {
        "offline": form["offlineBefore"],
        "underMinIsr": form["underMinIsrBefore"],
        "leaders": form["leadersBefore"],
    }
    head = ("step", "brokers", "racks", "partitions")
    return [
        before,
        *({name: step[name] for name in head} | stage for step in form["steps"] for stage in step["stages"]),
    ]


def steps(form: Any) -> list[Row]:
    rows = []
    for number, step in enumerate(form["steps"], 1):
        for change in step["changes"]:
            proof = change["undoneBy"]
            row = {"step": number} | {name: step[name] for name in ("class", "action", "path")}
            row |= {name: change[name] for name in ("field", "before", "after")}
            row |= {"undoneAt": proof["offset"], "timestamp": proof["timestamp"], "type": proof["type"]}
            rows.append(row | {"note": step["note"]})
    return rows


LISTINGS = {
    "image": Listing(("image", DIRECTORY, "--at", 4592), partitions),
    "log": Listing(("log", DIRECTORY, "--to", 80)),
    "diff": Listing(("diff", DIRECTORY, 260, 4639), changes),
    "undo": Listing(("undo", DIRECTORY, "--to", 4000), steps),
    "drift": Listing(("drift", DIRECTORY, DIRECTORY, "--at", 260, "--other-at", 4639), changes, code=3),
    "events": Listing(("events", DIRECTORY, "--to", 300)),
    "blame": Listing(("blame", DIRECTORY, "topic/elr-a/partition/0", "--all")),
    "stability": Listing(("stability", DIRECTORY, "--by", "broker")),
    "can": Listing(("can", DIRECTORY, "--who", "create", "cluster")),
    "effective": Listing(("effective", DIRECTORY, "topic/t-3-dj5")),
    "bisect": Listing(("bisect", DIRECTORY, "offline_partitions > 0", "--from", 220, "--to", 240)),
    "availability": Listing(("availability", DIRECTORY, "--to", 1400), under("rows")),
    "what-if": Listing(("what-if", DIRECTORY, "--at", 4592, "--lose-broker", 3, "--restart", 3), stages),
    "local-changes": Listing(("local-changes", DIRECTORY, "--broker", 1, "--from", 4000), of_broker),
    "metrics": Listing(("metrics", DIRECTORY, "--at", 4592), counts),
    "sql": Listing(("sql", DIRECTORY, "SELECT * FROM events AS e WHERE e.offset < 300")),
    "quorum": Listing(("quorum", DIRECTORY), under("nodes")),
    "removal-check": Listing(("removal-check", DIRECTORY, "--broker", 3, "--at", 4592), under("moves"), code=3),
    "upgrade-check": Listing(("upgrade-check", DIRECTORY, "--metadata-version", 34), under("obstacles"), code=3),
    "verify": Listing(("verify", UNSOUND), under("problems"), code=1),
    "doctor": Listing(("doctor", DIRECTORY, "--at", 458), under("findings"), code=3),
    "ls": Listing(("ls", DIRECTORY, "/image/cluster")),
    "cat": Listing(("cat", DIRECTORY, "/image/cluster/brokers/*")),
    "shell": Listing(("shell", DIRECTORY, "-c", "find /image/cluster")),
    "replay": Listing(("replay", DIRECTORY, "--broker", 2, "--from", 403, "--to", 458)),
}
"""The commands that change nothing."""

WRITERS = {
    "page", "import", "export", "bundle", "restore", "recreate", "upkeep", "format", "fork", "generate", "log compact",
    "log trim", "log vacuum", "tables", "tables trim", *(f"spark {job}" for job in JOBS), "spark snapshot",
    *(f"brokers {verb}" for verb in ("register", "unfence", "fence", "shutdown", "unregister")),
    *(f"topics {verb}" for verb in ("create", "grow", "elect", "isr", "reassign", "delete")),
    "configs alter", "quotas alter", "acls add", "acls remove", "features update",
    "scram set", "scram delete", "tokens create", "tokens renew", "tokens expire",
}  # fmt: skip
"""The commands that report what they have done: an object, or the results of a change."""

SERVICES = {"watch", "follow", "broker", "controller", "cluster up", "mcp", "translate"}
"""The commands that go on until they are ended, or pass on what they read; `watch` lists what `events` lists."""


def answer(listing: Listing, folder: Path, format_: str) -> str:
    """What a command prints in a format."""
    log = unreplayable_log(folder / format_) if UNSOUND in listing.words else None
    words = [log if word == UNSOUND else word for word in listing.words]
    return run(*words, "--output", format_, code=listing.code).stdout


def json_rows(listing: Listing, folder: Path) -> list[Row]:
    lines = answer(listing, folder, "json").splitlines()
    return [row for line in lines for row in listing.rows_of(json.loads(line)) if "summary" not in row]


def csv_rows(printed: str) -> tuple[list[str], list[Row]]:
    reader = csv.DictReader(io.StringIO(printed), strict=True)
    rows = list(reader)
    return list(reader.fieldnames or ()), rows


def cell(value: Any) -> str:
    if isinstance(value, str) or value is None:
        return value or ""
    return json.dumps(value, separators=(",", ":"))


def test_every_command_is_known_here_with_what_it_answers() -> None:
    groups = (set(LISTINGS), WRITERS, SERVICES)
    assert sum(map(len, groups)) == len(set().union(*groups))
    assert set().union(*groups) == set(LEAVES)


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_a_command_takes_every_format_unless_it_is_a_service(name: str) -> None:
    (option,) = (one for one in LEAVES[name].params if "--output" in one.opts)
    context = click.Context(LEAVES[name])
    offered = [item.value for item in option.shell_complete(context, "")]
    assert offered == (["text", "json"] if name in SERVICES - {"watch"} else list(FORMATS))


@pytest.mark.parametrize("name", sorted(LISTINGS))
def test_csv_has_the_rows_and_columns_of_the_json(name: str, tmp_path: Path) -> None:
    expected = json_rows(LISTINGS[name], tmp_path)
    columns, rows = csv_rows(answer(LISTINGS[name], tmp_path, "csv"))
    assert expected
    assert {column for row in expected for column in row} <= set(columns)
    shown = [{column: cell(row.get(column)) for column in columns} for row in expected]
    assert [{name: value.removeprefix("'") for name, value in row.items()} for row in rows] == shown


@pytest.mark.parametrize("name", sorted({*LISTINGS} - {"doctor", "bisect"}))
def test_markdown_has_a_line_for_each_row(name: str, tmp_path: Path) -> None:
    head, rule, *lines = answer(LISTINGS[name], tmp_path, "markdown").splitlines()
    width = head.count(" | ")
    assert re.fullmatch(r"\|( --- \|)+", rule)
    assert len(lines) == len(json_rows(LISTINGS[name], tmp_path)) > 0
    for line in at_least_one(lines):
        assert len(re.findall(r"(?<!\\)\|", line)) == width + 2, line


def test_markdown_of_one_object_has_a_line_for_each_field_and_times_that_people_read() -> None:
    printed = run(
        "bisect", DIRECTORY, "offline_partitions > 0", "--from", 220, "--to", 240, "--output", "markdown"
    ).stdout
    assert printed.splitlines()[:5] == [
        "| field | value |",
        "| --- | --- |",
        "| condition | offline\\_partitions \\> 0 |",
        "| offset | 228 |",
        "| timestamp | 2026-11-21 07:45:45.474Z |",
    ]


def test_an_answer_without_rows_has_its_columns() -> None:
    assert run("verify", DIRECTORY, "--output", "csv").stdout == "offset,file,position,message,inSnapshot\n"
    events = run("events", DIRECTORY, "--to", 3, "--kind", "offline", "--output", "csv")
    assert events.stdout.startswith("clusterId,offset,epoch,timestamp,kind,")
    assert events.stdout.count("\n") == 1
    assert (
        events.stdout.rstrip("\n").split(",") == csv_rows(run(*LISTINGS["events"].words, "--output", "csv").stdout)[0]
    )


def test_limits_cut_rows() -> None:
    whole = run("diff", DIRECTORY, 260, 4639, "--output", "csv").stdout.splitlines()
    assert run("diff", DIRECTORY, 260, 4639, "--output", "csv", "--limit", 2).stdout.splitlines() == whole[:3]
    changes = ("local-changes", DIRECTORY, "--broker", 1, "--from", 4000, "--output", "csv")
    every = run(*changes).stdout.splitlines()
    assert run(*changes, "--tail", 2).stdout.splitlines() == [every[0], *every[-2:]]


@pytest.mark.parametrize(
    ("part", "columns"),
    [
        ("brokers", "broker,epoch,incarnationId"), ("controllers", "controller,incarnationId"),
        ("configs", "type,resource,name,value"), ("acls", "id,resourceType"), ("features", "feature,level"),
        ("quotas", "entity,quota,value"), ("producer-ids", "nextProducerId"), ("tokens", "tokenId,owner"),
        ("scram", "mechanism,user,salt"), ("topics", "topic,topicId,partition"),
    ],
)  # fmt: skip
def test_each_part_of_an_image_is_a_table(part: str, columns: str) -> None:
    shown = run("image", DIRECTORY, "--part", part, "--output", "csv").stdout
    assert shown.startswith(columns)
    assert len(csv_rows(shown)[1]) > 0


def test_since_is_a_column() -> None:
    columns, rows = csv_rows(run("image", DIRECTORY, "--topic", "elr-a", "--since", "--output", "csv").stdout)
    assert columns[-1] == "since"
    assert all(json.loads(row["since"])["leader"]["offset"] > 0 for row in at_least_one(rows))


def test_one_table_at_a_time() -> None:
    assert fault_of("image", DIRECTORY, "--part", "acls", "--part", "scram") == (
        "csv has the rows of one part, by default of topics: give one --part (see `kraftlake image --help`)"
    )
    assert "one table" in fault_of("what-if", DIRECTORY, "--lose-broker", 1, "--each-rack")
    assert "--log-dirs is for text and json" in fault_of("replay", DIRECTORY, "--broker", 1, "--log-dirs", DIRECTORY)
    assert "there is no csv of it: give text or json" in fault_of("broker", "--id", 1)


def fault_of(*words: object) -> str:
    result = run(*words, "--output", "csv", code=2)
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    return result.stderr.removeprefix("error: ").rstrip("\n")


def test_json_is_the_same_by_its_short_name_and_contradicts_others() -> None:
    words = ("log", DIRECTORY, "--to", 9)
    assert (
        run(*words, "--output", "json").stdout
        == run(*words, "--json").stdout
        == run(*words, "--json", "--output", "json").stdout
    )
    assert run(*words, "--output", "text").stdout == run(*words).stdout
    errors = run(*words, "--json", "--output", "csv", code=2).stderr
    assert errors == "error: --json is short for --output json: give one of them (see `kraftlake log --help`)\n"
    assert "there is no xml of it: give text, json, csv or markdown" in run(*words, "--output", "xml", code=2).stderr


def test_formats_are_completed_by_the_shell() -> None:
    words = "kraftlake image x --output m"
    printed = process(_KRAFTLAKE_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD="4").stdout
    assert printed == "plain,markdown\n"


def formula_log(folder: Path) -> Path:
    topics = [FORMULA, "+1+1", "-2+3", "@sum", "\t=1", "\r=1", "＝1+1", "a;=1", "`code`|x", "-7"]
    names = [r.TopicRecord(name=name, topic_id=TOPIC_ID) for name in topics]
    configs = [
        r.ConfigRecord(resource_type=2, resource_name=name, name="cleanup.policy", value=name) for name in topics
    ]
    first = batch_of(0, r.FeatureLevelRecord(name="metadata.version", feature_level=19), *configs)
    return directory_of(folder, [first, batch_of(1 + len(configs), names[0])])


def test_no_name_starts_a_formula_or_ends_a_cell_or_a_row(tmp_path: Path) -> None:
    log = formula_log(tmp_path)
    printed = run("image", log, "--part", "configs", "--output", "csv").stdout
    rows = csv_rows(printed)[1]
    assert len(printed.splitlines()) == len(rows) + 1
    names = sorted(row["value"] for row in rows)
    assert names == sorted(
        [f"'{FORMULA}", "'+1+1", "'-2+3", "'@sum", "\\t=1", "\\r=1", "'＝1+1", "a;=1", "`code`|x", "-7"]
    )
    assert '"a;=1"' in printed, "a spreadsheet that divides at semicolons sees one cell"
    marked = run("image", log, "--part", "configs", "--output", "markdown").stdout
    assert "\\`code\\`\\|x" in marked
    assert len(marked.splitlines()) == len(rows) + 2


def test_hostile_strings_neither_break_rows_nor_reach_the_terminal(tmp_path: Path) -> None:
    log = hostile_log(tmp_path)
    for part in ("topics", "configs", "acls", "brokers", "quotas", "scram"):
        rows = csv_rows(run("image", log, "--part", part, "--output", "csv").stdout)[1]
        lines = run("image", log, "--part", part, "--output", "markdown").stdout.splitlines()
        assert len(rows) == len(lines) - 2 == 1, part
    words = (("log", log), ("image", log), ("events", log), ("diff", log, -1, 8), ("shell", log, "-c", "tree /image"))
    for printed in [run(*one, "--output", format_).stdout for one in words for format_ in ("csv", "markdown")]:
        assert "\\x1b" in printed or "\\u001b" in printed
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2028]", printed)
        assert HOSTILE not in printed


def test_an_answer_that_is_refused_leaves_stdout_empty(tmp_path: Path) -> None:
    result = run("events", formula_log(tmp_path), "--topic", "nope", "--output", "csv", code=1)
    assert (result.stdout, result.stderr.startswith("error: no topic matches nope")) == ("", True)
