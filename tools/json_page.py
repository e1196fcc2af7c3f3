"""The page of the JSON that commands print: each with a shortened answer on the sample."""

from __future__ import annotations

import json
import shlex
from typing import Any

from click.testing import CliRunner

from kraftlake.cli.application import application
from tools.samples import beside_samples

LOG = "samples/kafka-4.4/log/__cluster_metadata-0"
_WIDTH = 100
_LONGEST = 60
_FEW = 4

_WHAT_IF = (
    "One object: the steps, and what they leave. `lost` has the `brokers` and `racks` of `--lose-…`; `offline`, "
    "`underMinIsr` (fewer replicas in sync than min.insync.replicas asks for) and `leadersAfter` (by broker, "
    "without brokers that lead none) are those after the last step, `offlineBefore`, `underMinIsrBefore` and "
    "`leadersBefore` those of the image. `steps` has each step with its `brokers`, `racks` or `partitions`, the "
    "brokers that it `fenced`, its `notes`, what was `refused` and why, and its `stages` with `offline`, "
    "`underMinIsr`, `recovering` (led by a broker that may lack records), `reassigning` and `leaders`. `returns` "
    "says of each lost broker, and of all, which partitions come `online` if it starts again after a crash, and "
    "which of them are `recovering`. `eachBroker` and `eachRack` are null unless asked for; their `offline`, "
    "`underMinIsr` and `recovering` are what the loss adds. Lists are sorted."
)
_FILES = {
    "L": LOG,
    "W": "samples/authorized/log/__cluster_metadata-0",
    "A": "samples/authorized/node-1/kafka-authorizer.log.gz",
}
_WHO = (
    "With `--authorizer-log` there is a field `who`, with `--audit` one named `audit`, also in the lines of `events`, "
    "in `undoneBy` of a plan and in the groups of findings: `principal`, `host`, `request`, `timestamp` and `file` of "
    "the line that made the change, null where no single client is named; `candidates` are the several; `reason` says "
    "why."
)
_CAN = (
    "One object: the answer for any host, `*`, or for that of `--host`, its deciding `acl` (as in `image`, with its "
    "id; null where none decides) or `rule`, and in `exceptions` the hosts with another answer. With `--why` `acls` "
    "has each ACL of the resource with its `effect`. With `--who` it is a line for each principal and host, with "
    "`--changes` for each change of the answer: the record as of `blame`, null where the log begins, and the answer "
    "from there on."
)
_AVAILABILITY = (
    "One object: the window, the `total` of all partitions, and `rows` by `--by`, the worst first. Seconds are those "
    "of a row's partitions together, `anyOfflineSeconds` those in which any of them was offline; `availablePercent` "
    "is null without partitions. `longestTrouble` is `offline`, `led_by_fenced`, `under_min_isr` or `one_in_sync`, "
    "the worst that there was; `cause` is `fenced`, `shut_down`, `started_anew`, `unregistered`, `directory_failed` "
    "or `out_of_sync`, of `causeBroker`, or `configured`, `created`, `changed` (by the partition's own record), "
    "`earlier` (before the log). `longestEndTimestamp` is null for what went on. By broker there are `losses` and "
    "`fencedSeconds`, and `broker` is null for what no broker's loss began."
)
_EFFECTIVE = (
    "A line for each config: `source` is Kafka's name for the layer of the value, `setBy` the path for `blame` where "
    "the log sets it, `synonyms` are all layers with a value. Of a client a line for each quota: `value` is null for "
    "no limit, `entity` the one that decides (null in it is a default), `layers` all that may, by precedence."
)
_SQL = "A line for each row, with the names and values of the question; times are text in UTC."
_STABILITY = (
    "A line for each kind of event in each hour (`hour`, its start) or of each broker (`broker`, null for the quorum): "
    "the `count`, how many of these were `orderly`, the `median` of the others in the hours of the past and their "
    "`level`, both null where the past is too short, and whether the hour is `unusual`, or the number of "
    "`unusualHours`."
)
_UPGRADE = (
    "One object: the `target`, the `current` level of its feature, whether it is `allowed`, and the `obstacles`, "
    "the refusing ones first. `check` is `unsupported_level`, `stale_registration`, `unregistered_controller`, "
    "`metadata_lost`, `no_downgrade`, `unknown_controllers`, and for a release `metadata_version_too_low`, "
    "`metadata_version_too_high`, `zookeeper_broker`, `zookeeper_migration`, `unsupported_feature`, `refused_config`, "
    "`dropped_config`; `record` is null where the log has none."
)
_SPEC = (
    "The object of `verify` with `spec`: whether all `properties` hold from `fromOffset` to `toOffset`, why what "
    "follows was not judged (`stopped`, null for nothing), on how many states or records each was `judged`, and since "
    "which metadata.version. Of `violations` each has its `property`, the `offset` and type (`record`) of the record "
    "at fault, the `effectiveOffset` at which it counts, the `thing` that violates it, a `sentence`, and `knownBug`, "
    "the name of a known bug of Kafka, null for none; `moreViolations` counts those beyond a thousand."
)
_REMOVAL = (
    "One object: the `replicas` of the broker, how many it `leads`, those of `internal` topics, their number by "
    "directory; the partitions that its loss takes `offline` or `underMinIsr`; the `moves` with all replicas of each "
    "partition, and whether they are `proved`: the controller has `refused` none, none is `stuck` without a broker to "
    "go to, `left` on it, or `harmed` (offline or under its minimum) after them. `fewerRacks` are in fewer racks then."
)
_REPLAY = "A line for each transition, and last a summary ([the keys](../replay.md#for-programs))."
_CHANGES = (
    "One object: the epoch of the claim, the last offset, and a result for each thing, with the controller's error "
    "where it refuses. The commands that change a controlled lake are alike: their results have what was made."
)
COMMANDS = (
    ("image SOURCE", "image L --at-offset 458", "One object, keyed by names and ids; numbers in a key are text."),
    ("log SOURCE", "log L --from 403 --type PARTITION_CHANGE_RECORD", "A line for each record."),
    ("events SOURCE", "events L --from 458 --to 458", "A line for each event."),
    ("diff SOURCE N M", "diff L 402 458 --topic fixed-a", "One object: what came, went and changed, by part."),
    ("local-changes SOURCE", "local-changes L --broker 2 --from 402 --to 458", "One object: LocalReplicaChanges."),
    ("replay SOURCE", "replay L --broker 2 --from 403 --to 458", _REPLAY),
    ("metrics SOURCE", "metrics L --at-offset 458", "One object: the controller's counts."),
    ("blame SOURCE THING", "blame L broker/3/fenced --at-offset 458", "A line for each record, the newest last."),
    ("blame SOURCE THING --authorizer-log FILE", "blame W topic/t-0 --log-tz UTC --authorizer-log A", _WHO),
    ("can SOURCE PRINCIPAL OPERATION RESOURCE NAME", "can L User:p581 alter-configs topic fixed-a", _CAN),
    ("effective SOURCE SUBJECT", "effective L topic/t-3-dj5 retention.ms", _EFFECTIVE),
    ("stability SOURCE", "stability L --by broker", _STABILITY),
    ("bisect SOURCE CONDITION", "bisect L 'offline_partitions > 5'", "One object: the first offset at which it holds."),
    ("availability SOURCE", "availability L --to 1400", _AVAILABILITY),
    ("sql SOURCE SELECT", "sql L 'SELECT kind, count(*) AS n FROM events GROUP BY kind ORDER BY n DESC'", _SQL),
    ("doctor SOURCE", "doctor L --at-offset 458", "One object: the findings, the most severe first."),
    ("quorum DIRECTORY…", "quorum L", "One object: the nodes, and whether they can elect a leader."),
    ("what-if SOURCE", "what-if L --at-offset 401 --lose-broker 3", _WHAT_IF),
    ("verify SOURCE", "verify L", "One object: what was checked, and the problems."),
    ("verify SOURCE --spec", "verify L --spec", _SPEC),
    ("removal-check SOURCE", "removal-check L --broker 3 --at-offset 4592", _REMOVAL),
    ("upgrade-check SOURCE", "upgrade-check L --metadata-version 34", _UPGRADE),
    ("ls SOURCE PATH", "ls L /image/topics/byName --at-offset 458", "A line for each node."),
    ("cat SOURCE PATH", "cat L /image/topics/byName/fixed-a/0 --at-offset 458", "A line for each node and value."),
    ("drift SOURCE OTHER", "drift L L --at-offset 402 --other-at 4639", "One object: what differs, by part."),
    ("undo SOURCE", "undo L --to 3000 --topic t-10-k3m", "One object: the plan, step by step."),
    ("recreate SOURCE", "recreate L --topic fixed-a", "One object: a declared file, as `drift` reads it."),
    ("import SOURCE LAKE", "import L LAKE", "One object: what was appended."),
    ("tables LAKE", "tables LAKE", "One object: the rows of each table."),
    ("log compact LAKE", "log compact LAKE", "One object: the files that were merged, and the checkpoints."),
    ("log vacuum LAKE", "log vacuum LAKE", "One object: the files that were deleted."),
    ("tables trim LAKE", "tables trim LAKE --before 3000 --yes", "One object: the rows removed of each table."),
    ("fork SOURCE LAKE", "fork L FORK --at-offset 402", "One object: the new lake."),
    ("configs alter RESOURCE", "configs alter topic:fixed-a --set retention.ms=60000 --lake FORK", _CHANGES),
    ("export SOURCE FILE", "export L 458.checkpoint --at-offset 458", "One object: the snapshot file."),
    ("page SOURCE", "page L -o cluster.html", "One object: the page."),
)  # fmt: skip
"""The commands whose answers the page shows: the command, a call with `--json` on the sample, and the answer's form."""

