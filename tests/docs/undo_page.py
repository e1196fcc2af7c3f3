"""What docs/undo.md shows: `python -m tests.docs.undo_page FOLDER` runs its four commands on a real Kafka in FOLDER."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from confluent_kafka import admin as ck
from confluent_kafka.admin import NewTopic

import kraftlake
from tests.cli.running import ROOT, run
from tests.interop.undone_nodes import AUTHORIZED, acl, clean, delete_all_acls, done
from tests.kafka_node import KafkaNode, started_node

PAGE = ROOT / "docs" / "undo.md"
SHOWN = re.compile(r"```console\n\$ kraftlake ([^\n]*)\n(.*?)```", re.DOTALL)
CODES = (3, 0, 0, 0)


def printed_on(node: KafkaNode, folder: Path) -> list[tuple[str, str]]:
    """The commands of the page, and what they print on a node whose topic has just lost its ACLs."""
    client = node.admin
    clean(node)
    done(client.create_topics([NewTopic("orders", 3, 1)]))
    done(client.create_acls([acl("User:shop", ck.AclOperation.WRITE), acl("User:billing", ck.AclOperation.READ)]))
    then = kraftlake.open(node.controller).end_offset - 1
    delete_all_acls(client)
    answers = []
    for (command, _), code in zip(SHOWN.findall(PAGE.read_text("utf-8")), CODES, strict=True):
        words = [{"c1:9093": node.controller, "T": str(then)}.get(word, word) for word in shlex.split(command)]
        more = ["--journal", str(folder / "journal")] if "--apply" in words else []
        printed = run(*words, *more, width=120, code=code).stdout.replace(node.controller, "c1:9093")
        printed = printed.replace(str(folder / "journal"), f"undo-{node.cluster_id}-{then}.jsonl")
        answers.append((command, "\n".join(line.rstrip() for line in printed.splitlines()) + "\n"))
    return answers


def timeless(text: str) -> str:
    """A text without offsets and times, which are others each time."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z", "TIME", text)
    return re.sub(r"(offset |back to |AA-)\d+", r"\1N", text)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    with started_node(folder, settings=AUTHORIZED) as started:
        text, at = PAGE.read_text("utf-8"), 0
        for command, answer in printed_on(started, folder):
            block = f"```console\n$ kraftlake {command}\n"
            begin = text.index(block, at)
            at = begin + len(block)
            text = text[:at] + answer + text[text.index("```", at) :]
        PAGE.write_text(text, "utf-8")