ALIKE = {
    "bundle": "one object: counts of records, secrets and replaced names, `faults`; with -o also `file`, `keyFile`",
    "translate": "the answer that it is given, under the real names",
    "mcp": "of each call an object: `command`, `answer` or `rows`, `sources` with their ends; or `error`",
    "watch": "the lines of `events`, as they are committed",
    "shell": "the answers of its commands, each as of the command of its name",
    "spark": "the object of `tables`, with `steps`, `executors` and `driverBatches`; of many an object with `lakes`",
    "upkeep": "one object: `policy`, what was removed (`trimmed`, `tables`, `snapshots`), and `heldBack`",
    "log trim": "one object: the new start of the log, and what was removed",
    "format": "one object: `lake`, `clusterId`, `role`, `metadataVersion`",
    "generate": "one object: the lake, and its episodes with their offsets",
    "restore": "one object: the offset, the voters, and what is lost, moved or lacking, by the names of partitions",
    "cluster up": "one object when all nodes are up: `bootstrap`, `controllers`, `lake`, `clusterId`, `data`, "
    "`security`",
    "broker": "the log of the process, an object a line",
    "controller": "the log of the process, an object a line",
    "follow": "the log of the process, an object a line",
    "brokers": "as `configs alter`",
    "topics": "as `configs alter`",
    "acls": "as `configs alter`",
    "quotas": "as `configs alter`",
    "features": "as `configs alter`",
    "scram": "as `configs alter`",
    "tokens": "as `configs alter`",
}
"""Commands whose answers have random ids or no end, or the form of another one's."""


def json_page() -> str:
    """The page in Markdown."""
    parts = [
        "# JSON of the commands",
        "What `--output json` (`--json`) prints, on stdout alone. Keys are added, none is changed or taken away. "
        "Offsets are Kafka's, times are milliseconds since 1970, ids have Kafka's 22-character base64, bytes are "
        "base64, fields of records have the names of Kafka's dump tool, and what is unknown is null. The answers are "
        "those of the sample, with … for what is left out. Secrets are redacted unless `--show-secrets` is given. "
        "What ends a command is in [exit codes](exit-codes.md).",
    ]
    with beside_samples():
        for shown, words, form in COMMANDS:
            parts.append(f"## {shown}\n\n{form}\n\n```text\n{_answer(words)}\n```")
    rows = "\n".join(f"| `{name}` | {form} |" for name, form in ALIKE.items())
    parts.append(f"## Other commands\n\n| command | |\n| --- | --- |\n{rows}")
    return "\n\n".join(parts) + "\n"


def _answer(words: str) -> str:
    """The answer of a call, shortened: its first line, and the last one where it has other keys."""
    given = [_FILES.get(word, word) for word in shlex.split(words)]
    done = CliRunner().invoke(application, [*given, "--json"], prog_name="kraftlake")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    first, last = lines[0], lines[-1]
    drawn = [_drawn(first, "")]
    if len(lines) > 1:
        drawn.append("…")
    if isinstance(last, dict) and last.keys() != first.keys():
        drawn.append(_drawn(last, ""))
    return "\n".join(drawn)


def _drawn(value: Any, indent: str) -> str:
    """A value over as few lines as fit; of alike entries only the first one."""
    if isinstance(value, str) and len(value) > _LONGEST:
        value = value[:_LONGEST] + "…"
    compact = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(compact) + len(indent) <= _WIDTH:
        return compact
    begin, end = "{}" if isinstance(value, dict) else "[]"
    inner = indent + "  "
    entries = (
        [(f"{json.dumps(key, ensure_ascii=False)}: ", one) for key, one in value.items()]
        if isinstance(value, dict)
        else [("", one) for one in value]
    )
    some = entries[: _shown(value)]
    lines = [f"{inner}{key}{_drawn(one, inner)}" for key, one in some]
    if len(some) < len(entries):
        lines.append(f"{inner}…")
    return "\n".join([begin, ",\n".join(lines), indent + end])


def _shown(value: dict[str, Any] | list[Any]) -> int:
    """How many entries of a long value are shown: of entries of one kind the first."""
    entries = list(value.values()) if isinstance(value, dict) else value
    if isinstance(value, list):
        return 1 if len({type(one) for one in entries}) == 1 else len(entries)
    if all(isinstance(one, dict) for one in entries):
        return 1 if len({frozenset(one) for one in entries}) == 1 else 2 if len(entries) > _FEW else len(entries)
    return 1 if len(entries) > 3 * _FEW and len({type(one) for one in entries}) == 1 else len(entries)
